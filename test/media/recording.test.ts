import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RoomNotice } from '../../src/media/engine.ts';
import { mendWav } from '../../src/media/recording/mend-wav.ts';
import { test } from '../support/real-time.ts';
import { Harness } from './harness.ts';
import { presentDb, tone, wav } from './sound.ts';
import { Talker } from './talker.ts';

let harness: Harness;
let folder: string;
beforeAll(async () => {
  harness = await Harness.open({ workers: 2 });
  folder = await mkdtemp(join(tmpdir(), 'recordings-'));
});
afterAll(async () => {
  await harness.close();
  await rm(folder, { recursive: true });
});

/** A new file at each call: a try before this one may still write its own. */
let made = 0;
const fileOf = (name: string): string => join(folder, `${++made}-${name}.wav`);

/** The samples of a finished recording, whose header is checked. */
async function samplesOf(path: string): Promise<number[]> {
  const bytes = await readFile(path);
  expect(bytes.toString('latin1', 0, 4) + bytes.toString('latin1', 8, 16)).toBe('RIFFWAVEfmt ');
  expect(bytes.readUInt32LE(4)).toBe(bytes.length - 8);
  expect(bytes.readUInt32LE(40)).toBe(bytes.length - 44);
  expect([bytes.readUInt16LE(20), bytes.readUInt16LE(22), bytes.readUInt16LE(34)]).toEqual([1, 1, 16]);
  return Array.from({ length: (bytes.length - 44) / 2 }, (_, i) => bytes.readInt16LE(44 + 2 * i));
}

async function talking(hz: number): Promise<Talker> {
  const call = await harness.call();
  const talker = new Talker(call, hz, 'PCMU');
  call.leg.negotiate(call.peer.parameters());
  await call.leg.counters();
  talker.start();
  await call.notices.until(() => call.notices.of('media.started').length === 1);
  return talker;
}

