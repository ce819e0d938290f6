import { afterAll, beforeAll, expect } from 'bun:test';
import { join } from 'node:path';
import { test } from '../../support/real-time.ts';
import { Harness } from '../harness.ts';
import { mulawSample, tone, toneShare } from '../sound.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness.close());

type Sample = 'u8' | 's16' | 's24' | 'f32' | 'mulaw';

/** G.711 mu-law by its formula (ITU-T G.711 table 2a). */
function mulaw(value: number): number {
  const sign = value < 0 ? 0x80 : 0;
  const magnitude = Math.min(Math.abs(Math.round(value * 32_767)), 32_635) + 132;
  const exponent = Math.max(0, Math.floor(Math.log2(magnitude)) - 7);
  return ~(sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 15)) & 0xff;
}

const WRITE: Readonly<Record<Sample, { tag: number; bytes: number; put(view: DataView, at: number, value: number): void }>> = {
  u8: { tag: 1, bytes: 1, put: (view, at, value) => view.setUint8(at, Math.round(value * 127) + 128) },
  s16: { tag: 1, bytes: 2, put: (view, at, value) => view.setInt16(at, Math.round(value * 32_767), true) },
  s24: {
    tag: 1,
    bytes: 3,
    put(view, at, value) {
      const whole = Math.round(value * 8_388_607);
      view.setUint16(at, whole & 0xffff, true);
      view.setInt8(at + 2, whole >> 16);
    },
  },
  f32: { tag: 3, bytes: 4, put: (view, at, value) => view.setFloat32(at, value, true) },
  mulaw: { tag: 7, bytes: 1, put: (view, at, value) => view.setUint8(at, mulaw(value)) },
};

function wavOf(hz: number, rateHz: number, sample: Sample, channels: number): Uint8Array<ArrayBuffer> {
  const { tag, bytes, put } = WRITE[sample];
  const sound = tone(hz, 0.3, rateHz);
  const size = sound.length * channels * bytes;
  const view = new DataView(new ArrayBuffer(44 + size));
  const text = (at: number, id: string) => new Uint8Array(view.buffer).set(new TextEncoder().encode(id), at);
  text(0, 'RIFF');
  view.setUint32(4, 36 + size, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, tag, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rateHz, true);
  view.setUint32(28, rateHz * channels * bytes, true);
  view.setUint16(32, channels * bytes, true);
  view.setUint16(34, 8 * bytes, true);
  text(36, 'data');
  view.setUint32(40, size, true);
  sound.forEach((value, i) => {
    for (let channel = 0; channel < channels; channel++) put(view, 44 + (i * channels + channel) * bytes, value);
  });
  return new Uint8Array(view.buffer);
}

test('every format of WAV and MP3 is heard as its tone, in order, without a gap', async () => {
  const fixture = async (name: string) => new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture', name)).arrayBuffer());
  const list: readonly (readonly [number, number, Uint8Array<ArrayBuffer>])[] = [
    [400, 0.3, wavOf(400, 8_000, 's16', 1)],
    [600, 0.3, wavOf(600, 16_000, 'u8', 1)],
    [800, 0.3, wavOf(800, 24_000, 's24', 2)],
    [1300, 0.6, await fixture('tone-24k-joint-cbr.mp3')],
    [500, 0.3, wavOf(500, 44_100, 's16', 2)],
    [700, 0.3, wavOf(700, 48_000, 'f32', 2)],
    [1000, 1.5, await fixture('tone-44k-stereo-vbr-id3.mp3')],
    [900, 0.3, wavOf(900, 8_000, 'mulaw', 1)],
    [300, 0.3, wavOf(300, 48_000, 's24', 1)],
    [1100, 0.3, wavOf(1100, 8_000, 'u8', 2)],
  ];
  const paths = list.map(([, , bytes], i) => {
    harness.files.set(`/format-${i}`, bytes);
    return `/format-${i}`;
  });
  await using call = await harness.call();
  call.leg.negotiate(call.peer.parameters());
  call.leg.play({ operationUuid: 'op', playlist: await harness.admitted(...paths), loop: 1, volume: 100 });
  await call.notices.until(() => call.notices.of('playback.completed').length === 1);
  const packets = call.peer.heard.map((packet) => [...packet.payload].map(mulawSample));
  const loud = (pcm: readonly number[]) => pcm.some((sample) => Math.abs(sample) > 2_000);
  const first = packets.findIndex(loud);
  const last = packets.findLastIndex(loud);
  const heard = packets.slice(first, last + 1);
  expect(heard.flatMap((pcm, i) => (loud(pcm) ? [] : [i]))).toEqual([]);
  let at = 0;
  for (const [hz, seconds] of list) {
    const middle = heard.slice(Math.round((at + 0.06) * 50), Math.round((at + seconds - 0.06) * 50)).flat();
    expect([hz, toneShare(middle, hz) > 0.97]).toEqual([hz, true]);
    at += seconds;
  }
  expect(Math.abs(heard.length - at * 50)).toBeLessThanOrEqual(5);
}, 15_000);
