/**
 * From packet in to mix out: rooms of ten, all talking, real RTP from another process, one media worker. Now and then a
 * packet is loud; how long after it was sent does its sound leave in the mix, at each other member
 * (native/bench/delay.cc)? Then the engine's process is stopped for 250 ms, and how long is it behind after that? And
 * what a leg takes: memory and threads, against the engine without legs.
 *
 *   npm run bench -- media-delay [LEGS] [SECONDS] [STALLS] [ROOM]     1,000 legs, 30 s, 3 stalls, rooms of 10 (of 2:
 *                                                                     packets passed on as they come)
 *
 * Where there is more than one core, the process of the engine has core 0 to itself and the far ends have core 1
 * (`taskset`).
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import type { MediaRoom, RtpLeg } from '../src/media/engine.ts';
import { farEnd } from './far-end.ts';
import { engineFor } from './support/engine.ts';

const PEER_PORT = 8_990;
const FIRST_PORT = 9_000;
const LEGS_MAX = 1_400;
/** The engine's own settling, and that of its legs, before their memory is read. */
const SETTLE_MS = 3_000;
const root = join(import.meta.dir, '..');

if (process.argv[2] === 'serve') await serve(Number(process.argv[3]), Number(process.argv[4]));
else
  await measure(
    Number(process.argv[2] ?? 1_000),
    Number(process.argv[3] ?? 30),
    Number(process.argv[4] ?? 3),
    Number(process.argv[5] ?? 10),
  );

/** The engine; its legs once a line has come on stdin. */
async function serve(count: number, size: number): Promise<void> {
  const engine = await engineFor(count, FIRST_PORT);
  process.on('SIGTERM', () => process.exit(0));
  console.log('idle');
  for await (const _ of console) break;
  const legs: RtpLeg[] = [];
  for (let i = 0; i < count; i++) {
    const leg = await engine.openRtpLeg(() => {});
    if (leg === undefined) throw new Error('a port is taken');
    leg.negotiate(farEnd(PEER_PORT));
    legs.push(leg);
  }
  // Ports are drawn at random, and the far ends take those that follow each other for members of one room.
  legs.sort((a, b) => a.port - b.port);
  let room: MediaRoom | undefined;
  for (const [at, leg] of legs.entries()) {
    if (at % size === 0) room = await engine.openRoom(() => {});
    if (room !== undefined) leg.join(room, { muted: false, fromVolumePercent: 100, toVolumePercent: 100 });
  }
  console.log('ready');
  setInterval(() => {}, 60_000);
}

/** What a process has: resident memory, threads. */
function held(pid: number): { readonly kb: number; readonly threads: number } {
  const kb = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN);
  return { kb, threads: readdirSync(`/proc/${pid}/task`).length };
}

async function measure(legs: number, seconds: number, stalls: number, size: number): Promise<void> {
  if (!(legs >= size && legs <= LEGS_MAX && size >= 2 && seconds >= 6 && stalls >= 0))
    throw new RangeError(`2 to ${LEGS_MAX} legs in rooms of 2 or more, 6 seconds or more`);
  if (spawnSync('make', ['-s', '-C', 'native', 'bench', 'addon'], { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);
  const pinned = cpus().length > 1;
  const on = (core: number, command: string[]) => (pinned ? ['taskset', '-c', `${core}`, ...command] : command);
  const loadBefore = loadavg()[0] ?? 0;
  const engine = Bun.spawn(on(0, [process.execPath, import.meta.path, 'serve', `${legs}`, `${size}`]), {
    stdin: 'pipe',
    stdout: 'pipe',
    cwd: root,
  });
  const said = engine.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const hears = async (word: string): Promise<void> => {
    for (let text = ''; !text.includes(word); ) {
      const { value, done } = await said.read();
      if (done) throw new Error('the engine has ended');
      text += value;
    }
  };
  await hears('idle');
  await Bun.sleep(SETTLE_MS);
  const idle = held(engine.pid);
  engine.stdin.write('open\n');
  engine.stdin.flush();
  await hears('ready');
  const command = [join(root, 'build/delay'), legs, size, FIRST_PORT, PEER_PORT, seconds, 0, engine.pid, stalls];
  const far = Bun.spawn(
    on(
      1,
      command.map((word) => `${word}`),
    ),
    { stdout: 'pipe' },
  );
  await Bun.sleep(SETTLE_MS + 7_000);
  const busy = held(engine.pid);
  const report = await new Response(far.stdout).text();
  const after = held(engine.pid);
  engine.kill('SIGTERM');
  await engine.exited;
  console.log(
    `${legs} legs in rooms of ${size} for ${seconds} s, then stopped ${stalls} times${pinned ? '; a core each for the engine and the far ends' : ''}`,
  );
  console.log(report.trim());
  const aLeg = (kb: number) => ((kb - idle.kb) / legs).toFixed(1);
  console.log(
    `resident: ${(idle.kb / 1024).toFixed(1)} MB without legs, ${(busy.kb / 1024).toFixed(1)} MB with them, ${(after.kb / 1024).toFixed(1)} at the end: ${aLeg(busy.kb)} and ${aLeg(after.kb)} kB a leg; threads ${idle.threads}, ${busy.threads}`,
  );
  console.log(`load of the machine: ${loadBefore.toFixed(2)} before, ${(loadavg()[0] ?? 0).toFixed(2)} at the end`);
}
