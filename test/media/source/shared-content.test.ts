/** A file that several playbacks read at once: asked for by each, downloaded by one, kept within its bounds. */
import { afterAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import {
  SOURCE_CACHE_MAX_BYTES,
  SOURCE_FRESH_MAX_SEC,
  SOURCE_HELD_MAX_BYTES,
  SOURCE_HELD_TOTAL_MAX_BYTES,
  SOURCE_SHARED_MAX_BYTES,
} from '../../../src/limits.ts';
import { openPlaylist } from '../../../src/media/playback/playlist.ts';
import { SourceLost } from '../../../src/media/source/audio-source.ts';
import { Download } from '../../../src/media/source/download.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import type { AudioOutbound } from '../../../src/media/source/opening.ts';
import { recognise } from '../../../src/media/source/recognise.ts';
import { freshUntil, SharedContents } from '../../../src/media/source/shared-contents.ts';
import { Source } from '../../../src/media/source/source.ts';
import type { GetResponse } from '../../../src/outbound/http-get.ts';
import { OutboundError } from '../../../src/outbound/outbound.ts';
import { createOutbound } from '../../../src/outbound/safe-fetch.ts';
import { tone, wav } from '../sound.ts';
import { SlowServer } from './slow-server.ts';
import { playlistTerms } from './terms.ts';

/** A WAV of that many bytes. */
const fileOf = (bytes: number) => {
  const file = new Uint8Array(bytes);
  const sound = wav(tone(300, (bytes - 44) / 16_000, 8_000), 8_000);
  file.set(sound.subarray(0, bytes));
  return file;
};
/** One of silence, which is made sooner. */
const silenceOf = (bytes: number) => {
  const file = new Uint8Array(bytes);
  file.set(fileOf(44));
  return file;
};
const LARGE = fileOf(2 * 1024 * 1024);
const MP3 = await Bun.file(join(import.meta.dir, '../fixture', 'sweep-24k-mono-cbr.mp3')).bytes();
const outbound = createOutbound(['127.0.0.0/8']);

const servers: { stop(force: boolean): void }[] = [];
const slow = (...terms: ConstructorParameters<typeof SlowServer>) => {
  const server = new SlowServer(...terms);
  servers.push(server);
  return server;
};
afterAll(() => {
  for (const server of servers) server.stop(true);
});

async function opened(url: string, contents: SharedContents, app = 'app', maxBytes = SOURCE_SHARED_MAX_BYTES): Promise<Source> {
  const source = new Source(outbound, url, new HeldBytes().of(app), contents, maxBytes);
  expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
  void source.hold(true);
  return source;
}

async function collect(source: Source): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of source.bytes()) parts.push(chunk);
  return new Uint8Array(Buffer.concat(parts));
}

const turn = () => new Promise(setImmediate);

test('A large file that comes is read by all who ask for it, over the connection of the first, which may go', async () => {
  const server = slow(LARGE, 100_000);
  const contents = new SharedContents();
  const first = await opened(server.url, contents);
  const others = await Promise.all([1, 2, 3].map(() => opened(server.url, contents)));
  expect([server.whole, server.unchanged, contents.bytes]).toEqual([1, 3, LARGE.length]);
  const heard = others.map(collect);
  first.release();
  server.go();
  for (const bytes of await Promise.all(heard)) expect(Buffer.compare(bytes, LARGE)).toBe(0);
  // A second pass asks for nothing.
  for (const other of others) expect((await collect(other)).length).toBe(LARGE.length);
  for (const other of others) other.release();
  expect([server.whole, contents.bytes]).toEqual([1, LARGE.length]);
  const later = await opened(server.url, contents);
  expect(Buffer.compare(await collect(later), LARGE)).toBe(0);
  expect([server.whole, server.unchanged]).toEqual([1, 4]);
  later.release();
});