describe('recordings of a call', () => {
  test('hold both directions mixed; masking one leaves the other as it is, with its gap kept or left out', async () => {
    const talker = await talking(440);
    const { leg, notices } = talker.call;
    harness.files.set('/high.wav', wav(tone(1000, 20, 8000, 0.2), 8000));
    leg.play({ operationUuid: 'p', playlist: await harness.admitted('/high.wav'), loop: 1, volume: 100 });
    await notices.until(() => notices.of('playback.started').length === 1);
    const paths = ['whole', 'silenced', 'shorter'].map(fileOf);
    const [whole, silenced, shorter] = paths.map((path, i) =>
      leg.record({ recordingUuid: `rec${i}`, path, includeGaps: i === 1 }),
    );
    await notices.until(() => notices.of('recording.started').length === 3);
    await talker.hears(20);
    silenced?.mask();
    shorter?.mask();
    const masked = await leg.counters();
    await talker.hears(50);
    silenced?.unmask();
    shorter?.unmask();
    const unmasked = await leg.counters();
    await talker.hears(20);
    for (const recording of [whole, silenced, shorter]) recording?.stop();
    await notices.until(() => notices.of('recording.ended').length === 3);
    const [all = [], silent = [], short = []] = await Promise.all(paths.map(samplesOf));
    expect(silent.length).toBe(all.length);
    // Masked and unmasked by the same orders: what is missing in one is silent in the other, to the sample.
    const gap = all.length - short.length;
    expect(gap % 160).toBe(0);
    // A frame goes out for each one that is recorded, and another may between an order and the count after it.
    expect(Math.abs(gap / 160 - (unmasked.packetsSent - masked.packetsSent))).toBeLessThanOrEqual(2);
    expect(gap / 160).toBeGreaterThan(20);
    const begins = silent.findIndex((_, i) => i % 160 === 0 && silent.slice(i, i + 160).every((sample) => sample === 0));
    expect(silent.slice(begins, begins + gap).every((sample) => sample === 0)).toBe(true);
    expect([...silent.slice(0, begins), ...silent.slice(begins + gap)]).toEqual(short);
    expect([...all.slice(0, begins), ...all.slice(begins + gap)]).toEqual(short);
    for (const samples of [all, short]) {
      expect(Math.abs(presentDb(samples.slice(800), 440, 8000) - talker.level)).toBeLessThan(0.5);
      expect(Math.abs(presentDb(samples.slice(800), 1000, 8000) - 20 * Math.log10(0.2))).toBeLessThan(0.5);
    }
    const told = notices.of('recording.ended').find(({ recordingUuid }) => recordingUuid === 'rec2');
    expect(told).toEqual({
      type: 'recording.ended',
      recordingUuid: 'rec2',
      durationMs: short.length / 8,
      bytes: 44 + short.length * 2,
    });
    await talker.end();
  });

  test('grow on disk while they last, and are playable after a crash', async () => {
    const talker = await talking(440);
    const { leg, notices } = talker.call;
    const path = fileOf('growing');
    leg.record({ recordingUuid: 'rec', path, includeGaps: true });
    await notices.until(() => notices.of('recording.started').length === 1);
    const before = (await readFile(path)).length;
    await talker.hears(25);
    const bytes = await readFile(path);
    expect(bytes.length - before).toBeGreaterThan(25 * 320 - 16 * 320); // all but what the last 80 ms and a busy machine hold
    expect([bytes.readUInt32LE(4), bytes.readUInt32LE(40)]).toEqual([0xffff_ffff, 0xffff_ffff]);
    const crashed = fileOf('crashed');
    await writeFile(crashed, bytes.subarray(0, 44 + 1_601));
    expect(await mendWav(crashed)).toEqual({ mended: true, bytes: 44 + 1_600, durationMs: 100 });
    expect(await mendWav(crashed)).toEqual({ mended: false, bytes: 44 + 1_600, durationMs: 100 });
    expect(await samplesOf(crashed)).toHaveLength(800);
    const other = fileOf('other');
    await writeFile(other, 'no WAV');
    expect(await mendWav(other)).toBeUndefined();
    await talker.end();
    await notices.until(() => notices.of('recording.ended').length === 1); // by the end of the leg
    expect((await samplesOf(path)).length * 2).toBeGreaterThanOrEqual(bytes.length - 44);
  });

  test('leave hold and interruptions out, and tell speech with the silence before it', async () => {
    const talker = await talking(440);
    const { leg, peer, notices } = talker.call;
    const path = fileOf('held');
    const recording = leg.record({
      recordingUuid: 'rec',
      path,
      includeGaps: false,
      voiceActivity: { sensitivity: 0.5, speechDurationMs: 60, silenceDurationMs: 200 },
    });
    await notices.until(() => notices.of('speech.started').length === 1);
    talker.say(0);
    await notices.until(() => notices.of('speech.ended').length === 1);
    await talker.hears(30);
    talker.say(440);
    await notices.until(() => notices.of('speech.started').length === 2);
    const [first, second] = notices.of('speech.started');
    expect(first?.precedingSilenceMs).toBeUndefined();
    expect(second?.precedingSilenceMs).toBeGreaterThanOrEqual(700);
    expect(second?.precedingSilenceMs).toBeLessThan(1_200);
    leg.negotiate(peer.parameters({ send: false }));
    await leg.counters();
    const held = performance.now();
    await notices.until(() => notices.of('speech.ended').length === 2);
    const { packetsReceived } = await leg.counters();
    // The peer speaks on, unheard, and in a burst where the machine was busy.
    while ((await leg.counters()).packetsReceived < packetsReceived + 15 || performance.now() - held < 500);
    leg.negotiate(peer.parameters());
    await talker.hears(10);
    recording.stop();
    await notices.until(() => notices.of('recording.ended').length === 1);
    const samples = await samplesOf(path);
    // It was heard as long as packets went out, which none did on hold.
    const sent = peer.heard.length * 160;
    expect(samples.length).toBeLessThanOrEqual(sent);
    expect(samples.length).toBeGreaterThan(sent - 20 * 160);
    await talker.end();
  });

  test('that cannot be written end with a reason, and the call goes on', async () => {
    const talker = await talking(440);
    const { leg, notices } = talker.call;
    leg.record({ recordingUuid: 'nowhere', path: join(folder, 'no/such/folder.wav'), includeGaps: true });
    leg.record({ recordingUuid: 'full', path: '/dev/full', includeGaps: true });
    await notices.until(() => notices.of('recording.failed').length === 2);
    expect(
      notices
        .of('recording.failed')
        .map(({ recordingUuid, reason }) => `${recordingUuid} ${reason}`)
        .sort(),
    ).toEqual(['full cannot_write', 'nowhere cannot_open']);
    const { packetsSent } = await leg.counters();
    while ((await leg.counters()).packetsSent < packetsSent + 5) await talker.hears(1);
    await talker.end();
    leg.record({ recordingUuid: 'late', path: join(folder, 'late.wav'), includeGaps: true });
    await notices.until(() => notices.of('recording.failed').length === 3);
    expect(notices.of('recording.failed').at(-1)).toEqual({
      type: 'recording.failed',
      recordingUuid: 'late',
      reason: 'media_unavailable',
      durationMs: 0,
    });
  });
});

