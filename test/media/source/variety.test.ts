/**
 * Files as other programs write them, and as networks and disks leave them: what a person could still hear is heard.
 */
import { afterAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { silentLog } from '../../../src/log.ts';
import { decodesAac } from '../../../src/media/decode/aac-decoder.ts';
import { DecoderThread } from '../../../src/media/decode/decoder.ts';
import { type AudioKind, sniff } from '../../../src/media/format/sniff.ts';
import fc from '../../support/fast-check.ts';
import { tone, toneShare } from '../sound.ts';
import { layerOneTone, wavFile } from './files.ts';

const decoders = new DecoderThread(silentLog);
afterAll(() => decoders.close());

const fixture = async (name: string) => new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture', name)).arrayBuffer());
const bytesOf = (...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.concat(parts));

/** What a source is recognised as, and its sound at 8 kHz. Rejects where it is refused or gives nothing. */
async function heard(file: Uint8Array, step = 1_000): Promise<{ readonly kind: AudioKind; readonly pcm: number[] }> {
  const sniffed = sniff(file, true);
  if (sniffed.found === 'unsupported' || sniffed.found === 'more' || sniffed.found === 'playlist') throw new Error(sniffed.found);
  const stream = await decoders.open(sniffed.found, 8_000);
  const pcm: number[] = [];
  try {
    for (let at = sniffed.from; at < file.length; at += step)
      pcm.push(...(await stream.push(new Uint8Array(file.subarray(at, at + step)))));
    pcm.push(...(await stream.end()).pcm);
  } finally {
    stream.close();
  }
  return { kind: sniffed.found, pcm };
}

/** Tells a file's verdict: its kind, whether it is the tone, its length in hundredths of a second. */
async function verdict(file: Uint8Array): Promise<readonly [string, boolean, number]> {
  const { kind, pcm } = await heard(file);
  return [kind, toneShare(pcm.slice(800, -800), 1_000) > 0.97, Math.round(pcm.length / 80)];
}

const second = tone(1_000, 1, 8_000);

describe('a WAV', () => {
  const rows: readonly (readonly [string, Uint8Array])[] = [
    ['12 bits in two bytes', wavFile(second, { bits: 12, bytes: 2 })],
    ['20 bits in three bytes', wavFile(second, { bits: 20, bytes: 3 })],
    ['24 bits in four bytes', wavFile(second, { bits: 24, bytes: 4 })],
    ['64 bits', wavFile(second, { bits: 64, bytes: 8 })],
    ['a block size of 0', wavFile(second, { blockBytes: 0 })],
    ['six channels', wavFile(second, { channels: 6 })],
    ['six channels of 24 bits', wavFile(second, { channels: 6, bits: 24, bytes: 3 })],
    ['EXTENSIBLE, whose format is cut short', wavFile(second, { tag: 0xfffe })],
    ['a picture of 3 MiB before its data', wavFile(second, { before: 3 * 1024 * 1024 })],
    ['a part of odd size without its padding', wavFile(second, { before: 33, unpadded: true })],
    ['the size 0x7ffff000 of a writer that could not know it', wavFile(second, { size: 0x7ffff000 })],
    ['the size 0x7fffffff less a header', wavFile(second, { size: 0x7fffffff - 36 })],
    ['the size 0xffffffff', wavFile(second, { size: 0xffffffff })],
    ['the size 0 of a writer that never came back', wavFile(second, { size: 0 })],
    ['a size one byte larger than there is', wavFile(second, { size: 16_001 })],
    ['RIFX', wavFile(second, { flavour: 'RIFX' })],
    ['RF64', wavFile(second, { flavour: 'RF64' })],
    ['W64', wavFile(second, { flavour: 'W64' })],
    ['W64 of FFmpeg, which could not know the size', wavFile(second, { flavour: 'W64', size: 0x7fff_ffff_ffff_ffffn })],
    ['W64 of a size that has all bits set', wavFile(second, { flavour: 'W64', size: 0xffff_ffff_ffff_ffffn })],
    ['an ID3 tag before it', bytesOf(id3(5_000), wavFile(second, {}))],
  ];
  for (const [name, file] of rows) {
    test(`is heard: ${name}`, async () => {
      expect(await verdict(file)).toEqual(['wav', true, 100]);
    });
  }

  const codecs: readonly (readonly [string, string])[] = [
    ['GSM 6.10', 'tone-gsm.wav'],
    ['IMA ADPCM', 'tone-ima.wav'],
    ['IMA ADPCM in stereo', 'tone-ima-stereo.wav'],
    ['Microsoft ADPCM', 'tone-ms.wav'],
    ['Microsoft ADPCM in stereo', 'tone-ms-stereo.wav'],
    ['MP3', 'tone-mp3.wav'],
  ];
  for (const [name, file] of codecs) {
    test(`is heard: ${name}`, async () => {
      const [kind, isTone, length] = await verdict(await fixture(file));
      expect([kind, isTone, Math.abs(length - 103) <= 4]).toEqual(['wav', true, true]);
    });
  }

  test('of size 0 is empty where other parts follow it, or nothing', async () => {
    const empty = wavFile(new Float64Array(0), {});
    expect((await heard(empty)).pcm).toEqual([]);
    const list = new TextEncoder().encode('LIST\x04\x00\x00\x00INFO');
    expect((await heard(bytesOf(empty, list))).pcm).toEqual([]);
  });

  test('is heard as far as it goes, wherever it is cut and whatever its size says', async () => {
    const whole = wavFile(second, {});
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 44, max: whole.length }), fc.integer({ min: 1, max: 3_000 }), async (length, step) => {
        const { pcm } = await heard(whole.subarray(0, length), step);
        expect(pcm.length).toBe((length - 44) >> 1);
      }),
      { numRuns: 40 },
    );
  });
});