test('Those who asked at the same moment keep one connection of theirs, until the last of them goes', async () => {
  const server = slow(LARGE, 100_000);
  const contents = new SharedContents();
  const sources = await Promise.all(Array.from({ length: 20 }, () => opened(server.url, contents)));
  while (server.closed < 19) await turn();
  expect([server.whole, contents.bytes]).toEqual([20, LARGE.length]);
  const [last, ...others] = sources;
  for (const other of others) other.release();
  const heard = last === undefined ? undefined : collect(last);
  server.go();
  expect(Buffer.compare((await heard) ?? new Uint8Array(0), LARGE)).toBe(0);
  last?.release();
  expect([server.whole, contents.bytes]).toEqual([20, LARGE.length]);
});

test('The connection of a file that still comes is closed when the last who plays it has gone', async () => {
  const server = slow(LARGE, 100_000);
  const contents = new SharedContents();
  const sources = [await opened(server.url, contents), await opened(server.url, contents)];
  while (server.closed < 1) await turn(); // That of the 304.
  sources[0]?.release();
  expect(contents.get(server.url)?.isBroken).toBe(false);
  const reading = sources[1]?.bytes();
  expect((await reading?.next())?.done).toBe(false);
  const next = reading?.next().then(
    () => 'told',
    (error: Error) => error.message,
  );
  sources[1]?.release();
  expect(await next).toBe('read from elsewhere');
  while (server.closed < 2) await turn();
  expect(contents.bytes).toBe(0);
  const again = await opened(server.url, contents);
  expect([server.whole, contents.bytes]).toEqual([2, LARGE.length]);
  again.release();
});

test('When the download breaks off, each reader fetches the rest and hears it without a seam', async () => {
  const server = slow(LARGE, 600_000);
  const contents = new SharedContents();
  const sources = [await opened(server.url, contents), await opened(server.url, contents)];
  const heard = sources.map(collect);
  while (contents.get(server.url) === undefined) await turn();
  server.go({ breaks: true });
  while (server.whole < 3) await turn();
  expect(contents.get(server.url)).toBeUndefined();
  server.go();
  for (const bytes of await Promise.all(heard)) expect(Buffer.compare(bytes, LARGE)).toBe(0);
  for (const source of sources) source.release();
  expect(contents.bytes).toBe(0);
});

test('A reading that begins while a file is asked for at its turn has an answer of its own', async () => {
  const answers: ((answer: GetResponse) => void)[] = [];
  let closed = 0;
  const waiting: AudioOutbound = { get: () => new Promise((resolve) => answers.push(resolve)) };
  const answer = (): GetResponse => {
    const parts = [LARGE.slice()];
    const headers = new Headers({ 'content-length': String(LARGE.length) });
    const body = { read: async () => parts.pop(), close: () => void closed++ };
    return { status: 200, headers, framing: 'length', url: 'http://x/', body };
  };
  const source = new Source(waiting, 'http://x/', new HeldBytes());
  const admitted = source.admit(AbortSignal.timeout(5_000));
  answers.shift()?.(answer());
  expect(await admitted).toBeUndefined();
  await source.hold(false);
  const before = closed;
  const prepared = source.prepare();
  const heard = collect(source);
  while (answers.length < 2) await turn();
  answers[1]?.(answer());
  expect((await heard).length).toBe(LARGE.length);
  answers[0]?.(answer());
  await prepared;
  expect(closed).toBe(before + 2); // That which was read to its end, and that which came too late.
  source.release();
});

test('A file that stalls has failed for its readers; the rest of one that breaks is asked for once more', async () => {
  for (const [failure, expected] of [
    ['timeout', 1],
    ['unreachable', 2],
  ] as const) {
    let asked = 0;
    const { promise: reading, resolve: read } = Promise.withResolvers<void>();
    const failing: AudioOutbound = {
      get: async ({ url }) => {
        asked++;
        const parts = [LARGE.slice(0, 100_000)];
        const body = {
          read: async () => {
            const part = parts.pop();
            if (part !== undefined) return part;
            await reading;
            throw new OutboundError(failure, 'so');
          },
          close() {},
        };
        const headers = new Headers({ etag: '"1"', 'content-length': String(LARGE.length) });
        return { status: 200, headers, framing: 'length', url, body };
      },
    };
    const source = new Source(failing, 'http://x/', new HeldBytes(), new SharedContents(), LARGE.length);
    expect(await source.admit(AbortSignal.timeout(5_000))).toBeUndefined();
    const heard = collect(source).catch((error: unknown) => error);
    await turn();
    read();
    expect(await heard).toBeInstanceOf(SourceLost);
    expect([failure, asked]).toEqual([failure, expected]);
    source.release();
  }
});

