/** Answers that were not asked for: content codings, and parts of a file. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { SOURCE_MAX_BYTES } from '../../../src/limits.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import { Source } from '../../../src/media/source/source.ts';
import { createOutbound } from '../../../src/outbound/safe-fetch.ts';
import fc from '../../support/fast-check.ts';
import { Harness } from '../harness.ts';
import { tone, wav } from '../sound.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness.close());

const sound = wav(tone(300, 20, 8000), 8000);

/** The bytes of a source under that path, as a playback reads them. */
async function read(path: string): Promise<Uint8Array> {
  const source = new Source(createOutbound(['127.0.0.0/8']), harness.url(path), new HeldBytes());
  await source.admit(AbortSignal.timeout(5_000));
  source.hold(true);
  try {
    const parts: Uint8Array[] = [];
    for await (const chunk of source.bytes()) parts.push(chunk);
    return new Uint8Array(Buffer.concat(parts));
  } finally {
    source.release();
  }
}

/** Why a path is refused; undefined where it is admitted. */
async function refusal(path: string): Promise<string | undefined> {
  const opened = await harness.engine.openPlaylist([harness.url(path)], 'app');
  if ('refused' in opened) return opened.refused.reason;
  opened.release();
  return undefined;
}

describe('a source in a content coding', () => {
  for (const coding of ['gzip', 'x-gzip', 'GZIP']) {
    test(`is unpacked: ${coding}`, async () => {
      harness.files.set('/packed', () => new Response(gzipSync(sound), { headers: { 'content-encoding': coding } }));
      expect(Buffer.compare(await read('/packed'), sound)).toBe(0);
    });
  }

  test('is read as it is where the server names a coding that it did not apply', async () => {
    harness.files.set('/plain', () => new Response(sound, { headers: { 'content-encoding': 'gzip' } }));
    expect(Buffer.compare(await read('/plain'), sound)).toBe(0);
  });

  test('is refused as unsupported in a coding that is none of ours', async () => {
    harness.files.set('/brotli', () => new Response(sound, { headers: { 'content-encoding': 'br' } }));
    expect(await refusal('/brotli')).toBe('unsupported');
  });

  test('is heard up to where its coding is damaged, and is none where that is at once', async () => {
    const packed = gzipSync(Buffer.concat([sound, crypto.getRandomValues(new Uint8Array(50_000))]));
    const cases: readonly (readonly [string, Uint8Array])[] = [
      ['a damaged place', packed.map((byte, at) => (at < packed.length - 20_000 ? byte : 0xaa))],
      ['another checksum', packed.map((byte, at) => (at === packed.length - 8 ? byte ^ 1 : byte))],
      ['rubbish behind it', Buffer.concat([packed, Buffer.from('rubbish')])],
    ];
    for (const [name, body] of cases) {
      harness.files.set('/damaged', () => new Response(body.slice(), { headers: { 'content-encoding': 'gzip' } }));
      expect([name, Buffer.compare((await read('/damaged')).subarray(0, sound.length), sound)]).toEqual([name, 0]);
    }
    const rubbish = packed.map((byte, at) => (at < 2 ? byte : 0xaa));
    harness.files.set('/damaged', () => new Response(rubbish.slice(), { headers: { 'content-encoding': 'gzip' } }));
    expect(await refusal('/damaged')).toBe('unsupported');
  });

  test('is never unpacked beyond 100 MiB, and costs no more memory than a few of its pieces', async () => {
    const bomb = gzipSync(Buffer.concat([wav(new Float64Array(0), 8000), Buffer.alloc(SOURCE_MAX_BYTES + 1_000_000)]));
    harness.files.set('/bomb', () => new Response(bomb, { headers: { 'content-encoding': 'gzip' } }));
    const before = process.memoryUsage().rss;
    const source = new Source(createOutbound(['127.0.0.0/8']), harness.url('/bomb'), new HeldBytes());
    await source.admit(AbortSignal.timeout(5_000));
    let bytes = 0;
    const reading = (async () => {
      for await (const chunk of source.bytes()) bytes += chunk.length;
    })();
    await expect(reading).rejects.toThrow('limit');
    source.release();
    expect(bytes).toBeLessThanOrEqual(SOURCE_MAX_BYTES);
    expect(process.memoryUsage().rss - before).toBeLessThan(300e6);
  });
});

describe('a 206 that nobody asked for', () => {
  test('is a file like any other where it is the whole', async () => {
    const headers = { 'content-range': `bytes 0-${sound.length - 1}/${sound.length}` };
    harness.files.set('/whole', () => new Response(sound, { status: 206, headers }));
    expect(Buffer.compare(await read('/whole'), sound)).toBe(0);
    harness.files.set('/unnamed', () => new Response(sound, { status: 206 }));
    expect(Buffer.compare(await read('/unnamed'), sound)).toBe(0);
  });

  test('is continued where it is a part from the first byte, in parts of any size', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 20_000, max: sound.length }), async (part) => {
        harness.files.set('/part', (request) => {
          const from = Number(/bytes=(\d+)-/.exec(request.headers.get('range') ?? '')?.[1] ?? 0);
          const end = Math.min(sound.length, from + part);
          const headers = { 'content-range': `bytes ${from}-${end - 1}/${sound.length}`, etag: '"1"' };
          return new Response(sound.slice(from, end), { status: 206, headers });
        });
        expect(Buffer.compare(await read('/part'), sound)).toBe(0);
      }),
      { numRuns: 30 },
    );
  });

  test('is a broken answer where it begins elsewhere', async () => {
    const headers = { 'content-range': `bytes 100-${sound.length - 1}/${sound.length}` };
    harness.files.set('/middle', () => new Response(sound.slice(100), { status: 206, headers }));
    expect(await refusal('/middle')).toBe('invalid_response');
  });
});

describe('a source with nine megabytes of tags before its sound', () => {
  test('keeps none of them in memory, and begins with its sound in every pass', async () => {
    const mp3 = new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture', 'sweep-24k-mono-cbr.mp3')).arrayBuffer());
    const copies = Buffer.concat(Array.from({ length: 40 }, () => mp3)); // more than is held
    const tag = new Uint8Array(9_000_000).fill(0x41);
    const size = tag.length - 10;
    tag.set([0x49, 0x44, 0x33, 4, 0, 0, size >> 21, (size >> 14) & 0x7f, (size >> 7) & 0x7f, size & 0x7f]);
    harness.files.set('/tagged.mp3', new Uint8Array(Buffer.concat([tag, copies])));
    const held = new HeldBytes();
    const source = new Source(createOutbound(['127.0.0.0/8']), harness.url('/tagged.mp3'), held);
    expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
    expect(held.used).toBeLessThan(1_000_000);
    source.hold(true);
    for (let pass = 0; pass < 2; pass++) {
      const parts: Uint8Array[] = [];
      for await (const chunk of source.bytes()) parts.push(chunk);
      expect(Buffer.compare(Buffer.concat(parts), copies)).toBe(0);
    }
    source.release();
    expect(held.used).toBe(0);
  });
});
