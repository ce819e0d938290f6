/** Pipes between two nodes: both ends on one engine, a stream leg beside each. */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import type { MediaPipe, MediaRoom, PipeCodec } from '../../src/media/engine.ts';
import type { StreamFormat, StreamLeg } from '../../src/media/leg/stream.ts';
import { test } from '../support/real-time.ts';
import { Harness } from './harness.ts';
import { tone, toneSnrDb } from './sound.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open({ workers: 2 });
});
afterAll(() => harness.close());

const FREE = { muted: false, fromVolumePercent: 100, toVolumePercent: 100 };
const pcm = (rateHz: number): StreamFormat => ({ encoding: 'pcm_s16le', rateHz });
const mulaw: StreamFormat = { encoding: 'mulaw', rateHz: 8_000 };
/** The frames that a sound is judged by: 200 ms. */
const JUDGED = 10;

async function stream(fromSession: StreamFormat, toSession: StreamFormat, onFrame: (frame: Uint8Array) => void = () => {}) {
  const leg = await harness.engine.openStreamLeg(
    { fromSession, toSession, onFrame, onRoom() {}, onPlayed() {}, onMark() {} },
    () => {},
  );
  if (leg === undefined) throw new Error('no leg');
  return leg;
}

async function opened(): Promise<MediaRoom> {
  const room = await harness.engine.openRoom(() => {});
  if (room === undefined) throw new Error('no room');
  return room;
}

async function pipe(atOnce: boolean, onSilent: () => void = () => {}): Promise<MediaPipe> {
  const made = await harness.engine.openPipe({ host: '127.0.0.1', atOnce, notify() {}, onSilent });
  if (made === undefined) throw new Error('no ports');
  return made;
}

/** One stream says a tone, another hears it through a pipe; resolves with the best signal to noise of 200 ms, in dB. */
async function heardThrough(codec: PipeCodec, format: StreamFormat, hz: number, enoughDb: number): Promise<number> {
  const { rateHz } = format;
  const [local, mix] = await Promise.all([opened(), opened()]);
  const [near, far] = await Promise.all([pipe(true), pipe(false)]);
  near.connect(far.end, codec);
  far.connect(near.end, codec);
  const speaker = await stream(pcm(rateHz), format);
  let best = -Infinity;
  let ear: StreamLeg | undefined;
  await new Promise<void>((resolve) => {
    const last: Uint8Array[] = [];
    let frames = 0;
    void stream(pcm(rateHz), pcm(rateHz), (frame) => {
      last.push(frame.slice());
      if (last.length > JUDGED) last.shift();
      const samples = last.flatMap((bytes) => [...new Int16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2)]);
      if (samples.some((sample) => sample !== 0)) best = Math.max(best, toneSnrDb(samples, hz, rateHz));
      if (best > enoughDb || ++frames > 100) resolve();
    }).then((leg) => {
      ear = leg;
      leg.join(mix, FREE);
      far.join(mix, FREE);
      near.join(local, FREE);
      speaker.join(local, FREE);
      speaker.write(new Uint8Array(Int16Array.from(tone(hz, 5, rateHz, 0.25), (value) => value * 32_767).buffer));
    });
  });
  await Promise.all([near.close(), far.close(), speaker.close(), ear?.close()]);
  await Promise.all([local.close(), mix.close()]);
  return best;
}

describe('a pipe between two nodes', () => {
  test('of L16 carries the samples of a stream as they are, up to 12 kHz', async () => {
    for (const [codec, rateHz, hz] of [
      ['L16/8000', 8_000, 1_035],
      ['L16/16000', 16_000, 7_515],
      ['L16/24000', 24_000, 10_015],
      ['L16/24000', 48_000, 10_015],
    ] as const)
      expect(await heardThrough(codec, pcm(rateHz), hz, 60), codec).toBeGreaterThan(60);
  });

  test('of the older codecs has the noise of mu-law, or nothing above 7 kHz', async () => {
    expect(await heardThrough('PCMU', pcm(8_000), 1_035, 60)).toBeLessThan(45);
    expect(await heardThrough('G722', pcm(24_000), 10_015, 60)).toBeLessThan(10);
  });

  test('of L16 tells once that nothing comes for 300 ms', async () => {
    let silences = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const near = await pipe(true, () => {
      silences++;
      resolve();
    });
    const far = await pipe(false);
    const started = performance.now();
    near.connect(far.end, 'L16/16000');
    await promise;
    expect(performance.now() - started).toBeGreaterThan(280);
    far.connect(near.end, 'L16/16000');
    const counters = async () => (await near.counters()).packetsReceived;
    while ((await counters()) < 25);
    expect(silences).toBe(1);
    await Promise.all([near.close(), far.close()]);
  });

  test('is no call in the metrics: the call that it carries is counted with its own leg', async () => {
    const before = { ...harness.engine.traffic };
    const [near, far] = await Promise.all([pipe(true), pipe(false)]);
    near.connect(far.end, 'PCMU');
    far.connect(near.end, 'PCMU');
    while ((await near.counters()).packetsReceived < 5);
    expect((await near.close()).packetsReceived).toBeGreaterThanOrEqual(5);
    await far.close();
    expect({ ...harness.engine.traffic }).toEqual(before);
  });
});

describe('the codec of a pipe', () => {
  test('of a stream has the higher of its rates, at most 24 kHz, and mu-law for mu-law', async () => {
    for (const [from, to, codec] of [
      [pcm(8_000), pcm(8_000), 'L16/8000'],
      [pcm(8_000), pcm(16_000), 'L16/16000'],
      [pcm(24_000), pcm(16_000), 'L16/24000'],
      [pcm(48_000), pcm(48_000), 'L16/24000'],
      [mulaw, mulaw, 'PCMU'],
      [mulaw, pcm(24_000), 'L16/24000'],
    ] as const) {
      const leg = await stream(from, to);
      expect(leg.pipeCodec).toBe(codec);
      await leg.close();
    }
  });

  test('of a call is its own, so that packets are passed on undecoded, but for Opus', async () => {
    await using call = await harness.call();
    for (const codec of ['PCMU', 'PCMA', 'G722'] as const) {
      call.leg.negotiate(call.peer.parameters({ codec }));
      expect(call.leg.pipeCodec).toBe(codec);
    }
    call.leg.negotiate(call.peer.parameters({ codec: 'opus', payloadType: 111 }));
    expect(call.leg.pipeCodec).toBe('L16/24000');
  });
});