test('An answer that is longer than it said, and one without a length or a validator, are read by each alone', async () => {
  const rows: readonly (readonly [string, string])[] = [
    ['no validator', ''],
    ['not to be stored', 'ETag: "1"\r\nCache-Control: no-store\r\n'],
    ['coded', 'ETag: "1"\r\nContent-Encoding: gzip\r\n'],
  ];
  for (const [name, headers] of rows) {
    const server = slow(name === 'coded' ? Bun.gzipSync(LARGE) : LARGE, 100_000, headers);
    const contents = new SharedContents();
    const source = await opened(server.url, contents);
    expect([name, source.content, contents.bytes]).toEqual([name, undefined, 0]);
    source.release();
  }
  const server = slow(LARGE, 100_000);
  const contents = new SharedContents();
  const source = await opened(server.url, contents, 'app', SOURCE_HELD_MAX_BYTES);
  expect([source.content, contents.bytes]).toEqual([undefined, 0]);
  source.release();
});

test('Files that nobody plays make room for the next ones, those that are played do not', async () => {
  const file = silenceOf(SOURCE_SHARED_MAX_BYTES);
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(file, { headers: { etag: '"1"' } }) });
  servers.push(server);
  const url = (at: number) => `http://127.0.0.1:${server.port}/${at}`;
  const contents = new SharedContents();
  const most = SOURCE_CACHE_MAX_BYTES / SOURCE_SHARED_MAX_BYTES;
  const played: Source[] = [];
  for (let at = 0; at < most; at++) played.push(await opened(url(at), contents, `app-${at}`));
  await Promise.all(played.map((source) => source.content?.settled()));
  const over = await opened(url(most), contents);
  expect([over.content, contents.bytes]).toEqual([undefined, SOURCE_CACHE_MAX_BYTES]);
  over.release();
  // The one of two unplayed files that was asked for longer ago goes.
  for (const at of [1, 2]) played[at]?.release();
  contents.get(url(1));
  const next = await opened(url(most), contents);
  expect([next.content?.length, contents.bytes]).toEqual([file.length, SOURCE_CACHE_MAX_BYTES]);
  expect([0, 1, 2, 3].map((at) => contents.get(url(at)) !== undefined)).toEqual([true, true, false, true]);
  for (const source of [...played, next]) source.release();
});

describe('the memory that applications share', () => {
  const MIB = 1024 * 1024;
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) =>
      new Response(silenceOf(Number(/\d+/.exec(new URL(url).pathname)?.[0]) * MIB), { headers: { etag: '"1"' } }),
  });
  servers.push(server);
  /** The URL of a file of so many MiB as its name says. */
  const url = (name: string) => `http://127.0.0.1:${server.port}/${name}`;
  const kept = (contents: SharedContents, ...names: string[]) => names.filter((name) => contents.get(url(name)) !== undefined);
  async function plays(contents: SharedContents, app: string, name: string): Promise<Source> {
    const source = await opened(url(name), contents, app);
    await source.content?.settled();
    return source;
  }

  test('has a share for each, past which its own files make room, whoever was heard longer ago', async () => {
    const contents = new SharedContents();
    (await plays(contents, 'quiet', '16-q')).release();
    const [first, second, third] = [
      await plays(contents, 'greedy', '16-a'),
      await plays(contents, 'greedy', '16-b'),
      await plays(contents, 'greedy', '16-c'),
    ];
    const over = await plays(contents, 'greedy', '16-d');
    expect([over.content, kept(contents, '16-q', '16-a', '16-b', '16-c').length]).toEqual([undefined, 4]);
    over.release();
    second.release();
    const next = await plays(contents, 'greedy', '16-d');
    expect([next.content?.isWhole, kept(contents, '16-q', '16-a', '16-b', '16-c')]).toEqual([true, ['16-q', '16-a', '16-c']]);
    // Another finds room beside it, and plays with it what it brought.
    const other = await plays(contents, 'other', '16-e');
    const again = await plays(contents, 'other', '16-a');
    expect([other.content?.isWhole, again.content, contents.bytes]).toEqual([true, first.content, SOURCE_CACHE_MAX_BYTES]);
    for (const source of [first, third, next, other, again]) source.release();
    // What is given back is free for its owner.
    expect((await plays(contents, 'greedy', '16-f')).content?.isWhole).toBe(true);
  });

  test('loses nothing to a file for which there would be no room without it either', async () => {
    const contents = new SharedContents();
    (await plays(contents, 'quiet', '12-q')).release();
    for (const [app, name] of [
      ['a', '16-a'],
      ['a', '16-b'],
      ['b', '16-c'],
      ['b', '4-d'],
    ] as const)
      expect((await plays(contents, app, name)).content?.isWhole).toBe(true);
    expect([(await plays(contents, 'c', '16-e')).content, kept(contents, '12-q')]).toEqual([undefined, ['12-q']]);
    expect([(await plays(contents, 'c', '12-f')).content?.isWhole, kept(contents, '12-q')]).toEqual([true, []]);
  });
});

