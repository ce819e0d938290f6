import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { test } from '../support/real-time.ts';
import { type Call, Harness } from './harness.ts';
import { mulawSample, tone, wav } from './sound.ts';

const HZ = 8000;
let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
  harness.files.set('/sweep.wav', wav(SWEEP, HZ));
  harness.files.set('/low.wav', wav(tone(300, 4, HZ), HZ));
  harness.files.set('/high.wav', wav(tone(500, 4, HZ), HZ));
});
afterAll(() => harness.close());

/** No two places of it are alike. */
const SWEEP = Float64Array.from(
  { length: 20 * HZ },
  (_, i) => 0.5 * Math.sin(2 * Math.PI * (300 * (i / HZ) + 60 * (i / HZ) ** 2)),
);

const heard = (call: Call, from = 0): number[] =>
  call.peer.heard.slice(from).flatMap((packet) => [...packet.payload].map(mulawSample));

/** The place near `around` that a sound of 25 ms was taken from, in samples, or undefined when it was not. */
function placeOf(pcm: readonly number[], around: number): number | undefined {
  const size = 200;
  let best = { place: 0, alike: 0 };
  for (let place = Math.max(0, around - 2_400); place < around + 2_400 && place + size <= SWEEP.length; place++) {
    let product = 0;
    let a = 0;
    let b = 0;
    for (let i = 0; i < size; i++) {
      const x = pcm[i] ?? 0;
      const y = (SWEEP[place + i] ?? 0) * 32767;
      product += x * y;
      a += x * x;
      b += y * y;
    }
    const alike = product / Math.sqrt(a * b + 1);
    if (alike > best.alike) best = { place, alike };
  }
  return best.alike > 0.995 ? best.place : undefined;
}

/** The largest step from one sample to the next. */
const steepest = (pcm: readonly number[]): number =>
  pcm.reduce((most, sample, i) => Math.max(most, Math.abs(sample - (pcm[i - 1] ?? sample))), 0);
const quiet = (packet: { payload: Buffer }): boolean => packet.payload.every((octet) => Math.abs(mulawSample(octet)) < 200);

async function playing(paths: string[] = ['/sweep.wav'], loop = 1): Promise<Call> {
  const call = await harness.call();
  call.leg.negotiate(call.peer.parameters());
  call.leg.play({ operationUuid: 'op', playlist: await harness.admitted(...paths), loop, volume: 100 });
  await call.notices.until(() => call.notices.of('playback.started').length === 1);
  return call;
}

/** Waits for so many more packets and returns the index of the first of them. */
async function packets(call: Call, count: number): Promise<number> {
  const from = call.peer.heard.length;
  await call.peer.until(() => call.peer.heard.length >= from + count);
  return from;
}

/**
 * Waits until what is heard is of the sweep near `place`; returns how far into it, or before it, the first such sound
 * was, in ms.
 */
async function hears(call: Call, place: number): Promise<number> {
  let off = Number.NaN;
  let looked = call.peer.heard.length;
  await call.peer.until(() => {
    while (looked + 3 <= call.peer.heard.length) {
      const found = placeOf(heard(call, looked++).slice(100, 300), place + 100);
      if (found === undefined) continue;
      off = Math.abs(found - 100 - place) / 8;
      return true;
    }
    return false;
  });
  return off;
}

