/**
 * Many legs for a long time: rooms of ten, all talking, real RTP from another process, one media worker. Where there is
 * more than one core, the process of the engine has core 0 to itself and the far ends have core 1 (`taskset`).
 *
 *   npm run bench -- media-hours [LEGS] [SECONDS] [engine | floor] [HOGS]     1,000 legs for ten minutes
 *
 * `floor`: instead of the engine a bare reflector of as many packets, of the same priority (native/bench/reflector.cc).
 * HOGS: processes that compute without end on the engine's core, each in a session of its own.
 *
 * Said by the far ends (native/bench/crowd.cc): how late each tick's first packet left and each packet, beside timers
 * on both cores that do nothing else; frames missing, late, or with a voice missing or invented. Said here: the
 * resident memory and CPU of the engine's process.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import type { MediaRoom, RtpLeg } from '../src/media/engine.ts';
import { LATENESS_STEPS_US, ticksOver } from '../src/media/worker/tick-lateness.ts';
import { farEnd } from './far-end.ts';
import { engineFor } from './support/engine.ts';
import { cpuNs, rssKb } from './support/usage.ts';

const PEER_PORT = 11_990;
const FIRST_PORT = 12_000;
/** Both ports of each below those that the system gives away by itself. */
const LEGS_MAX = 10_000;
const READ_MS = 10_000;
const SETTLE_SEC = 10;
const root = join(import.meta.dir, '..');

if (process.argv[2] === 'serve') await serve(Number(process.argv[3]));
else
  await measure(
    Number(process.argv[2] ?? 1_000),
    Number(process.argv[3] ?? 600),
    process.argv[4] === 'floor',
    Number(process.argv[5] ?? 0),
  );

async function serve(count: number): Promise<void> {
  const engine = await engineFor(count, FIRST_PORT);
  const legs: RtpLeg[] = [];
  let room: MediaRoom | undefined;
  for (let i = 0; i < count; i++) {
    const leg = await engine.openRtpLeg(() => {});
    if (leg === undefined) throw new Error('a port is taken');
    leg.negotiate(farEnd(PEER_PORT));
    if (i % 10 === 0) room = await engine.openRoom(() => {});
    if (room !== undefined) leg.join(room, { muted: false, fromVolumePercent: 100, toVolumePercent: 100 });
    legs.push(leg);
  }
  console.log('ready');
  const worst: number[] = [];
  let skipped = 0;
  let settled: readonly number[] = [];
  setInterval(() => {
    const load = engine.ticks()[0];
    worst.push(load?.latenessMaxUs ?? 0);
    skipped = load?.skippedTicks ?? 0;
    if (worst.length === SETTLE_SEC) settled = load?.lateness ?? [];
  }, 1_000);
  process.on('SIGTERM', async () => {
    let [received, lost] = [0, 0];
    for (const leg of legs) {
      const counters = await leg.counters();
      received += counters.packetsReceived;
      lost += counters.packetsLost;
    }
    worst.splice(0, SETTLE_SEC); // while legs were joining
    const counts = (engine.ticks()[0]?.lateness ?? []).map((count, step) => count - (settled[step] ?? 0));
    const ticks = counts.reduce((sum, count) => sum + count, 0);
    const late = LATENESS_STEPS_US.map((us) => `${us / 1000} ms ${ticksOver(counts, us)}`).join(', ');
    console.error(`starts of ${ticks} ticks, later than: ${late}`);
    worst.sort((a, b) => a - b);
    const over = worst.filter((us) => us > 5_000).length;
    const ms = (part: number) => ((worst[Math.floor((worst.length - 1) * part)] ?? Number.NaN) / 1000).toFixed(2);
    console.error(
      `received ${received}, lost ${lost}; ticks skipped ${skipped}; worst start of a tick in each second: median ${ms(0.5)}, most ${ms(1)} ms, over 5 ms in ${over} of ${worst.length} seconds`,
    );
    process.exit(0);
  });
}

interface Usage {
  readonly residentKb: number;
  /** The CPU of all threads, from schedstat. */
  readonly cpuNs: number;
}