describe('a recording of a room', () => {
  test('holds everyone; a recorded leg goes on being recorded when it moves to the room', async () => {
    const told: RoomNotice[] = [];
    const room = await harness.engine.openRoom((notice) => told.push(notice));
    if (room === undefined) throw new Error('no room');
    const talkers = await Promise.all([talking(440), talking(660)]);
    const [one, two] = talkers;
    const path = fileOf('leg');
    one?.call.leg.record({ recordingUuid: 'leg', path, includeGaps: true });
    await one?.call.notices.until(() => one.call.notices.of('recording.started').length === 1);
    for (const { call } of talkers) {
      call.leg.join(room, { muted: false, fromVolumePercent: 100, toVolumePercent: 100 });
      await call.notices.until(() => call.notices.of('room.joined').length === 1);
    }
    const mixed = fileOf('room');
    room.record({ recordingUuid: 'room', path: mixed, includeGaps: false });
    await two?.hears(30);
    await room.close();
    await two?.call.peer.until(() => told.some(({ type }) => type === 'recording.ended'));
    const samples = await samplesOf(mixed);
    // A talker of a busy machine may fall silent for a while: there are 400 ms in which both are heard.
    const off = (from: number) =>
      Math.max(...[440, 660].map((hz) => Math.abs(presentDb(samples.slice(from, from + 3_200), hz, 8000) - (one?.level ?? 0))));
    const places = Array.from(
      { length: Math.floor((samples.length - 3_200) / 160) + 1 },
      (_, at) => samples.length - 3_200 - at * 160,
    );
    expect(Math.min(...places.map(off))).toBeLessThan(0.6);
    await Promise.all(talkers.map((talker) => talker.end()));
    await one?.call.notices.until(() => one.call.notices.of('recording.ended').length === 1);
    const own = await samplesOf(path);
    const levels = (hz: number) =>
      [...Array(own.length - 1_600).keys()].filter((i) => i % 400 === 0).map((i) => presentDb(own.slice(i, i + 1_600), hz, 8000));
    // A talker that was held up leaves a gap that is concealed, so its level is that of the best 200 ms.
    expect(Math.min(...levels(440).map((level) => Math.abs(level - (one?.level ?? 0))))).toBeLessThan(1.5);
    expect(Math.max(...levels(660))).toBeGreaterThan(-13);
  });
});

test('a dozen recordings of one leg are made durable together, and are the same', async () => {
  const talker = await talking(440);
  const { leg, notices } = talker.call;
  const paths = Array.from({ length: 12 }, () => fileOf('dozen'));
  const recordings = paths.map((path) => leg.record({ recordingUuid: path, path, includeGaps: true }));
  await notices.until(() => notices.of('recording.started').length === 12);
  await talker.hears(10);
  for (const recording of recordings) recording.stop();
  await notices.until(() => notices.of('recording.ended').length === 12);
  const [first, ...others] = await Promise.all(paths.map(samplesOf));
  expect(first?.length).toBeGreaterThanOrEqual(10 * 160);
  for (const other of others) expect(other).toEqual(first ?? []);
  await talker.end();
});

test('an engine that is closed finishes the files of its recordings first', async () => {
  const own = await Harness.open();
  const call = await own.call();
  const talker = new Talker(call, 440, 'PCMU');
  call.leg.negotiate(call.peer.parameters());
  await call.leg.counters();
  talker.start();
  const path = fileOf('closed');
  call.leg.record({ recordingUuid: 'rec', path, includeGaps: true });
  await talker.hears(20);
  await own.close();
  expect(call.notices.of('recording.ended').length).toBe(1);
  expect((await samplesOf(path)).length).toBeGreaterThanOrEqual(10 * 160);
  await talker.end();
});
