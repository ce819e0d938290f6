/**
 * CPU of a leg: the media engine as it runs, against a bare UDP reflector (one socket a leg, epoll, recvmmsg, one send
 * each 20 ms) on the same load in the same run. Rounds are interleaved; one with under 99 % of the packets is thrown
 * away; the median of each side counts.
 *
 *   npm run bench -- media-legs [LEGS] [ROUNDS] [alone | rooms | room | sizes | tones | recorded] [SECONDS]
 *
 * `rooms`: in rooms of ten, all talking, each hearing the other nine. `room`: all in one room. `sizes`: one beside the
 * other. `tones`: alone, with keys listened for. `recorded`: alone, each recorded.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { silentLog } from '../src/log.ts';
import type { MediaRoom } from '../src/media/engine.ts';
import { recordingRings } from '../src/media/recording/recording-rings.ts';
import type { TickLoad } from '../src/media/worker/media-worker.ts';
import { type LATENESS_STEPS_US, ticksOver } from '../src/media/worker/tick-lateness.ts';
import { farEnd } from './far-end.ts';
import { engineFor } from './support/engine.ts';
import { cpuNs, median } from './support/usage.ts';

/** Below what the system gives away by itself; 1,300 legs fit. */
const FIRST_PORT = 30_000;
const PEER_PORT = 32_700;
const SECONDS = Number(process.argv[5] ?? 5);
const root = join(import.meta.dir, '..');
const reflector = join(root, 'build/reflector');

if (process.argv[2] === 'serve') await serve(Number(process.argv[3]), process.argv[4] ?? 'alone');
else await measure(Number(process.argv[2] ?? 1_000), Number(process.argv[3] ?? 5), process.argv[4] ?? 'alone');

/** The engine with so many legs, all sending to and hearing from the load generator. */
async function serve(legs: number, what: string): Promise<void> {
  const engine = await engineFor(legs, FIRST_PORT);
  const folder = mkdtempSync(join(tmpdir(), 'recorded-'));
  const rings = await recordingRings(folder, silentLog);
  let [recorded, failed] = [0, 0];
  let room: MediaRoom | undefined;
  for (let i = 0; i < legs; i++) {
    const leg = await engine.openRtpLeg((notice) => {
      if (notice.type === 'recording.failed') failed++;
      if (notice.type === 'recording.started') recorded++;
    });
    leg?.negotiate(farEnd(PEER_PORT));
    if (what === 'tones') leg?.detectTones(true);
    if (what === 'recorded') {
      const path = join(folder, `${i}.wav`);
      leg?.record({ recordingUuid: `${i}`, path, ...(rings && { ring: rings.path(path) }), includeGaps: true });
    }
    if (what !== 'rooms' && what !== 'room') continue;
    if (i % (what === 'room' ? legs : 10) === 0) room = await engine.openRoom(() => {});
    if (room !== undefined) leg?.join(room, { muted: false, fromVolumePercent: 100, toVolumePercent: 100 });
  }
  console.log('ready');
  let settled: TickLoad | undefined;
  setInterval(() => {
    settled ??= engine.ticks()[0];
  }, 2_000);
  process.on('SIGTERM', () => {
    const load = engine.ticks()[0];
    const since = (us: (typeof LATENESS_STEPS_US)[number]) =>
      ticksOver(load?.lateness ?? [], us) - ticksOver(settled?.lateness ?? [], us);
    const skipped = (load?.skippedTicks ?? 0) - (settled?.skippedTicks ?? 0);
    const recordings = what === 'recorded' ? `, recordings ${recorded}, failed ${failed}` : '';
    console.error(
      `ticks over 2, 5, 20 ms late ${since(2_000)}, ${since(5_000)}, ${since(20_000)}, left out ${skipped}, rss ${Math.round(process.memoryUsage().rss / 1e6)} MB${recordings}`,
    );
    if (rings !== undefined) rmSync(dirname(rings.path('')), { recursive: true });
    rmSync(folder, { recursive: true });
    process.exit(0);
  });
}

interface Round {
  readonly usALegSecond: number;
  readonly delivered: number;
  readonly note: string;
}

async function round(command: string[], legs: number): Promise<Round> {
  const subject = Bun.spawn(command, { stdout: 'pipe', stderr: 'pipe', cwd: root });
  for await (const chunk of subject.stdout) if (new TextDecoder().decode(chunk).includes('ready')) break;
  const load = Bun.spawn([reflector, 'load', `${legs}`, `${FIRST_PORT}`, `${PEER_PORT}`, `${SECONDS}`], { stdout: 'pipe' });
  await Bun.sleep(500);
  const before = cpuNs(subject.pid);
  const start = performance.now();
  await Bun.sleep((SECONDS - 1) * 1000);
  const cpu = cpuNs(subject.pid) - before;
  const seconds = (performance.now() - start) / 1000;
  const [sent = 0, received = 0] = (await new Response(load.stdout).text()).trim().split(' ').map(Number);
  subject.kill('SIGTERM');
  const note = (await new Response(subject.stderr).text()).trim();
  await subject.exited;
  await Bun.sleep(1_000); // the system lets go of the sockets of an io_uring some time after its process
  return { usALegSecond: cpu / 1000 / legs / seconds, delivered: Math.min(sent, received) / (legs * 50 * SECONDS), note };
}

async function measure(legs: number, rounds: number, what: string): Promise<void> {
  if (spawnSync('make', ['-s', '-C', 'native', 'bench', 'addon'], { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);
  const floor: number[] = [];
  const engine: number[] = [];
  const oneRoom: number[] = [];
  const served = (how: string) => [process.execPath, import.meta.path, 'serve', `${legs}`, how];
  const sides: [string, string[], number[]][] = [
    ['floor', [reflector, 'floor', `${legs}`, `${FIRST_PORT}`, `${PEER_PORT}`], floor],
    ['engine', served(what === 'sizes' ? 'rooms' : what), engine],
  ];
  if (what === 'sizes') sides.push(['one room', served('room'), oneRoom]);
  for (let i = 0; i < rounds; i++) {
    for (const [name, command, results] of sides) {
      const { usALegSecond, delivered, note } = await round(command, legs);
      const counts = delivered >= 0.99;
      if (counts) results.push(usALegSecond);
      console.log(
        `${name.padEnd(8)} ${usALegSecond.toFixed(1)} us a leg and second, ${(delivered * 100).toFixed(1)} % delivered${counts ? '' : ' (thrown away)'} ${note}`,
      );
    }
  }
  const [a, b] = [median(floor), median(engine)];
  console.log(
    `${legs} legs (${what}): floor ${a.toFixed(1)}, engine ${b.toFixed(1)} us a leg and second: ${(b / a).toFixed(2)} times the floor`,
  );
  if (what === 'sizes')
    console.log(`all in one room ${median(oneRoom).toFixed(1)} us: ${(median(oneRoom) / b).toFixed(2)} times rooms of ten`);
  console.log(`legs a core at this cost: floor ${Math.round(1e6 / a)}, engine ${Math.round(1e6 / b)}`);
}
