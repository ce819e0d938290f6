/** Sources that are made to cost much: each is given up, and what is only damaged is not. */
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { DECODER_SHORT_STREAMS_MAX, HLS_TINY_PAUSE_MS } from '../../../src/limits.ts';
import { OpusDecoder } from '../../../src/media/decode/opus-decoder.ts';
import { VorbisDecoder } from '../../../src/media/decode/vorbis-decoder.ts';
import { oggCrc } from '../../../src/media/format/crc.ts';
import { OggReader, OggWriter } from '../../../src/media/format/ogg.ts';
import { parsePlaylist } from '../../../src/media/format/playlist-text.ts';
import { sniff } from '../../../src/media/format/sniff.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import { HlsBody } from '../../../src/media/source/hls.ts';
import { Refusal } from '../../../src/media/source/opening.ts';
import { recognise } from '../../../src/media/source/recognise.ts';
import { Source } from '../../../src/media/source/source.ts';
import type { GetResponse } from '../../../src/outbound/http-get.ts';
import { cpuMs } from '../../support/cpu-time.ts';
import { tone } from '../sound.ts';
import { wavFile } from './files.ts';

type Bytes = Uint8Array<ArrayBuffer>;
const latin1 = (text: string): Bytes => new Uint8Array(Buffer.from(text, 'latin1'));
const joined = (...parts: readonly Uint8Array[]): Bytes => new Uint8Array(Buffer.concat(parts));

test('A WAV may have a thousand parts before its sound, and no millions', () => {
  const plain = wavFile(tone(500, 0.1, 8_000), {});
  const having = (parts: number) => joined(plain.subarray(0, 12), latin1('junk\0\0\0\0'.repeat(parts)), plain.subarray(12));
  expect(sniff(having(1_000), false)).toEqual({ found: 'wav', from: 0 });
  expect(sniff(having(20_000).subarray(0, 150_000), false)).toEqual({ found: 'unsupported' });
});

test('Half a megabyte of tags, or of what may be a frame, is looked through in many turns of the event loop', async () => {
  for (const text of ['ID3\x03\0\0\0\0\0\0', '\xff']) {
    const chunks = [latin1(text.repeat(512 * 1024)).subarray(0, 512 * 1024)];
    let turns = 0;
    let timer = setImmediate(function turn() {
      turns++;
      timer = setImmediate(turn);
    });
    const found = recognise(async () => chunks.shift(), new HeldBytes());
    expect(await found.catch((error: unknown) => error)).toBeInstanceOf(Refusal);
    clearImmediate(timer);
    expect(turns).toBeGreaterThanOrEqual(3); // The tags took 60 ms in one turn, as often as such a chunk came.
  }
});

/** The places at which the pages of a file begin, and its end. */
function pageStarts(file: Uint8Array): number[] {
  const starts: number[] = [];
  for (let at = 0; at !== -1; at = Buffer.from(file.buffer).indexOf('OggS', at + 1)) starts.push(at);
  return [...starts, file.length];
}

/** The pages of a file before its sound: those that end before anything is heard. */
const headOf = (file: Uint8Array): Uint8Array => file.subarray(0, pageStarts(file)[2]);

/** A stream of one packet, of which each page has 255 bytes. */
function pagesOf(packet: Uint8Array): Uint8Array[] {
  const pages: Uint8Array[] = [];
  for (let at = 0; at < packet.length; at += 255) {
    const part = packet.subarray(at, at + 255);
    const page = joined(new Uint8Array(27), Uint8Array.of(part.length), part);
    const view = new DataView(page.buffer);
    page.set(latin1('OggS'));
    view.setUint8(5, at === 0 ? 2 : 1);
    view.setUint32(18, pages.length, true);
    view.setUint8(26, 1);
    view.setUint32(22, oggCrc(page), true);
    pages.push(page);
  }
  return pages;
}

/** The packets that a reader finds in all of these bytes, given in steps. */
function packetsOf(bytes: Uint8Array): number {
  const reader = new OggReader(() => true);
  let found = 0;
  for (let at = 0; at < bytes.length; at += 4_096)
    for (const { packets } of reader.push(bytes.subarray(at, at + 4_096))) found += packets.length;
  return found;
}

test('An Ogg of damaged pages is read on behind them, and one that claims a page every five bytes is given up', () => {
  const writer = new OggWriter();
  const page = (first: boolean) => writer.write({ first, last: false, granule: 1n, packets: [new Uint8Array(50_000).fill(7)] });
  const [begin, end] = [page(true), page(false)];
  const damaged = end.slice();
  damaged[1_000] = 8;
  // The pages after the first are of one number, so that each begins anew.
  expect(packetsOf(joined(begin, ...new Array<Uint8Array>(100).fill(damaged), end))).toBe(2);
  const claims = latin1('OggS\0'.repeat(200_000));
  expect(packetsOf(joined(begin, claims, end))).toBe(1);
});

test('A packet that lies on 16,000 pages is put together in its length', () => {
  const packet = Uint8Array.from({ length: 16_000 * 255 - 1 }, (_, i) => i);
  const pages = joined(...pagesOf(packet));
  const reader = new OggReader(() => true);
  const found: Uint8Array[] = [];
  const began = cpuMs();
  for (let at = 0; at < pages.length; at += 16_384)
    for (const { packets } of reader.push(pages.subarray(at, at + 16_384))) found.push(...packets);
  expect(cpuMs() - began).toBeLessThan(2_000); // What had come of it was copied for each page: 9 s.
  expect(found.map((each) => Buffer.compare(each, packet))).toEqual([0]);
});

