import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { SOURCE_MAX_BYTES } from '../../../src/limits.ts';
import { sniff } from '../../../src/media/format/sniff.ts';
import { openPlaylist } from '../../../src/media/playback/playlist.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import { type AudioOutbound, Refusal } from '../../../src/media/source/opening.ts';
import { SharedContents } from '../../../src/media/source/shared-contents.ts';
import { Source } from '../../../src/media/source/source.ts';
import { OutboundError, type OutboundFailure } from '../../../src/outbound/outbound.ts';
import { createOutbound } from '../../../src/outbound/safe-fetch.ts';
import type { SourceDetail } from '../../../src/problem.ts';
import fc from '../../support/fast-check.ts';
import { freePort } from '../../support/sipp.ts';
import { Harness } from '../harness.ts';
import { tone, wav } from '../sound.ts';
import { playlistTerms } from './terms.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness.close());

const text = (content: string) => new TextEncoder().encode(content);
const sound = wav(tone(1000, 0.1, 8000), 8000);
const status = (code: number) => () => new Response('no', { status: code });

async function refusal(...paths: string[]): Promise<SourceDetail | undefined> {
  const opened = await harness.engine.openPlaylist(
    paths.map((path) => (path.startsWith('/') ? harness.url(path) : path)),
    'app',
  );
  if ('refused' in opened) return opened.refused;
  opened.release();
  return undefined;
}

describe('a source that is not admitted', () => {
  const rows: readonly (readonly [string, () => Response, SourceDetail])[] = [
    ['404', status(404), { reason: 'not_found', retryable: false, upstream_status: 404 }],
    ['410', status(410), { reason: 'not_found', retryable: false, upstream_status: 410 }],
    ['401', status(401), { reason: 'access_denied', retryable: false, upstream_status: 401 }],
    ['403', status(403), { reason: 'access_denied', retryable: false, upstream_status: 403 }],
    ['429', status(429), { reason: 'rejected', retryable: false, upstream_status: 429 }],
    ['500', status(500), { reason: 'invalid_response', retryable: true, upstream_status: 500 }],
    ['503', status(503), { reason: 'invalid_response', retryable: true, upstream_status: 503 }],
    ['204', () => new Response(null, { status: 204 }), { reason: 'invalid_response', retryable: false, upstream_status: 204 }],
    [
      'HTML',
      () => new Response('<!doctype html><html><body>Sign in</body></html>'),
      { reason: 'unsupported', retryable: false, upstream_status: 200 },
    ],
    ['nothing', () => new Response(''), { reason: 'unsupported', retryable: false, upstream_status: 200 }],
    ['a WAV of an unknown codec', () => new Response(odd(2)), { reason: 'unsupported', retryable: false, upstream_status: 200 }],
    [
      'a WAV without data',
      () => new Response(sound.slice(0, 40)),
      { reason: 'unsupported', retryable: false, upstream_status: 200 },
    ],
    [
      'Ogg',
      () => new Response(text(`OggS${'x'.repeat(5000)}`)),
      { reason: 'unsupported', retryable: false, upstream_status: 200 },
    ],
  ];
  const odd = (tag: number) => {
    const bytes = sound.slice();
    new DataView(bytes.buffer).setUint16(20, tag, true);
    return bytes;
  };
  for (const [name, serve, expected] of rows) {
    test(`is told apart: ${name} is ${expected.reason}`, async () => {
      harness.files.set('/row', serve);
      expect(await refusal('/row')).toEqual(expected);
    });
  }

  test('by a length over 100 MiB is rejected before it is read', async () => {
    const server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { data: (socket) => void socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${SOURCE_MAX_BYTES + 1}\r\n\r\nRIFF`) },
    });
    expect(await refusal(`http://127.0.0.1:${server.port}/`)).toEqual({
      reason: 'rejected',
      retryable: false,
      upstream_status: 200,
    });
    server.stop(true);
  });

  test('because nobody listens is unreachable, and may be tried again', async () => {
    expect(await refusal(`http://127.0.0.1:${await freePort()}/`)).toEqual({ reason: 'unreachable', retryable: true });
  });

  test('because it is at a private address is rejected', async () => {
    expect(await refusal('http://10.0.0.1/x.wav')).toEqual({ reason: 'rejected', retryable: false });
  });

  test('because it redirects for ever is rejected', async () => {
    harness.files.set('/loop', () => Response.redirect(harness.url('/loop')));
    expect(await refusal('/loop')).toEqual({ reason: 'rejected', retryable: false, upstream_status: 302 });
  });

  const failures: Readonly<Record<OutboundFailure, readonly [SourceDetail['reason'], boolean]>> = {
    rejected: ['rejected', false],
    timeout: ['timeout', true],
    unreachable: ['unreachable', true],
    dns: ['unreachable', true],
    tls: ['unreachable', true],
    invalid_response: ['invalid_response', false],
  };
  test('says what the connection died of', async () => {
    for (const failure of ['rejected', 'timeout', 'unreachable', 'dns', 'tls', 'invalid_response'] as const) {
      const outbound: AudioOutbound = { get: () => Promise.reject(new OutboundError(failure, 'so')) };
      const [reason, retryable] = failures[failure];
      expect(await openPlaylist(playlistTerms(outbound), ['http://x/'], 'app')).toEqual({
        refused: { reason, retryable },
      });
    }
    const broken: AudioOutbound = { get: () => Promise.reject(new Error('ours')) };
    expect(await openPlaylist(playlistTerms(broken), ['http://x/'], 'app')).toEqual({
      refused: { reason: 'preparation_failed', retryable: true },
    });
  });

  test('has its connection closed, and so has one that is given up before it answers', async () => {
    const page = 'HTTP/1.1 200 OK\r\n\r\n<!doctype html><html>';
    for (const answer of [page, '']) {
      const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
      const { promise: closed, resolve: close } = Promise.withResolvers<void>();
      const server = Bun.listen({
        hostname: '127.0.0.1',
        port: 0,
        socket: {
          data: (socket) => {
            socket.write(answer);
            ask();
          },
          close: () => close(),
        },
      });
      const deadline = new AbortController();
      const source = new Source(realOutbound(), `http://127.0.0.1:${server.port}/`, new HeldBytes());
      const refused = source.admit(deadline.signal).catch((error: unknown) => error);
      await asked;
      if (answer === '') deadline.abort();
      expect(await refused).toBeInstanceOf(Refusal);
      await closed;
      server.stop(true);
    }
  });

  test('is not asked for where its time was over before', async () => {
    const asked: string[] = [];
    const get: AudioOutbound['get'] = (request) => {
      asked.push(request.url);
      return realOutbound().get(request);
    };
    harness.files.set('/good.wav', sound);
    const source = new Source({ get }, harness.url('/good.wav'), new HeldBytes());
    await expect(source.admit(AbortSignal.abort())).rejects.toThrow('abort');
    expect(asked).toEqual([]);
  });

  test('among several is named by its index, the lowest first', async () => {
    harness.files.set('/good.wav', sound);
    harness.files.set('/gone.wav', status(410));
    harness.files.set('/down.wav', status(502));
    expect(await refusal('/good.wav', '/gone.wav', '/down.wav')).toEqual({
      reason: 'not_found',
      retryable: false,
      upstream_status: 410,
      source_index: 1,
    });
  });
});

