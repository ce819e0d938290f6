/** Files of another rate than the leg's follow each other as if they were one. */
import { afterAll, describe, expect, spyOn, test } from 'bun:test';
import { silentLog } from '../../../src/log.ts';
import { DecoderThread } from '../../../src/media/decode/decoder.ts';
import { FilesSource } from '../../../src/media/playback/files-source.ts';
import { tone, wav } from '../sound.ts';
import { FileServer } from './file-server.ts';

const decoders = new DecoderThread(silentLog);
const server = new FileServer();
afterAll(async () => {
  await decoders.close();
  await server.close();
});

/** A playlist of these files at 8 kHz, and the sound of it from a place on. */
async function playlist(bytes: readonly Uint8Array<ArrayBuffer>[], loop: number) {
  const sources = bytes.map((file, index) => {
    server.files.set(`/${index}.wav`, file);
    return server.source(`/${index}.wav`);
  });
  for (const source of sources) {
    expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
    source.hold(true);
  }
  const source = new FilesSource(sources, { loop, rateHz: 8000, decoders });
  return {
    from: async (place: number) => {
      const out: number[] = [];
      for await (const pcm of source.pcm(place)) out.push(...pcm);
      return out;
    },
    release: () => {
      for (const each of sources) each.release();
    },
  };
}

/** The largest difference between two sounds of one length, as a part of the tone's amplitude. */
const difference = (one: readonly number[], other: readonly number[]) =>
  Math.max(...one.map((sample, i) => Math.abs(sample - (other[i] ?? 0)))) / 16_384;

/** One channel is read by the addon, three are unpacked in script. */
const kinds = [16_000, 44_100, 48_000].flatMap((rateHz) => [1, 3].map((channels) => ({ rateHz, channels })));

describe('files at another rate than the leg’s', () => {
  for (const { rateHz, channels } of kinds) {
    test(`are one tone where it was cut in three, from any place: ${rateHz} Hz, ${channels} channels`, async () => {
      const whole = tone(440, 0.6, rateHz);
      const third = whole.length / 3;
      const cut = [0, 1, 2].map((piece) => wav(whole.slice(piece * third, (piece + 1) * third), rateHz, channels));
      const joined = await playlist(cut, 1);
      const heard = await joined.from(0);
      const uncut = await playlist([wav(whole, rateHz, channels)], 1);
      const expected = await uncut.from(0);
      expect(heard.length).toBe(4_800);
      expect(expected.length).toBe(4_800);
      // It was the whole amplitude: 23 samples of silence at each join.
      expect(difference(heard, expected)).toBeLessThan(0.01);
      for (const place of [1, 1_599, 1_600, 1_601, 3_333, 4_799, 4_800])
        expect([place, await joined.from(place)]).toEqual([place, heard.slice(place)]);
      joined.release();
      uncut.release();
    });

    test(`loop without growing: ${rateHz} Hz, ${channels} channels`, async () => {
      const looped = await playlist([wav(tone(440, 1, rateHz), rateHz, channels)], 10);
      const heard = await looped.from(0);
      expect(heard.length).toBe(80_000);
      const exact = tone(440, 10, 8000).map((sample) => Math.round(sample * 32_767));
      expect(difference(heard, [...exact])).toBeLessThan(0.02);
      looped.release();
    });
  }
});

test('A short playlist that is repeated is decoded once, and is the same from any place', async () => {
  const opened = spyOn(decoders, 'open');
  const [one, other] = [Float64Array.of(0.25, 0.5, -0.5), Float64Array.of(0.125, -0.25)];
  const repeated = await playlist([wav(one, 8_000), wav(other, 8_000)], 5_000);
  const whole = await repeated.from(0);
  const pass = [...one, ...other].map((value) => Math.round(value * 32_767));
  expect(whole).toEqual(Array.from({ length: 25_000 }, (_, at) => pass[at % 5] ?? 0));
  for (const place of [1, 7, 12_503, 24_999]) expect(await repeated.from(place)).toEqual(whole.slice(place));
  expect(await repeated.from(25_000)).toEqual([]);
  // Twice for what is skipped in part, and twice for the pass after that, at each place.
  expect(opened.mock.calls.length).toBeLessThan(24);
  opened.mockRestore();
  repeated.release();
});
