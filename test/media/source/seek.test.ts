import { afterAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { silentLog } from '../../../src/log.ts';
import { DecoderThread } from '../../../src/media/decode/decoder.ts';
import { encoderTag, mpegFrame } from '../../../src/media/format/mpeg-frame.ts';
import { type FramedMpeg, MpegFramer } from '../../../src/media/format/mpeg-framer.ts';
import { MpegSeek } from '../../../src/media/format/mpeg-seek.ts';
import { FilesSource } from '../../../src/media/playback/files-source.ts';
import fc from '../../support/fast-check.ts';
import { tone, wav } from '../sound.ts';
import { FileServer } from './file-server.ts';

const decoders = new DecoderThread(silentLog);
const server = new FileServer();
afterAll(async () => {
  await decoders.close();
  await server.close();
});

const fixture = async (name: string) => new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture', name)).arrayBuffer());

/** A sweep is at no two places alike. */
function sweep(seconds: number, rateHz: number): Float64Array {
  return Float64Array.from({ length: Math.round(seconds * rateHz) }, (_, i) => {
    const t = i / rateHz;
    return 0.5 * Math.sin(2 * Math.PI * (300 * t + (450 * t * t) / seconds));
  });
}

const kinds: readonly (readonly [string, 'wav' | 'mpeg', Promise<Uint8Array<ArrayBuffer>>])[] = [
  ['WAV 8 kHz', 'wav', Promise.resolve(wav(sweep(2, 8000), 8000))],
  ['WAV 44.1 kHz stereo', 'wav', Promise.resolve(wav(sweep(2, 44_100), 44_100, 2))],
  ['MP3 CBR', 'mpeg', fixture('sweep-24k-mono-cbr.mp3')],
  ['MP3 VBR joint stereo with ID3', 'mpeg', fixture('sweep-44k-joint-vbr-id3.mp3')],
];

async function decoded(kind: 'wav' | 'mpeg', bytes: Uint8Array<ArrayBuffer>, skip: number, step: number) {
  const stream = await decoders.open(kind, 8000, skip);
  const parts: Int16Array[] = [];
  for (let at = 0; at < bytes.length; at += step) parts.push(await stream.push(bytes.slice(at, at + step)));
  const { pcm, samples } = await stream.end();
  stream.close();
  return { pcm: parts.concat(pcm).flatMap((part) => [...part]), samples };
}

/** The lag at which two sounds are most alike, in samples, and how alike: 1 is the same. */
function lag(sound: readonly number[], other: readonly number[]): { lag: number; alike: number } {
  let best = { lag: Number.NaN, alike: -1 };
  for (let shift = -80; shift <= 80; shift++) {
    let product = 0;
    let a = 0;
    let b = 0;
    for (let i = 200; i < Math.min(1200, sound.length, other.length) - 80; i++) {
      const x = sound[i] ?? 0;
      const y = other[i + shift] ?? 0;
      product += x * y;
      a += x * x;
      b += y * y;
    }
    const alike = product / Math.sqrt(a * b + 1);
    if (alike > best.alike) best = { lag: shift, alike };
  }
  return best;
}

describe('a place in a source', () => {
  for (const [name, kind, file] of kinds) {
    test(`is exact: ${name}`, async () => {
      const bytes = await file;
      const whole = await decoded(kind, bytes, 0, 16_384);
      expect(whole.samples).toBe(whole.pcm.length);
      for (const skip of [1, 160, 3_333, 8_000]) {
        if (skip + 1_500 > whole.pcm.length) continue;
        for (const step of [997, 16_384]) {
          const part = await decoded(kind, bytes, skip, step);
          const { lag: off, alike } = lag(part.pcm, whole.pcm.slice(skip));
          expect([skip, Math.abs(off) <= 1, alike > 0.98]).toEqual([skip, true, true]);
          expect(Math.abs(part.pcm.length - (whole.pcm.length - skip))).toBeLessThanOrEqual(1);
          expect(Math.abs(part.samples - whole.samples)).toBeLessThanOrEqual(1);
        }
      }
      const past = await decoded(kind, bytes, whole.samples + 5_000, 4_096);
      expect(past.pcm.length).toBe(0);
      expect(past.samples).toBe(whole.samples);
    });
  }

  test('is exact in MP3 files that were joined to one, each with the tag of its encoder', async () => {
    const one = await fixture('sweep-44k-joint-vbr-id3.mp3');
    const bytes = new Uint8Array(Buffer.concat([one, one, one]));
    const length = (await decoded('mpeg', one, 0, 16_384)).samples;
    const whole = await decoded('mpeg', bytes, 0, 16_384);
    expect(whole.samples).toBeGreaterThan(3 * length);
    // In the first, at and after its end, about the first frames and tag of the second, and in the third.
    const places = [160, length - 700, length, length + 1, length + 500, length + 4_608, length + 4_800, 2 * length + 1_000];
    for (const skip of places) {
      for (const step of [997, 16_384]) {
        const part = await decoded('mpeg', bytes, skip, step);
        const { lag: off, alike } = lag(part.pcm, whole.pcm.slice(skip));
        expect([skip, Math.abs(off) <= 1, alike > 0.98]).toEqual([skip, true, true]);
        expect(Math.abs(part.pcm.length - (whole.pcm.length - skip))).toBeLessThanOrEqual(1);
        expect(Math.abs(part.samples - whole.samples)).toBeLessThanOrEqual(1);
      }
    }
    const past = await decoded('mpeg', bytes, whole.samples + 5_000, 4_096);
    expect([past.pcm.length, Math.abs(past.samples - whole.samples) <= 1]).toEqual([0, true]);
  });

  test('is found in a playlist, in any of its passes', async () => {
    server.files.set('/a.wav', wav(tone(400, 0.505, 8000), 8000));
    server.files.set('/b.wav', wav(tone(900, 0.25, 8000), 8000));
    server.files.set('/c.wav', wav(tone(1500, 0.3, 8000), 8000));
    const sources = ['/a.wav', '/b.wav', '/c.wav'].map((path) => server.source(path));
    for (const source of sources) {
      expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
      source.hold(true);
    }
    const source = new FilesSource(sources, { loop: 3, rateHz: 8000, decoders });
    const from = async (place: number) => {
      const out: number[] = [];
      for await (const pcm of source.pcm(place)) out.push(...pcm);
      return out;
    };
    const whole = await from(0);
    expect(whole.length).toBe(3 * (4040 + 2000 + 2400));
    for (const place of [0, 1, 4039, 4040, 4041, 6040, 8440, 8441, 16_880, 20_000, 25_319, 25_320, 99_999]) {
      expect([place, await from(place)]).toEqual([place, whole.slice(place)]);
    }
    const endless = new FilesSource(sources, { loop: 0, rateHz: 8000, decoders });
    for await (const pcm of endless.pcm(8440 * 100_000_000 + 17)) {
      expect([...pcm.subarray(0, 500)]).toEqual(whole.slice(17, 517));
      break;
    }
    for (const source of sources) source.release();
  });
});

describe('seeking in an MP3', () => {
  test('gives the same frames however the file is cut, and never throws on noise', async () => {
    const bytes = await fixture('sweep-44k-joint-vbr-id3.mp3');
    const found = (step: number) => {
      const framer = new MpegFramer();
      const seek = new MpegSeek(9_000, 8_000);
      const out: Uint8Array[] = [];
      let reached = false;
      const take = (frames: readonly FramedMpeg[]) => {
        const given = reached ? frames : seek.push(frames);
        if (given === undefined) return;
        reached = true;
        out.push(...given.map((frame) => frame.bytes.slice()));
      };
      for (let at = 0; at < bytes.length; at += step) take(framer.push(bytes.subarray(at, at + step)));
      take(framer.end());
      return { discard: seek.discard, frames: Buffer.concat(out).toString('hex') };
    };
    const once = found(bytes.length);
    expect(once.frames.length).toBeGreaterThan(1_000);
    for (const step of [1, 10, 333, 5_000]) expect(found(step)).toEqual(once);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3_000 }), fc.integer({ min: 0, max: 40 }), (noise, at) => {
        const broken = bytes.slice(0, 6_000);
        broken.set(noise.subarray(0, 2_000), at * 90);
        new MpegSeek(5_000, 8_000).push(new MpegFramer().push(broken));
        const frame = mpegFrame(noise, 0);
        if (frame !== undefined) encoderTag(noise, 0, frame);
      }),
    );
  });
});