describe('a source that is admitted', () => {
  test('is told by its content, whatever its name and media type say', async () => {
    harness.files.set('/page.html', () => new Response(sound, { headers: { 'content-type': 'text/html' } }));
    expect(await refusal('/page.html')).toBeUndefined();
    const mp3 = new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture', 'tone-44k-stereo-vbr-id3.mp3')).arrayBuffer());
    harness.files.set('/x.wav', mp3);
    expect(await refusal('/x.wav')).toBeUndefined();
  });

  test('follows redirects', async () => {
    harness.files.set('/there.wav', sound);
    harness.files.set('/here', () => Response.redirect(harness.url('/there.wav')));
    expect(await refusal('/here')).toBeUndefined();
  });

  test('may come a byte at a time', async () => {
    harness.files.set(
      '/slow.wav',
      () =>
        new Response(
          new ReadableStream({
            async start(controller) {
              for (const byte of sound.subarray(0, 60)) {
                controller.enqueue(new Uint8Array([byte]));
                await new Promise(setImmediate);
              }
              controller.enqueue(sound.subarray(60));
              controller.close();
            },
          }),
        ),
    );
    expect(await refusal('/slow.wav')).toBeUndefined();
  });

  test('is held in memory when small, and gives the memory back', async () => {
    harness.files.set('/good.wav', sound);
    const held = new HeldBytes();
    const requests = () => harness.requests.filter((path) => path === '/good.wav').length;
    const before = requests();
    const source = new Source(realOutbound(), harness.url('/good.wav'), held);
    expect(await source.admit(AbortSignal.timeout(5000))).toBeUndefined();
    source.hold(true);
    for (let pass = 0; pass < 3; pass++) expect(await collect(source)).toEqual(sound);
    expect(requests()).toBe(before + 1);
    expect(held.used).toBe(sound.length);
    source.release();
    source.release();
    expect(held.used).toBe(0);
  });

  test('is streamed when large, and fetched again for a second pass', async () => {
    const large = wav(tone(300, 40, 8000), 8000);
    harness.files.set('/large.wav', large);
    const held = new HeldBytes();
    for (const first of [true, false]) {
      const source = new Source(realOutbound(), harness.url('/large.wav'), held);
      expect(await source.admit(AbortSignal.timeout(5000))).toBeUndefined();
      source.hold(first);
      for (let pass = 0; pass < 2; pass++) expect((await collect(source)).length).toBe(large.length);
      expect(held.used).toBe(0);
      source.release();
    }
  });
});