test('Files that nobody plays stay where their application has no room for the next one without them either', async () => {
  const contents = new SharedContents();
  const body = { read: async () => undefined, close() {} };
  const headers = new Headers({ etag: '"1"' });
  const whole: AudioOutbound = { get: async ({ url }) => ({ status: 200, headers, framing: 'length', url, body }) };
  const sound = new Uint8Array(16 * 1024 * 1024);
  const share = async (name: string, mib: number) => {
    const url = `http://x/${name}`;
    const download = await Download.open({ outbound: whole, url, signal: AbortSignal.timeout(5_000) }, {});
    const beginning = { kind: 'wav', lead: 0, parts: [sound.subarray(0, mib * 1024 * 1024)], ended: true } as const;
    return contents.share(url, 'app', download, beginning, SOURCE_SHARED_MAX_BYTES);
  };
  for (const name of ['a', 'b']) await share(name, 16);
  await share('c', 4);
  (await share('unused', 8))?.leave();
  expect([await share('d', 16), contents.get('http://x/unused')?.isWhole]).toEqual([undefined, true]);
  expect([(await share('e', 12))?.isWhole, contents.get('http://x/unused')]).toEqual([true, undefined]);
});

test('A file is shared from its first audio on, and so is the rest of it after a break', async () => {
  const tags = Buffer.concat([Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 2, 0, 0]), Buffer.alloc(32 * 1024)]); // 256 * 128 bytes
  const sound = Buffer.concat(Array.from({ length: 100 }, () => MP3));
  const server = slow(new Uint8Array(Buffer.concat([tags, sound])), 100_000);
  const contents = new SharedContents();
  const first = await opened(server.url, contents);
  expect([first.content?.lead, first.content?.length]).toEqual([tags.length, sound.length]);
  const later = await opened(server.url, contents);
  expect([first.kind, later.kind]).toEqual(['mpeg', 'mpeg']);
  const heard = [first, later].map(collect);
  await turn();
  server.go({ breaks: true });
  while (server.whole < 3) await turn();
  server.go();
  for (const bytes of await Promise.all(heard)) expect(Buffer.compare(bytes, sound)).toBe(0);
  for (const source of [first, later]) source.release();
});

test('A file that has changed is kept anew, and the one before for as long as it is played', async () => {
  let file = LARGE;
  const etag = () => `"${file.length}"`;
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) =>
      request.headers.get('if-none-match') === etag()
        ? new Response(null, { status: 304 })
        : new Response(file, { headers: { etag: etag() } }),
  });
  servers.push(server);
  const url = `http://127.0.0.1:${server.port}/x`;
  const contents = new SharedContents();
  const before = await opened(url, contents);
  await before.content?.settled();
  file = fileOf(300_000);
  const after = await opened(url, contents);
  await after.content?.settled();
  expect(contents.bytes).toBe(LARGE.length + file.length);
  expect([(await collect(before)).length, (await collect(after)).length]).toEqual([LARGE.length, file.length]);
  before.release();
  expect(contents.bytes).toBe(file.length);
  after.release();
  expect(contents.bytes).toBe(file.length);
});

