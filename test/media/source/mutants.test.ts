/**
 * Damaged files, thousands of them, through what a playback puts them through: recognised, decoded, closed. None may
 * crash, hang, or keep memory; a file whose sound alone is damaged is still heard.
 */
import { afterAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { Log } from '../../../src/log.ts';
import { decodesAac } from '../../../src/media/decode/aac-decoder.ts';
import { DecodeError, DecoderThread } from '../../../src/media/decode/decoder.ts';
import { sniff } from '../../../src/media/format/sniff.ts';
import { seeded } from '../../support/random.ts';
import { tone } from '../sound.ts';
import { layerOneTone, wavFile } from './files.ts';

const troubles: string[] = [];
const quiet = () => {};
const log: Log = { debug: quiet, info: quiet, warn: quiet, error: (_, message) => void troubles.push(message ?? '') };
const decoders = new DecoderThread(log);
afterAll(() => decoders.close());

type Bytes = Uint8Array<ArrayBuffer>;
const fixture = async (name: string): Promise<Bytes> =>
  new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture', name)).arrayBuffer());

/** Whole numbers below the one that is asked for, the same in every run. */
function random(seed: number): (below: number) => number {
  const next = seeded(seed);
  return (below) => Math.floor(next() * below);
}

const EDGES = [0, 1, 0x7f, 0x80, 0xff];

/** One mutant: a few changes at or after `from`. */
function mutant(whole: Bytes, from: number, draw: (below: number) => number): Bytes {
  let bytes = whole.slice();
  for (let change = 1 + draw(4); change > 0; change--) {
    const at = from + draw(Math.max(1, bytes.length - from));
    const length = 1 + draw(64);
    const cut = (...parts: Uint8Array[]): Bytes => new Uint8Array(Buffer.concat(parts));
    switch (draw(7)) {
      case 0:
        bytes[at] = (bytes[at] ?? 0) ^ (1 << draw(8));
        break;
      case 1:
        bytes[at] = EDGES[draw(EDGES.length)] ?? 0;
        break;
      case 2:
        bytes.fill(EDGES[draw(EDGES.length)] ?? 0, at, at + length);
        break;
      case 3:
        bytes = cut(bytes.subarray(0, at), bytes.subarray(at + length));
        break;
      case 4:
        bytes = cut(bytes.subarray(0, at), bytes.subarray(at, at + length), bytes.subarray(at));
        break;
      case 5:
        for (let i = 0; i < 4 && at + i < bytes.length; i++) bytes[at + i] = draw(256);
        break;
      default:
        bytes = bytes.slice(0, Math.max(from + 1, at));
    }
  }
  return bytes;
}

type Verdict = 'refused' | 'nothing' | 'heard';

/** What becomes of a file. Rejects for anything but a source that cannot be decoded. */
async function verdictOf(file: Bytes): Promise<readonly [Verdict, number]> {
  const sniffed = sniff(file, true);
  if (sniffed.found === 'unsupported' || sniffed.found === 'more' || sniffed.found === 'playlist') return ['refused', 0];
  const stream = await decoders.open(sniffed.found, 8_000);
  let samples = 0;
  try {
    for (let at = sniffed.from; at < file.length; at += 4_096) samples += (await stream.push(file.slice(at, at + 4_096))).length;
    samples += (await stream.end()).pcm.length;
    return ['heard', samples];
  } catch (error) {
    if (error instanceof DecodeError) return [samples > 0 ? 'heard' : 'nothing', samples];
    throw error;
  } finally {
    stream.close();
  }
}

/** One page holds the whole sound of these files: three of them, chained, have three. */
const thrice = async (name: string): Promise<Bytes> => {
  const bytes = await fixture(name);
  return new Uint8Array(Buffer.concat([bytes, bytes, bytes]));
};

const half = tone(1_000, 0.5, 8_000);
const seeds: readonly (readonly [string, number, number, () => Promise<Bytes>])[] = [
  // name, mutants, where the sound begins, the file
  ['WAV of 16 bits', 600, 44, async () => wavFile(half, {})],
  ['WAV of 24 bits in six channels', 150, 44, async () => wavFile(half, { channels: 6, bits: 24, bytes: 3 })],
  ['RF64', 150, 80, async () => wavFile(half, { flavour: 'RF64' })],
  ['W64', 150, 104, async () => wavFile(half, { flavour: 'W64' })],
  ['RIFX', 100, 44, async () => wavFile(half, { flavour: 'RIFX' })],
  ['WAV with a part before its data', 150, 500, async () => wavFile(half, { before: 400 })],
  ['WAV of GSM', 100, 60, () => fixture('tone-gsm.wav')],
  ['WAV of IMA ADPCM', 125, 60, () => fixture('tone-ima.wav')],
  ['WAV of Microsoft ADPCM', 125, 90, () => fixture('tone-ms.wav')],
  ['MP3 of constant rate', 500, 400, () => fixture('tone-24k-joint-cbr.mp3')],
  ['MP3 of variable rate with ID3', 500, 1_500, () => fixture('tone-44k-stereo-vbr-id3.mp3')],
  ['MP3 of 22 kHz', 400, 400, () => fixture('tone-22k-mono.mp3')],
  ['MPEG layer I', 100, 200, async () => layerOneTone(30)],
  ['MPEG layer II', 100, 300, () => fixture('tone-layer2.mp2')],
  ['MP3 in WAV', 50, 300, () => fixture('tone-mp3.wav')],
  ['Ogg Opus', 100, 4_400, () => thrice('tone-opus.ogg')],
  ['Ogg Vorbis', 100, 6_800, () => thrice('tone-vorbis.ogg')],
  ['FLAC', 200, 200, () => fixture('tone.flac')],
  ['FLAC in Ogg', 150, 5_600, () => thrice('tone-flac.ogg')],
  ['MPEG in a transport stream', 150, 800, () => fixture('tone-mp3.mpegts')],
  ...(decodesAac()
    ? ([
        ['AAC', 300, 700, () => fixture('tone-aac.aac')],
        ['AAC in a transport stream', 150, 800, () => fixture('tone-aac.mpegts')],
      ] as const)
    : []),
];

describe('mutants', () => {
  test('are 3,300 of WAV and MPEG audio, and more of the others', () => {
    const counted = (names: RegExp) => seeds.filter(([name]) => names.test(name)).reduce((sum, [, count]) => sum + count, 0);
    expect(counted(/WAV|RF64|W64|RIFX|MP3|MPEG layer/)).toBeGreaterThanOrEqual(3_300);
  });

  for (const [index, [name, count, sound, make]] of seeds.entries()) {
    test(`end with a verdict each, and are heard where only their sound is damaged: ${name}`, async () => {
      const whole = await make();
      const draw = random(1_000 + index);
      const [, clean] = await verdictOf(whole);
      expect(clean).toBeGreaterThan(2_000);
      let slowest = 0;
      let silent = 0;
      for (let i = 0; i < count; i++) {
        const anywhere = i % 2 === 0;
        const began = performance.now();
        const [verdict, samples] = await verdictOf(mutant(whole, anywhere ? 0 : sound, draw));
        slowest = Math.max(slowest, performance.now() - began);
        expect(samples).toBeLessThan(clean * 4 + 8_000 * 120);
        if (!anywhere && verdict !== 'heard') silent++;
      }
      // A cut right after the head leaves nothing to hear, and four changes may hit all four frames of the FLAC.
      expect(silent / count).toBeLessThan(name === 'FLAC' ? 0.15 : 0.06);
      // Some milliseconds, and on a busy machine two seconds.
      expect(slowest).toBeLessThan(10_000);
      expect(troubles).toEqual([]);
    }, 60_000);
  }

  test('leave no memory behind', async () => {
    const whole = await fixture('tone-opus.ogg');
    const draw = random(7);
    const round = async () => {
      for (let i = 0; i < 150; i++) await verdictOf(mutant(whole, 0, draw));
      Bun.gc(true);
      return process.memoryUsage().rss;
    };
    await round();
    const first = await round();
    for (let rounds = 0; rounds < 3; rounds++) await round();
    expect((await round()) - first).toBeLessThan(100e6);
  }, 60_000);
});