const realOutbound = (): AudioOutbound => createOutbound(['127.0.0.0/8']);

async function collect(source: Source): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of source.bytes()) parts.push(chunk);
  return new Uint8Array(Buffer.concat(parts));
}

describe('a source of bad manners', () => {
  const served = async (serve: (socket: Bun.Socket<undefined>) => void): Promise<string> => {
    const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: (socket) => serve(socket) } });
    servers.push(server);
    return `http://127.0.0.1:${server.port}/`;
  };
  const servers: { stop(force: boolean): void }[] = [];
  afterAll(() => {
    for (const server of servers) server.stop(true);
  });

  test('is refused in the words of the table', async () => {
    const rows: readonly (readonly [string, string, SourceDetail])[] = [
      [
        'a content coding that is none of ours',
        'HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n\x1f\x8b',
        { reason: 'unsupported', retryable: false, upstream_status: 200 },
      ],
      ['no HTTP', 'hello there\r\n\r\n', { reason: 'invalid_response', retryable: false }],
      ['a head cut short', 'HTTP/1.1 200 OK\r\nContent', { reason: 'invalid_response', retryable: false }],
      [
        'a body cut short before its audio',
        'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nRIFF',
        { reason: 'unreachable', retryable: true, upstream_status: 200 },
      ],
      [
        'a chunk without a length',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nRIFF',
        { reason: 'invalid_response', retryable: false, upstream_status: 200 },
      ],
      [
        'a playlist cut short',
        'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n#EXTM3U\nhttp://127.0.0.1/a.wav\n',
        { reason: 'unreachable', retryable: true, upstream_status: 200 },
      ],
      [
        'a part of a page',
        'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-5/6\r\nContent-Length: 6\r\n\r\n<html>',
        { reason: 'unsupported', retryable: false, upstream_status: 206 },
      ],
      [
        'an answer to another question',
        'HTTP/1.1 304 Not Modified\r\n\r\n',
        { reason: 'invalid_response', retryable: false, upstream_status: 304 },
      ],
      [
        'a redirect to another scheme',
        'HTTP/1.1 302 Go\r\nLocation: file:///etc/passwd\r\n\r\n',
        { reason: 'rejected', retryable: false, upstream_status: 302 },
      ],
      [
        'a redirect inward',
        'HTTP/1.1 302 Go\r\nLocation: http://169.254.169.254/\r\n\r\n',
        { reason: 'rejected', retryable: false, upstream_status: 302 },
      ],
      [
        '200 MiB',
        `HTTP/1.1 200 OK\r\nContent-Length: ${200 * 1024 * 1024}\r\n\r\nRIFF`,
        { reason: 'rejected', retryable: false, upstream_status: 200 },
      ],
    ];
    for (const [name, answer, detail] of rows) {
      const url = await served((socket) => void socket.end(answer));
      expect([name, await refusal(url)]).toEqual([name, detail]);
    }
    const hangsUp = await served((socket) => socket.terminate());
    expect(await refusal(hangsUp)).toEqual({ reason: 'unreachable', retryable: true });
  });

  test('that is read anew while it is fetched again is read from the later request alone', async () => {
    const sound = wav(tone(300, 40, 8000), 8000);
    let requests = 0;
    const { promise: first, resolve: answerFirst } = Promise.withResolvers<void>();
    harness.files.set('/twice.wav', async () => {
      requests += 1;
      if (requests === 2) await first;
      return new Response(sound);
    });
    const held = new HeldBytes();
    const source = new Source(realOutbound(), harness.url('/twice.wav'), held);
    expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
    source.hold(false);
    while (held.used > 0) await new Promise(setImmediate);
    const given = source.bytes();
    const refused = given.next().then(
      () => 'read',
      (error: Error) => error.message,
    );
    while (requests < 2) await new Promise(setImmediate);
    const later = source.bytes();
    let total = (await later.next()).value?.length ?? 0;
    answerFirst();
    expect(await refused).toBe('read from elsewhere');
    for await (const chunk of later) total += chunk.length;
    expect([requests, total]).toEqual([3, sound.length]);
    source.release();
  });

  test('whose name changes its answer is rejected when it is fetched again', async () => {
    const large = wav(tone(300, 40, 8000), 8000);
    harness.files.set('/large.wav', large);
    let answers = 0;
    const held = new HeldBytes();
    const outbound = createOutbound(['127.0.0.0/8'], async () => (answers++ === 0 ? ['127.0.0.1'] : ['10.0.0.1']));
    const source = new Source(outbound, harness.url('/large.wav').replace('127.0.0.1', 'changes.test'), held);
    expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
    source.hold(false);
    while (held.used > 0) await new Promise(setImmediate); // too large to be kept: it is let go
    await expect(collect(source)).rejects.toThrow('gone');
    source.release();
  });
});