const usage = (pid: number): Usage => ({ residentKb: rssKb(pid), cpuNs: cpuNs(pid) });

/** Time that the host took from a core, in ms, as the kernel was told. */
function stolenMs(core: number): number {
  const line = new RegExp(`^cpu${core} (.*)$`, 'm').exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? '';
  return Number(line.split(' ')[7]) * 10;
}

async function measure(legs: number, seconds: number, floor: boolean, hogs: number): Promise<void> {
  if (!(legs >= 10 && legs <= LEGS_MAX && seconds >= 1)) throw new RangeError(`10 to ${LEGS_MAX} legs, a second or more`);
  if (spawnSync('make', ['-s', '-C', 'native', 'bench', 'addon'], { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);
  const pinned = cpus().length > 1;
  const on = (core: number, command: string[]) => (pinned ? ['taskset', '-c', `${core}`, ...command] : command);
  const loadBefore = loadavg()[0] ?? 0;
  const hogging = Array.from({ length: hogs }, () => {
    const [command = '', ...args] = on(0, [process.execPath, '-e', 'for (;;);']);
    return spawn(command, args, { detached: true, stdio: 'ignore' });
  });
  process.on('exit', () => {
    for (const hog of hogging) hog.kill('SIGKILL');
  });
  const bare = ['chrt', '-r', '1', join(root, 'build/reflector'), 'floor', `${legs}`, `${FIRST_PORT}`, `${PEER_PORT}`];
  const engine = Bun.spawn(on(0, floor ? bare : [process.execPath, import.meta.path, 'serve', `${legs}`]), {
    stdout: 'pipe',
    stderr: 'pipe',
    cwd: root,
  });
  for await (const chunk of engine.stdout) if (new TextDecoder().decode(chunk).includes('ready')) break;
  const crowd = Bun.spawn(on(1, [join(root, 'build/crowd'), `${legs}`, `${FIRST_PORT}`, `${PEER_PORT}`, `${seconds}`, '0']), {
    stdout: 'pipe',
  });
  await Bun.sleep(10_000); // the far ends learn the schedule
  const resident: number[] = [];
  const start = performance.now();
  const before = usage(engine.pid);
  const stolenBefore = stolenMs(0);
  let last = before;
  const reading = setInterval(
    () => {
      last = usage(engine.pid);
      resident.push(last.residentKb);
    },
    Math.min(READ_MS, (seconds * 1000) / 4),
  );
  const said = await new Response(crowd.stdout).text();
  clearInterval(reading);
  const after = usage(engine.pid);
  const stolen = stolenMs(0) - stolenBefore;
  const wallNs = (performance.now() - start) * 1e6;
  engine.kill('SIGTERM');
  const note = (await new Response(engine.stderr).text()).trim();
  await engine.exited;
  for (const hog of hogging) hog.kill('SIGKILL');
  const mb = (kb: number) => (kb / 1024).toFixed(1);
  const sixths = Array.from({ length: 7 }, (_, i) => mb(resident[Math.round(((resident.length - 1) * i) / 6)] ?? Number.NaN));
  const what = floor ? 'bare reflections' : 'legs in rooms of ten';
  const beside = hogs > 0 ? `, ${hogs} beside the engine that compute without end` : '';
  console.log(`${legs} ${what} for ${seconds} s${pinned ? ', a core each for the engine and the far ends' : ''}${beside}`);
  console.log(said.trim());
  console.log(`engine: ${note}`);
  console.log(`resident, MB: ${mb(before.residentKb)} at the start, then ${sixths.join(', ')}`);
  const cpu = (after.cpuNs - before.cpuNs) / wallNs;
  console.log(
    `CPU of the engine's process: ${(cpu * 100).toFixed(1)} % of a core, ${((cpu * 1e6) / legs).toFixed(1)} us a leg and second; stolen from core 0 by the host: ${stolen} ms`,
  );
  console.log(
    `load of the machine over the last minute: ${loadBefore.toFixed(2)} before, ${(loadavg()[0] ?? 0).toFixed(2)} at the end`,
  );
}