test('A file that is fresh by its answer is not asked for, nor while it comes; one that is old is', async () => {
  let [asked, headers]: [number, Record<string, string>] = [0, {}];
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => {
      asked++;
      const all = { etag: '"1"', ...headers };
      return request.headers.has('if-none-match')
        ? new Response(null, { status: 304, headers: all })
        : new Response(LARGE, { headers: all });
    },
  });
  servers.push(server);
  const rows: readonly (readonly [Record<string, string>, number])[] = [
    [{ 'cache-control': 'public, max-age=60' }, 1],
    [{ 'cache-control': 'max-age=0, s-maxage="60"' }, 1],
    [{ 'cache-control': 'max-age=60', age: '20' }, 1],
    [{ 'cache-control': 'max-age=60', age: '60' }, 3],
    [{ 'cache-control': 'max-age=60, no-cache' }, 3],
    [{ 'cache-control': 'max-age=0' }, 3],
    [{}, 3],
  ];
  for (const [at, [given, expected]] of rows.entries()) {
    [asked, headers] = [0, given];
    const contents = new SharedContents();
    const sources = [];
    for (let n = 0; n < 3; n++) sources.push(await opened(`http://127.0.0.1:${server.port}/${at}`, contents));
    for (const source of sources) expect((await collect(source)).length).toBe(LARGE.length);
    for (const source of sources) source.release();
    expect([given, asked]).toEqual([given, expected]);
  }
  // What a server says when it is asked again counts from then on.
  const contents = new SharedContents();
  const url = `http://127.0.0.1:${server.port}/again`;
  [asked, headers] = [0, {}];
  const first = await opened(url, contents);
  headers = { 'cache-control': 'max-age=60' };
  const later = [await opened(url, contents), await opened(url, contents)];
  expect(asked).toBe(2);
  for (const source of [first, ...later]) source.release();
});

test('A server is asked once a day, however long it says that a file is fresh', () => {
  const now = performance.now();
  const url = 'http://x/';
  const of = (control: string) => (freshUntil(url, { url, headers: new Headers({ 'cache-control': control }) }) - now) / 1000;
  expect(of('max-age=999999999')).toBeCloseTo(SOURCE_FRESH_MAX_SEC, 0);
  for (const control of ['max-age=10', 'max-age=5', 's-maxage=7, max-age=1']) {
    const [seconds = 0] = [/\d+/.exec(control)].map(Number);
    expect([control, Math.round(of(control))]).toEqual([control, seconds]);
  }
  const aged = freshUntil(url, { url, headers: new Headers({ 'cache-control': 'max-age=10', age: '4' }) });
  expect(Math.round((aged - now) / 1000)).toBe(6);
  expect(of('max-age=99999999999999999999')).toBeCloseTo(SOURCE_FRESH_MAX_SEC, 0);
});

test('Many who ask for a large file at once are all admitted, however large the pieces it comes in', async () => {
  const parts = [LARGE];
  expect((await recognise(async () => parts.pop(), new HeldBytes(0))).head.length).toBe(LARGE.length);
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(LARGE) });
  servers.push(server);
  // With so little memory they are refused where all of a piece that comes is looked through at once.
  const terms = { ...playlistTerms(outbound), held: new HeldBytes(SOURCE_HELD_TOTAL_MAX_BYTES / 64) };
  const asked = await Promise.all(
    Array.from({ length: 75 }, () => openPlaylist(terms, [`http://127.0.0.1:${server.port}/`], 'app')),
  );
  expect(asked.filter((each) => 'refused' in each)).toEqual([]);
  for (const each of asked) if (!('refused' in each)) each.release();
  expect(terms.held.used).toBe(0);
});