describe('MPEG audio', () => {
  const mp3 = () => fixture('sweep-24k-mono-cbr.mp3');
  const around = async (before: Uint8Array, after = new Uint8Array(0)) => bytesOf(before, await mp3(), after);
  const rubbish = (length: number) => Uint8Array.from({ length }, (_, i) => (i * 7919 + (i >> 3)) % 251);

  const rows: readonly (readonly [string, () => Promise<Uint8Array>])[] = [
    ['a byte of rubbish before it', () => around(rubbish(1))],
    ['60 kB of rubbish before it', () => around(rubbish(60_000))],
    ['zeros before it', () => around(new Uint8Array(100_000))],
    ['an APE tag before it', () => around(ape(70_000))],
    [
      'an APE tag and an ID3v1 tag after it',
      () => around(new Uint8Array(0), bytesOf(ape(300), new TextEncoder().encode('TAG'.padEnd(128)))),
    ],
    ['an ID3 tag of 9 MB before it', () => around(id3(9_000_000))],
    ['a VBRI frame longer than its header says', () => around(vbri(1_440))],
    ['two ID3 tags and zeros before it', () => around(bytesOf(id3(700), id3(80_000), new Uint8Array(4_000)))],
  ];
  for (const [name, file] of rows) {
    test(`is heard whole: ${name}`, async () => {
      const { kind, pcm } = await heard(await file(), 30_000);
      const clean = await heard(await mp3());
      expect([kind, pcm.length]).toEqual(['mpeg', clean.pcm.length]);
    });
  }

  test('is heard from any byte on, once the decoder has the bits of earlier frames that it needs', async () => {
    const whole = await mp3();
    const clean = (await heard(whole)).pcm.length;
    for (let cut = 1; cut < 4_000; cut += 97) {
      const { pcm } = await heard(whole.subarray(cut));
      const missing = clean - pcm.length - (clean * cut) / whole.length;
      expect([cut, missing < 6 * 192 + 200]).toEqual([cut, true]);
    }
  });

  test('loses no more than a second of itself to a damaged place', async () => {
    const whole = await mp3();
    const clean = (await heard(whole)).pcm.length;
    await fc.assert(
      fc.asyncProperty(
        fc.double({ min: 0.1, max: 0.9, noNaN: true }),
        fc.integer({ min: 1, max: 800 }),
        fc.boolean(),
        async (where, length, cut) => {
          const at = Math.floor(where * whole.length);
          const damaged = cut ? bytesOf(whole.subarray(0, at), whole.subarray(at + length)) : whole.slice();
          if (!cut) damaged.set(rubbish(length), at);
          expect(Math.abs((await heard(damaged)).pcm.length - clean)).toBeLessThan(8_000);
        },
      ),
      { numRuns: 40 },
    );
  });

  test('is heard of layer II, and of layer I', async () => {
    const [kind, isTone] = await verdict(await fixture('tone-layer2.mp2'));
    expect([kind, isTone]).toEqual(['mpeg', true]);
    const layerOne = await heard(layerOneTone(40));
    expect([layerOne.kind, Math.abs(layerOne.pcm.length - (40 * 384 * 8_000) / 32_000) < 200]).toEqual(['mpeg', true]);
    expect(Math.max(...layerOne.pcm)).toBeGreaterThan(3_000);
  });

  test('is heard of free format, whose frames do not name their length', async () => {
    const named = (await mp3()).slice(192 * 2);
    const free = named.slice();
    for (let at = 0; at < free.length; at += 192) free[at + 2] = (free[at + 2] ?? 0) & 0x0f;
    const { kind, pcm } = await heard(free);
    const clean = await heard(named);
    expect([kind, clean.pcm.length - pcm.length <= 4 * 192]).toEqual(['mpeg', true]);
  });

  test('is heard inside a transport stream, as HLS has it', async () => {
    const [kind, isTone] = await verdict(await fixture('tone-mp3.mpegts'));
    expect([kind, isTone]).toEqual(['mpegts', true]);
  });
});

