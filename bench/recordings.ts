/**
 * Recordings on the running product, with real calls and real files.
 *
 *   npm run bench -- recordings [CALLS] [SECONDS]     1000 20: every call recorded at once, all talking; CPU before and
 *                                                     during, write rate, what is missing
 *   npm run bench -- recordings kills [ROUNDS]        50: kill -9 at a random moment of ten recordings; what is
 *                                                     lost, and whether each is told of once
 */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';
import { sipp } from '../test/support/sipp.ts';
import { answeredCalls } from './support/calls.ts';
import { cpuNs } from './support/usage.ts';

const FIRST_PORT = 30_000;
const PEER_PORT = 32_700;
/** A leg's jitter buffer begins when somebody listens: 40 ms. */
const FIRST_SAMPLES = 3 * 160;
const BOTH = { direction: 'both', channels: 'mono', include_gaps: true };
const reflector = join(import.meta.dir, '../build/reflector');

const receiver = new Receiver();
if (process.argv[2] === 'kills') await kills(Number(process.argv[3] ?? 50));
else await crowd(Number(process.argv[2] ?? 1_000), Number(process.argv[3] ?? 20));
process.exit(0);

/** The samples of a finished recording; undefined where its header does not say its length. */
function samplesOf(path: string): Int16Array | undefined {
  const wav = readFileSync(path);
  if (wav.length < 44 || wav.readUInt32LE(40) !== wav.length - 44) return undefined;
  return new Int16Array(wav.buffer.slice(wav.byteOffset + 44, wav.byteOffset + wav.length));
}

async function crowd(calls: number, seconds: number): Promise<void> {
  if (spawnSync('make', ['-s', '-C', 'native', 'bench'], { cwd: join(import.meta.dir, '..'), stdio: 'inherit' }).status !== 0)
    process.exit(1);
  const platform = await Platform.start({
    RTP_PORTS: `${FIRST_PORT}-${FIRST_PORT + 2 * calls - 1}`,
    MEDIA_WORKERS: '2',
    MEDIA_TIMEOUT_SEC: '600',
    ORPHAN_TIMEOUT_SEC: '600',
  });
  const app = await platform.application(receiver.url, '+15550002');
  await platform.trunk('127.0.0.1:9');
  const load = spawn(reflector, ['load', `${calls}`, `${FIRST_PORT}`, `${PEER_PORT}`, `${120 + 2 * seconds}`]);
  const options = { calls, rate: 50, rtpPort: PEER_PORT, timeoutSec: 600 };
  const { sessions, caller } = await answeredCalls({ platform, app, receiver }, options);
  console.log(`${calls} calls up, each talking at 50 packets a second`);
  await Bun.sleep(3_000);
  const idle = await cost(platform.pid, seconds);

  const created = performance.now();
  for (const session of sessions) await platform.api(app, 'POST', `/v1/sessions/${session}/recordings`, BOTH);
  await receiver.until(() => receiver.count('recording.became_available') === calls, 'all recordings', 60_000);
  console.log(
    `${calls} recordings available ${((performance.now() - created) / 1000).toFixed(1)} s after the first was asked for`,
  );
  await Bun.sleep(2_000);
  const busy = await cost(platform.pid, seconds);
  const added = ((busy.cpu - idle.cpu) * 1e6) / calls / 50;
  console.log(
    `CPU ${(idle.cpu * 100).toFixed(0)} % of a core without, ${(busy.cpu * 100).toFixed(0)} % with: ${added.toFixed(2)} us a leg and tick`,
  );
  console.log(`written ${(busy.written / 1e6).toFixed(1)} MB/s; the audio is ${((calls * 16_000) / 1e6).toFixed(1)} MB/s`);

  for (const session of sessions) await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
  await receiver.until(() => receiver.count('session.ended') === calls, 'all ends', 120_000);
  await receiver.until(() => receiver.count('recording.ended') === calls, 'all recordings ended', 60_000);
  caller.stop();
  load.kill();
  let broken = 0;
  let silent = 0;
  let frames = 0;
  for (const { event, body } of receiver.events) {
    if (event !== 'recording.ended') continue;
    const samples = samplesOf(join(platform.dataDir, 'recordings', `${body.recording_uuid}.wav`));
    if (samples === undefined || Math.floor(samples.length / 8000) !== body.duration) broken++;
    else {
      for (let at = FIRST_SAMPLES; at < samples.length; at += 160, frames++)
        if (samples.subarray(at, at + 160).every((each) => each === 0)) silent++;
    }
  }
  console.log(
    `${receiver.count('recording.ended')} ended, ${receiver.count('recording.failed')} failed, ${broken} not as told; ${silent} of ${frames} frames without audio`,
  );
  await platform.stop();
}