test('Packets of Opus without a byte, of which 15,000 lie in 16 kB, are no sound', async () => {
  const file = new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture/tone-opus.ogg')).arrayBuffer());
  const writer = new OggWriter();
  const [head = new Uint8Array(0), tags = new Uint8Array(0)] = new OggReader(() => true)
    .push(file)
    .flatMap(({ packets }) => packets);
  const page = (first: boolean, packets: readonly Uint8Array[]) => writer.write({ first, last: false, granule: 0n, packets });
  const empty = new Array<Uint8Array>(15_000).fill(new Uint8Array(0));
  const decoder = new OpusDecoder(8_000, 0, () => {});
  await decoder.push(joined(page(true, [head]), page(false, [tags]), page(false, empty)));
  await decoder.end();
  decoder.close();
  expect([decoder.samples, decoder.heard]).toEqual([0, false]); // They were half an hour of it, 28 MB in a second.
});

test.each(['opus', 'vorbis'])(
  'Streams of %s that follow each other are heard, and given up where they have no sound',
  async (name) => {
    const file = new Uint8Array(await Bun.file(join(import.meta.dir, `../fixture/tone-${name}.ogg`)).arrayBuffer());
    const Decoder = name === 'opus' ? OpusDecoder : VorbisDecoder;
    const samplesOf = async (bytes: Uint8Array) => {
      const decoder = new Decoder(8_000, 0, () => {});
      for (let at = 0; at < bytes.length; at += 4_096) await decoder.push(bytes.subarray(at, at + 4_096));
      await decoder.end();
      decoder.close();
      return decoder.samples;
    };
    const chained = (one: Uint8Array) => joined(...new Array<Uint8Array>(DECODER_SHORT_STREAMS_MAX + 4).fill(one));
    expect(await samplesOf(chained(file))).toBeGreaterThan(DECODER_SHORT_STREAMS_MAX * (await samplesOf(file)));
    // Each begins the library anew: for as many as lie in 16 kB that took up to 1.8 s.
    await expect(samplesOf(chained(headOf(file)))).rejects.toThrow('next to no sound');
  },
);

test('A source that comes byte by byte is held like any other', async () => {
  const file = wavFile(tone(500, 6, 8_000), {});
  const whole = Promise.withResolvers<void>();
  let sent = 0;
  const body = {
    async read() {
      if (sent < file.length) return file.slice(sent, ++sent);
      whole.resolve();
      return undefined;
    },
    close() {},
  };
  const answer: GetResponse = { status: 200, headers: new Headers(), framing: 'close', url: 'http://source.test/', body };
  const source = new Source({ get: async () => answer }, answer.url, new HeldBytes());
  await source.admit(AbortSignal.timeout(5_000));
  const began = cpuMs();
  source.hold(true);
  await whole.promise;
  expect(cpuMs() - began).toBeLessThan(4_000); // A list that was copied for each byte took 12 s.
  const pieces: Uint8Array[] = [];
  for await (const piece of source.bytes()) pieces.push(piece);
  expect(Buffer.compare(Buffer.concat(pieces), file)).toBe(0);
  expect(pieces.length).toBeLessThan(40);
  source.release();
});

/** A stream of segments of so many bytes each, read to its end, and the times at which they were asked for. */
async function segmentsOf(sizes: readonly number[]) {
  const asked: number[] = [];
  const outbound = {
    async get({ url }: { readonly url: string }): Promise<GetResponse> {
      asked.push(performance.now());
      let left: Bytes | undefined = new Uint8Array(sizes[Number(new URL(url).pathname.slice(1))] ?? 0);
      const body = {
        async read() {
          const bytes = left;
          left = undefined;
          return bytes?.length === 0 ? undefined : bytes;
        },
        close() {},
      };
      return { status: 200, headers: new Headers(), framing: 'length', url, body };
    },
  };
  const media = parsePlaylist(
    `#EXTM3U\n#EXT-X-TARGETDURATION:1\n${sizes.map((_, at) => `#EXTINF:1,\n${at}\n`).join('')}#EXT-X-ENDLIST\n`,
    'http://source.test/index.m3u8',
  );
  if (media.type !== 'media') throw new Error('no media playlist');
  const target = { outbound, url: 'http://source.test/index.m3u8', signal: new AbortController().signal };
  const hls = new HlsBody(target, media, new HeldBytes());
  let bytes = 0;
  for (let chunk = await hls.next(); chunk !== undefined; chunk = await hls.next()) bytes += chunk.length;
  return { bytes, asked };
}

test('The segments of an HLS stream that hold next to nothing are not asked for as fast as they come', async () => {
  const { bytes, asked } = await segmentsOf([4_000, 4_000, 9, 9, 9, 4_000, 4_000]);
  expect(bytes).toBe(16_027);
  const waits = asked.slice(1).map((at, before) => at - (asked[before] ?? 0));
  expect(Math.min(...waits.slice(2, 5))).toBeGreaterThanOrEqual(HLS_TINY_PAUSE_MS - 1);
});

test('An HLS stream whose segments are empty has failed; one that is now and then is left out', async () => {
  expect((await segmentsOf([4_000, 0, 4_000, 0, 0, 0, 4_000])).bytes).toBe(12_000);
  await expect(segmentsOf([4_000, 0, 0, 0, 0, 4_000])).rejects.toThrow();
});