describe('a playback', () => {
  test('moves to a position, forward, back and to its start, and that position is heard', async () => {
    await using call = await playing();
    for (const positionMs of [12_000, 3_210, 0, 19_000]) {
      call.leg.controlPlayback('op', { type: 'seek', place: { positionMs } });
      expect(await hears(call, positionMs * 8)).toBeLessThan(20);
    }
    call.leg.controlPlayback('op', { type: 'restart' });
    expect(await hears(call, 0)).toBeLessThan(20);
    expect(call.notices.types().filter((type) => type.startsWith('playback'))).toEqual(['playback.started']);
  });

  test('moves from where it is heard, also several times at once; before the start is the start', async () => {
    await using call = await playing();
    await packets(call, 10);
    const before = 160 * (call.peer.heard.length - call.peer.heard.findIndex((packet) => !quiet(packet)));
    call.leg.controlPlayback('op', { type: 'seek', place: { offsetMs: 2_000 } });
    call.leg.controlPlayback('op', { type: 'seek', place: { offsetMs: 3_000 } });
    call.leg.controlPlayback('op', { type: 'seek', place: { offsetMs: -1_000 } });
    const off = await hears(call, before + 4_000 * 8);
    expect(off).toBeLessThan(250); // what passed on the way; its exactness is the test above's
    call.leg.controlPlayback('op', { type: 'seek', place: { offsetMs: -100_000 } });
    expect(await hears(call, 0)).toBeLessThan(20);
  });

  test('moved past its end completes', async () => {
    await using call = await playing();
    call.leg.controlPlayback('op', { type: 'seek', place: { positionMs: 20_001 } });
    await call.notices.until(() => call.notices.of('playback.completed').length === 1);
    call.leg.controlPlayback('op', { type: 'seek', place: { positionMs: 0 } });
    expect(call.notices.types().filter((type) => type.startsWith('playback'))).toEqual([
      'playback.started',
      'playback.completed',
    ]);
  });

  test('is held where it is, silent, and goes on from there', async () => {
    await using call = await playing();
    await packets(call, 10);
    call.leg.controlPlayback('op', { type: 'pause' });
    call.leg.controlPlayback('op', { type: 'pause' });
    await call.peer.until(() => call.peer.heard.slice(-5).every(quiet));
    const silence = call.peer.heard.findIndex((packet, i) => i > 5 && quiet(packet));
    const began = call.peer.heard.findIndex((packet) => !quiet(packet));
    const held = 160 * (silence - began);
    call.leg.controlPlayback('op', { type: 'resume' });
    await call.peer.until(() => !quiet(call.peer.heard.at(-1) ?? { payload: Buffer.alloc(0) }));
    const again = call.peer.heard.length - 1;
    await packets(call, 4);
    const resumed = placeOf(heard(call, again + 1).slice(0, 200), held + 160) ?? Number.NaN;
    expect(Math.abs(resumed - held - 160)).toBeLessThanOrEqual(330);
    expect(steepest(heard(call))).toBeLessThan(8_000);
  });

  test('is replaced by another without a gap or a click, and stops without a click', async () => {
    await using call = await playing(['/low.wav']);
    await packets(call, 10);
    const from = call.peer.heard.length - 5;
    call.leg.play({ operationUuid: 'next', playlist: await harness.admitted('/high.wav'), loop: 1, volume: 100 });
    await call.notices.until(() => call.notices.of('playback.started').length === 2);
    await packets(call, 10);
    expect(call.peer.heard.slice(from).some(quiet)).toBe(false);
    call.leg.stopPlayback('next');
    await call.peer.until(() => quiet(call.peer.heard.at(-1) ?? { payload: Buffer.alloc(0) }));
    // A sine of 500 Hz at half scale moves by 6,400 a sample at most.
    expect(steepest(heard(call, from))).toBeLessThan(7_500);
  });

  test('is not moved by an order for another one', async () => {
    await using call = await playing();
    call.leg.controlPlayback('other', { type: 'seek', place: { positionMs: 20_001 } });
    call.leg.controlPlayback('other', { type: 'pause' });
    await packets(call, 10);
    expect(quiet(call.peer.heard.at(-1) ?? { payload: Buffer.alloc(0) })).toBe(false);
  });

  test('can be moved back after all of it was fed, and after a source that failed', async () => {
    harness.files.set('/short.wav', wav(SWEEP.slice(0, 2 * HZ), HZ));
    const noise = wav(SWEEP, HZ).slice(0, 20_001);
    new DataView(noise.buffer).setUint16(20, 0x55, true); // MPEG audio inside a WAV, which this is not
    harness.files.set('/noise.wav', noise);
    await using call = await playing(['/short.wav', '/noise.wav']);
    // It has left the surroundings of the place that it is moved to, however late it is moved.
    await packets(call, 60);
    call.leg.controlPlayback('op', { type: 'seek', place: { positionMs: 500 } });
    expect(await hears(call, 4_000)).toBeLessThan(20);
    await call.notices.until(() => call.notices.of('playback.failed').length === 1);
    expect(call.notices.of('playback.failed')[0]).toMatchObject({ reason: 'decode_error', sourceIndex: 1 });
  });
});
