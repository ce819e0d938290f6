/**
 * A media worker that ends or hangs while it records: every recording is told as over, with a file whose sizes are
 * those that were told.
 */
import { expect, test } from 'bun:test';
import { statSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/log.ts';
import { DecoderThread } from '../../src/media/decode/decoder.ts';
import type { PlaneLegOptions } from '../../src/media/leg/plane-leg.ts';
import { PlaneRoom } from '../../src/media/leg/plane-room.ts';
import { UdpLeg } from '../../src/media/leg/udp-leg.ts';
import { recordingRings } from '../../src/media/recording/recording-rings.ts';
import { PlaneRecordings, type RecordingListeners } from '../../src/media/recording/recordings.ts';
import { MediaWorker } from '../../src/media/worker/media-worker.ts';
import type { RecordingNotice } from '../../src/notice/recording.ts';
import { untilSteady } from '../http/media-server.ts';
import { GrowingWav } from '../support/growing-wav.ts';
import { Notices, Peer } from './peer.ts';

/** A leg on a port that was free. */
async function open(
  parts: Pick<PlaneLegOptions, 'worker' | 'decoders' | 'recordings' | 'nextPlayback' | 'nextNumber'>,
  notices: Notices,
) {
  for (;;) {
    const { promise, resolve } = Promise.withResolvers<number>();
    const port = 10_000 + 2 * Math.floor(Math.random() * 5_000);
    const about = { ...parts, id: parts.nextNumber(), notify: notices.hear, opened: resolve, freed() {} };
    const leg = new UdpLeg({ ...about, host: '127.0.0.1', port });
    if ((await promise) === 0) return leg;
  }
}

for (const [how, hangs] of [
  ['ends', false],
  ['hangs', true],
] as const) {
  test.concurrent(`a worker that ${how}: its recordings of a leg and of a room are over, and their files whole`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'lost-'));
    const decoders = new DecoderThread(silentLog);
    const recordings: RecordingListeners = new Map();
    const script = new URL('./fixture/mortal-worker.ts', import.meta.url);
    const worker = await MediaWorker.start({ mediaTimeoutMs: 30_000, log: silentLog, script, pulseMaxMs: 2_000, recordings });
    let last = 100;
    const parts = { worker, decoders, recordings, nextPlayback: () => ++last, nextNumber: () => ++last };
    const notices = new Notices();
    const peer = await Peer.open();
    const leg = await open(parts, notices);
    leg.negotiate(peer.parameters());
    const room = new PlaneRoom({
      ...parts,
      number: 2,
      another: () => undefined,
      notify: (notice) => notice.type !== 'room.lost' && notices.hear(notice),
      closed() {},
    });
    leg.join(room, { muted: false, fromVolumePercent: 100, toVolumePercent: 100 });
    const talking = setInterval(() => peer.send(leg, 0, peer.sequence * 160, new Uint8Array(160).fill(0x10)), 20);
    // One of them without.
    const rings = await recordingRings(folder, silentLog);
    const paths = Array.from({ length: 4 }, (_, at) => join(folder, `${at}.wav`));
    for (const [at, path] of paths.entries())
      (at === 3 ? room : leg).record({
        recordingUuid: path,
        path,
        includeGaps: at !== 1,
        ...(at > 0 && rings && { ring: rings.path(path) }),
      });
    await notices.until(() => notices.of('recording.started').length === paths.length);
    await peer.caughtUp();
    const begun = peer.heard.length;
    await peer.until(() => peer.heard.length >= begun + 60);

    worker.command({ type: 'mute', leg: 0, muted: hangs });
    const over = () => notices.of('recording.failed');
    await notices.until(() => over().length === paths.length);
    clearInterval(talking);
    // What is written after they were told would not be in the sizes.
    for (const path of paths) await untilSteady(() => statSync(path).size, 200);
    for (const each of over()) {
      const wav = await readFile(each.recordingUuid);
      expect([wav.readUInt32LE(4), wav.readUInt32LE(40)]).toEqual([wav.length - 8, wav.length - 44]);
      expect(each).toMatchObject({ reason: 'media_unavailable', durationMs: (wav.length - 44) / 16 });
      expect(each.durationMs).toBeGreaterThan(800);
    }
    expect(over()).toHaveLength(paths.length);
    expect(await rings?.sweep()).toBe(rings && 0);
    await rings?.close();
    expect(recordings.size).toBe(0);
    // The call is told to be without audio, once, and nobody waits for the room.
    expect(notices.of('media.lost')).toHaveLength(1);
    const survivor = await MediaWorker.start({ mediaTimeoutMs: 30_000, log: silentLog });
    const later = new Notices();
    const other = await open({ ...parts, worker: survivor }, later);
    other.join(room, { muted: false, fromVolumePercent: 100, toVolumePercent: 100 });
    expect(later.all).toEqual([{ type: 'room.left', room: 2 }]);
    await other.close();
    await survivor.close();
    await peer.close();
    await decoders.close();
    await rm(folder, { recursive: true });
  }, 20_000);
}

test.concurrent('a file that the disk keeps from us is not told as empty, and one that never was is', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'lost-'));
  const told: RecordingNotice[] = [];
  const both = Promise.withResolvers<void>();
  const notify = (notice: RecordingNotice) => {
    if (told.push(notice) === 2) both.resolve();
  };
  let last = 1;
  const recordings = new PlaneRecordings({ id: 1, command: () => {}, notify, nextNumber: () => ++last, listeners: new Map() });
  // No file can be opened where a folder is.
  for (const path of [folder, join(folder, 'never.wav')]) recordings.record({ recordingUuid: path, path, includeGaps: true });
  recordings.lost();
  await both.promise;
  const ofFile = (path: string) => told.find(({ recordingUuid }) => recordingUuid === path);
  const failed = { type: 'recording.failed', reason: 'media_unavailable' } as const;
  expect(ofFile(folder)).toEqual({ ...failed, recordingUuid: folder, durationMs: undefined });
  expect(ofFile(join(folder, 'never.wav'))).toEqual({ ...failed, recordingUuid: join(folder, 'never.wav'), durationMs: 0 });
  await rm(folder, { recursive: true });
});

test.concurrent('what was on its way to a file when its worker was lost is in the sizes that are told', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'lost-'));
  const path = join(folder, 'one.wav');
  const told = Promise.withResolvers<RecordingNotice>();
  const listeners: RecordingListeners = new Map();
  const recordings = new PlaneRecordings({ id: 1, command: () => {}, notify: told.resolve, nextNumber: () => 2, listeners });
  recordings.record({ recordingUuid: 'rec', path, includeGaps: true });
  const file = new GrowingWav(path).begin();
  file.append(new Uint8Array(1_600));
  recordings.lost();
  // The writing thread does so, in its own time.
  setTimeout(() => file.append(new Uint8Array(800)), 100);
  expect(await told.promise).toEqual({
    type: 'recording.failed',
    recordingUuid: 'rec',
    reason: 'media_unavailable',
    durationMs: 150,
  });
  const wav = await readFile(path);
  expect([wav.length, wav.readUInt32LE(40)]).toEqual([44 + 2_400, 2_400]);
  file.finish();
  await rm(folder, { recursive: true });
});
