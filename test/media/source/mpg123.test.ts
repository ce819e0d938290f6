/** mpg123 of the machine and mpg123 in WebAssembly: whichever decodes, the same is heard. */
import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { MpegDecoder } from '../../../src/media/decode/mpeg-decoder.ts';
import { openMpg123, openWasmMpg123 } from '../../../src/media/decode/mpg123.ts';
import { native } from '../../../src/media/native.ts';
import { layerOneTone } from './files.ts';

const fixture = async (name: string) => new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture', name)).arrayBuffer());

/** The sound of MPEG audio at 8 kHz, from `skip` samples on. */
async function sound(open: typeof openMpg123, bytes: Uint8Array, skip = 0): Promise<Int16Array> {
  const decoder = new MpegDecoder(open, 8_000, skip, () => {});
  const parts: Int16Array[] = [];
  for (let at = 0; at < bytes.length; at += 4_096) parts.push(await decoder.push(bytes.slice(at, at + 4_096)));
  parts.push(await decoder.end());
  decoder.close();
  return Int16Array.from(parts.flatMap((part) => [...part]));
}

const farthest = (one: Int16Array, other: Int16Array) =>
  one.reduce((most, sample, at) => Math.max(most, Math.abs(sample - (other[at] ?? 40_000))), 0);

const FILES = [
  'sweep-24k-mono-cbr.mp3',
  'sweep-44k-joint-vbr-id3.mp3',
  'tone-22k-mono.mp3',
  'tone-24k-joint-cbr.mp3',
  'tone-44k-stereo-vbr-id3.mp3',
];

// Without libmpg123 both would be the same code, and nothing would be compared.
const handle = native.mpegCreate();
if (handle !== undefined) native.mpegClose(handle);

describe.skipIf(handle === undefined)('mpg123 of the machine', () => {
  test.each(FILES)('gives the samples of mpg123 in WebAssembly, from the start and from a place: %s', async (name) => {
    const bytes = await fixture(name);
    for (const skip of [0, 1_234]) {
      const [here, there] = [await sound(openMpg123, bytes, skip), await sound(openWasmMpg123, bytes, skip)];
      expect(here.length).toBe(there.length);
      expect(here.length).toBeGreaterThan(1_000);
      expect(farthest(here, there)).toBeLessThanOrEqual(1);
    }
  });

  test('goes on behind a damaged place as mpg123 in WebAssembly does', async () => {
    const bytes = await fixture('sweep-24k-mono-cbr.mp3');
    const damaged = bytes.slice();
    damaged.fill(0x5a, 6_000, 6_400);
    const [here, there] = [await sound(openMpg123, damaged), await sound(openWasmMpg123, damaged)];
    expect(here.length).toBe(there.length);
    expect(farthest(here.slice(-8_000), there.slice(-8_000))).toBeLessThanOrEqual(1);
  });

  test('gives way to WebAssembly where the source goes on in another layer', async () => {
    const [three, one] = [await fixture('tone-24k-joint-cbr.mp3'), layerOneTone(100)];
    const heard = await sound(openMpg123, new Uint8Array(Buffer.concat([three, one, three])));
    const alone = await Promise.all([three, one].map((bytes) => sound(openMpg123, bytes)));
    const [ofThree = 0, ofOne = 0] = alone.map((pcm) => pcm.length);
    expect(ofOne).toBeGreaterThan(5_000);
    expect(heard.length).toBeGreaterThan(1.9 * ofThree + 0.9 * ofOne);
  });
});