describe.skipIf(!decodesAac())('AAC', () => {
  for (const [name, kind, file] of [
    ['in ADTS', 'aac', 'tone-aac.aac'],
    ['in a transport stream', 'mpegts-aac', 'tone-aac.mpegts'],
  ] as const) {
    test(`is heard ${name}, in pieces of any size`, async () => {
      const bytes = await fixture(file);
      const [found, isTone, length] = await verdict(bytes);
      expect([found, isTone, Math.abs(length - 105) <= 5]).toEqual([kind, true, true]);
      const once = await heard(bytes);
      for (const step of [1, 61, 4_096]) expect((await heard(bytes, step)).pcm).toEqual(once.pcm);
    });
  }

  test('is heard from any byte of a mount on, and over a tag between two segments', async () => {
    const whole = await fixture('tone-aac.aac');
    const clean = (await heard(whole)).pcm.length;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 2_000 }), async (from) => {
        const { kind, pcm } = await heard(whole.subarray(from));
        expect([kind, pcm.length > clean - 5_000]).toEqual(['aac', true]);
      }),
      { numRuns: 30 },
    );
    const tag = bytesOf(new TextEncoder().encode('ID3\x04\0\0\0\0\0\x3f'), new Uint8Array(63).fill(0x50));
    const twice = await heard(bytesOf(tag, whole, tag, whole));
    expect(Math.abs(twice.pcm.length - 2 * clean)).toBeLessThan(400);
  });

  test('is no AAC for bytes at random, and its frames are never taken for MPEG audio', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 4_000, maxLength: 8_000 }), (noise) => {
        expect(['unsupported', 'playlist']).toContain(sniff(noise, true).found);
      }),
      // Two headers of a frame that agree do come up in enough noise: these arrays have none.
      { numRuns: 100, seed: 1 },
    );
  });
});

describe('Ogg and FLAC', () => {
  const rows: readonly (readonly [string, AudioKind, string])[] = [
    ['Ogg Opus', 'opus', 'tone-opus.ogg'],
    ['Ogg Vorbis in stereo', 'vorbis', 'tone-vorbis.ogg'],
    ['FLAC', 'flac', 'tone.flac'],
    ['FLAC in Ogg', 'flac', 'tone-flac.ogg'],
  ];
  for (const [name, kind, file] of rows) {
    test(`are heard: ${name}, in pieces of any size, and chained where it is Ogg`, async () => {
      const bytes = await fixture(file);
      const [found, isTone, length] = await verdict(bytes);
      expect([found, isTone, Math.abs(length - 100) <= 1]).toEqual([kind, true, true]);
      const once = await heard(bytes);
      for (const step of [1, 61, 4_096]) expect((await heard(bytes, step)).pcm).toEqual(once.pcm);
      if (!file.endsWith('.ogg')) return;
      const twice = await heard(bytesOf(bytes, bytes));
      expect(Math.abs(twice.pcm.length - 2 * once.pcm.length)).toBeLessThan(100);
    });

    test(`lose to a damaged place only what lies there: ${name}`, async () => {
      const bytes = await fixture(file);
      const three = bytesOf(bytes, bytes, bytes);
      const clean = (await heard(three)).pcm.length;
      for (const where of [0.45, 0.5, 0.6]) {
        const at = Math.floor(where * three.length);
        const holed = bytesOf(three.subarray(0, at), three.subarray(at + 40));
        const garbled = three.slice();
        for (let i = 0; i < 40; i++) garbled[at + i] = (garbled[at + i] ?? 0) ^ 0x5a;
        for (const damaged of [holed, garbled]) {
          const { pcm } = await heard(damaged);
          expect([where, clean - pcm.length < clean * 0.4]).toEqual([where, true]);
        }
      }
    });
  }
});

/** An ID3v2.4 tag of that size, with a byte in it that looks like a frame. */
function id3(bytes: number): Uint8Array {
  const tag = new Uint8Array(bytes).fill(0x41);
  const size = bytes - 10;
  tag.set([0x49, 0x44, 0x33, 4, 0, 0, (size >> 21) & 0x7f, (size >> 14) & 0x7f, (size >> 7) & 0x7f, size & 0x7f]);
  tag.set([0xff, 0xfb, 0x90, 0x00], 20);
  return tag;
}

/** The frame of Fraunhofer's encoder before the first, with a table that is longer than the frame its header names. */
function vbri(bytes: number): Uint8Array {
  const frame = new Uint8Array(bytes).fill(0x11);
  frame.set([0xff, 0xf3, 0x84, 0xc4]); // MPEG 2 layer III, 64 kbit/s, 24 kHz: 192 bytes
  frame.set(new TextEncoder().encode('VBRI'), 36);
  return frame;
}

/** An APEv2 tag with a header. */
function ape(bytes: number): Uint8Array {
  const tag = new Uint8Array(bytes).fill(0x42);
  tag.set(new TextEncoder().encode('APETAGEX'));
  const view = new DataView(tag.buffer);
  view.setUint32(8, 2_000, true);
  view.setUint32(12, bytes - 32, true);
  view.setUint32(20, 0xa0000000, true);
  return tag;
}