const large = wav(tone(300, 40, 8000), 8000);

/** Cuts the n-th answer off after `lengths[n]` bytes, later ones after the last of them; knows ranges, or says so. */
function cutting(
  lengths: readonly number[],
  headers: Record<string, string>,
  { honours = true, content = large, most: atMost = Infinity } = {},
) {
  const ranges: (string | undefined)[] = [];
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, request) {
        const range = /range: bytes=(\d+)-/.exec(request.toString())?.[1];
        const most = lengths[Math.min(ranges.length, lengths.length - 1)] ?? 0;
        ranges.push(range);
        const from = honours ? Number(range ?? 0) : 0;
        const until = range === undefined ? content.length : Math.min(content.length, from + atMost);
        const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
        if (range !== undefined && honours) fields.push(`content-range: bytes ${from}-${until - 1}/${content.length}\r\n`);
        const status = range !== undefined && honours ? '206 Partial Content' : '200 OK';
        socket.write(`HTTP/1.1 ${status}\r\nContent-Length: ${until - from}\r\n${fields.join('')}\r\n`);
        socket.write(content.subarray(from, Math.min(until, from + most)));
        socket.end();
      },
    },
  });
  return { ranges, url: `http://127.0.0.1:${server.port}/`, stop: () => server.stop(true) };
}

describe('a source whose connection breaks midway', () => {
  async function readAll(url: string): Promise<Uint8Array> {
    const source = new Source(realOutbound(), url, new HeldBytes());
    expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
    source.hold(true);
    try {
      return await collect(source);
    } finally {
      source.release();
    }
  }

  test('is taken up where it broke, where the server can', async () => {
    const server = cutting([200_000], { 'accept-ranges': 'bytes', etag: '"a"' });
    expect(await readAll(server.url)).toEqual(large);
    expect(server.ranges).toEqual([undefined, '200000', '400000', '600000']);
    server.stop();
  });

  test('is heard whole where the server gives less of the rest than it is asked for', async () => {
    const server = cutting([200_000, Infinity], { 'accept-ranges': 'bytes', etag: '"a"' }, { most: 250_000 });
    expect(await readAll(server.url)).toEqual(large);
    expect(server.ranges.slice(0, 3)).toEqual([undefined, '200000', '450000']);
    server.stop();
  });

  test('is lost where the server cannot, has other content now, or breaks again at once', async () => {
    for (const server of [
      cutting([200_000], { etag: '"a"' }),
      cutting([200_000], { 'accept-ranges': 'bytes' }),
      cutting([200_000], { 'accept-ranges': 'bytes', etag: 'W/"a"' }),
      cutting([200_000], { 'accept-ranges': 'bytes', etag: '"a"' }, { honours: false }),
    ]) {
      await expect(readAll(server.url)).rejects.toThrow('broke');
      server.stop();
    }
  });
});

describe('a source whose connection breaks anywhere, any number of times', () => {
  const content = wav(tone(300, 20, 8000), 8000);
  const breaks = fc.array(fc.integer({ min: 5_000, max: content.length }), { minLength: 1, maxLength: 6 });

  test('is heard exact to the byte, whether it was being held, read, or held and then read', async () => {
    await fc.assert(
      fc.asyncProperty(breaks, fc.nat(3), fc.boolean(), async (lengths, turns, first) => {
        const server = cutting(lengths, { 'accept-ranges': 'bytes', etag: '"a"' }, { content });
        const held = new HeldBytes();
        const source = new Source(realOutbound(), server.url, held);
        try {
          expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
          source.hold(first);
          for (let turn = 0; turn < turns ** 4; turn++) await new Promise(setImmediate);
          expect(Buffer.compare(await collect(source), content)).toBe(0);
          expect(Buffer.compare(await collect(source), content)).toBe(0);
        } finally {
          source.release();
          server.stop();
        }
        expect(held.used).toBe(0);
      }),
      { numRuns: 150 },
    );
  });
});