/** Cores used and bytes written a second, over so many seconds. */
async function cost(pid: number, seconds: number): Promise<{ cpu: number; written: number }> {
  const look = () => ({
    at: performance.now(),
    ns: cpuNs(pid),
    written: Number(/^wchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]),
  });
  const before = look();
  await Bun.sleep(seconds * 1000);
  const after = look();
  const passed = after.at - before.at;
  return { cpu: (after.ns - before.ns) / passed / 1e6, written: ((after.written - before.written) * 1000) / passed };
}

async function kills(rounds: number): Promise<void> {
  const platform = await Platform.start({ ORPHAN_TIMEOUT_SEC: '5', RTP_PORTS: '20000-29999' });
  const app = await platform.application(receiver.url, '+15550002');
  await platform.trunk('127.0.0.1:9');
  receiver.misbehave = (event) => {
    if (event.event === 'session.created')
      void platform.api(app, 'POST', `/v1/sessions/${event.session_uuid}/answer`).catch(() => {});
    return undefined;
  };
  const lost: number[] = [];
  const wrong: string[] = [];
  const probe = spawnSync('ffprobe', ['-version']).status === 0;
  for (let round = 1; round <= rounds; round++) {
    const from = receiver.events.length;
    const since = (name: string) => receiver.events.slice(from).filter(({ event }) => event === name);
    const peer = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, calls: 10, rate: 100, timeoutSec: 60 });
    const up = await receiver
      .until(() => since('session.answered').length === 10, 'the calls')
      .then(
        () => true,
        () => false,
      );
    if (!up) {
      console.log(`round ${round} is begun again: SIPp placed ${since('session.answered').length} of 10 calls`);
      peer.stop();
      await receiver.until(() => since('session.ended').length >= since('session.answered').length, 'their ends', 60_000);
      round--;
      continue;
    }
    const begun = new Map<string, number>();
    for (const { body } of since('session.answered')) {
      const made = await platform.api(app, 'POST', `/v1/sessions/${body.session_uuid}/recordings`, BOTH);
      begun.set(String(made.body.recording_uuid), performance.now());
    }
    await Bun.sleep(Math.random() * 4_000);
    const at = performance.now();
    await platform.kill();
    peer.stop();
    await platform.start();
    await receiver.until(() => since('session.ended').length === 10, 'the ends', 30_000);
    for (const [recording, start] of begun) {
      const ends = receiver.events.filter(({ event, body }) => event === 'recording.ended' && body.recording_uuid === recording);
      if (ends.length !== 1) wrong.push(`round ${round}: ${recording} ended ${ends.length} times`);
      const path = join(platform.dataDir, 'recordings', `${recording}.wav`);
      const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 44;
      const heardMs = (bytes - 44) / 16;
      lost.push(Math.max(0, at - start - heardMs));
      if (heardMs === 0) continue;
      if (samplesOf(path) === undefined) wrong.push(`round ${round}: ${recording} is not whole`);
      if (probe && spawnSync('ffprobe', ['-v', 'error', path]).status !== 0)
        wrong.push(`round ${round}: ${recording} does not open in ffprobe`);
    }
    console.log(
      `round ${round}: ${begun.size} recordings, worst loss so far ${Math.max(...lost).toFixed(0)} ms, wrong ${wrong.length}`,
    );
  }
  lost.sort((a, b) => a - b);
  console.log(
    `${lost.length} recordings cut off by ${rounds} kill -9: lost median ${lost[lost.length >> 1]?.toFixed(0)} ms, most ${lost.at(-1)?.toFixed(0)} ms${probe ? ', each opened in ffprobe' : ''}`,
  );
  for (const each of wrong) console.log(each);
  await platform.stop();
}