describe('a source that was heard before', () => {
  /** Reads it once, as a playback does. */
  async function read(path: string, held: HeldBytes, cache: SharedContents): Promise<Uint8Array> {
    const source = new Source(realOutbound(), harness.url(path), held, cache);
    expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
    source.hold(true);
    const bytes = await collect(source);
    source.release();
    return bytes;
  }

  test('is asked for again by its validator, and sent again only where it has changed', async () => {
    let content = sound;
    let sent = 0;
    harness.files.set('/kept.wav', (request) => {
      const etag = `"${content.length}"`;
      if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304 });
      sent++;
      return new Response(content, { headers: { etag } });
    });
    const [held, cache] = [new HeldBytes(), new SharedContents()];
    for (let i = 0; i < 3; i++) expect(await read('/kept.wav', held, cache)).toEqual(sound);
    expect([sent, cache.bytes, held.used]).toEqual([1, sound.length, 0]);
    content = wav(tone(500, 0.2, 8000), 8000);
    expect(await read('/kept.wav', held, cache)).toEqual(content);
    expect([sent, cache.bytes]).toEqual([2, content.length]);
  });

  test('is not kept without a validator, nor against its word', async () => {
    const rows: readonly (readonly [string, Record<string, string>])[] = [
      ['no validator', {}],
      ['no-store', { etag: '"1"', 'cache-control': 'max-age=60, no-store' }],
      ['private', { etag: '"1"', 'cache-control': 'private' }],
      ['vary', { etag: '"1"', vary: 'cookie' }],
    ];
    const cache = new SharedContents();
    for (const [name, headers] of rows) {
      harness.files.set('/loose.wav', () => new Response(sound, { headers }));
      await read('/loose.wav', new HeldBytes(), cache);
      expect([name, cache.bytes]).toEqual([name, 0]);
    }
  });
});

describe('what a source is', () => {
  const found = (bytes: Uint8Array, whole: boolean) => sniff(bytes, whole).found;

  test('stays open until its first bytes decide it', async () => {
    for (let length = 0; length < 44; length++) expect(found(sound.subarray(0, length), false)).toBe('more');
    expect(found(sound.subarray(0, 44), false)).toBe('wav');
    const mp3 = new Uint8Array(await Bun.file(join(import.meta.dir, '../fixture', 'tone-44k-stereo-vbr-id3.mp3')).arrayBuffer());
    let length = 0;
    while (found(mp3.subarray(0, length), false) === 'more') length++;
    expect(found(mp3.subarray(0, length), false)).toBe('mpeg');
    expect(length).toBeLessThan(2000);
  });

  test('is not MPEG audio for bytes at random, nor for AAC from any place on, nor for what has a signature of its own', () => {
    for (let seed = 1; seed <= 100; seed++) {
      let state = seed;
      const noise = Uint8Array.from({ length: 70_000 }, () => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
        return state >>> 24;
      });
      expect([seed, found(noise, false)]).toEqual([seed, 'unsupported']);
      // The frames of AAC in ADTS, 400 bytes each, with noise in them: their headers are those of MPEG audio but for
      // the layer.
      for (let at = 0; at + 400 <= noise.length; at += 400) noise.set([0xff, 0xf1, 0x50, 0x80, 0x32, 0x1f, 0xfc], at);
      expect([seed, found(noise, false), found(noise.subarray(seed), false)]).toEqual([seed, 'aac', 'aac']);
    }
    for (const [at, id] of [
      [4, 'ftypisom'],
      [0, '\x1aE\xdf\xa3'],
      [0, 'FORM....AIFF'],
      [0, '#!AMR\n'],
    ] as const) {
      const file = new Uint8Array(200);
      for (const [i, letter] of [...id].entries()) file[at + i] = letter.charCodeAt(0);
      if (at > 0) file[3] = 0x20;
      file.set([0xff, 0xfb, 0x90, 0x00], 20);
      expect([id, found(file, true)]).toEqual([id, 'unsupported']);
    }
  });

  test('is not MPEG audio for a lone sync word, nor for text', () => {
    const lone = new Uint8Array(70_000).fill(0x20);
    lone.set([0xff, 0xfb, 0x90, 0x00]);
    expect(found(lone, false)).toBe('unsupported');
    expect(found(lone.subarray(0, 4_096), true)).toBe('unsupported');
    expect(found(text('{"error":"no such file"}'), true)).toBe('unsupported');
    expect(found(new Uint8Array(11), true)).toBe('unsupported');
  });
});
