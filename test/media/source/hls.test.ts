/** The body of an HLS stream, on a virtual clock: what it asks for, and when it gives up. */
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { SOURCE_STALL_MS } from '../../../src/limits.ts';
import { type HlsMedia, parsePlaylist } from '../../../src/media/format/playlist-text.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import { HlsBody } from '../../../src/media/source/hls.ts';
import { HlsSource } from '../../../src/media/source/hls-source.ts';
import type { GetRequest, GetResponse } from '../../../src/outbound/http-get.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const URL_OF_LIST = 'http://radio.test/list.m3u8';
const SOUND = await Bun.file(join(import.meta.dir, '../fixture/tone-24k-joint-cbr.mp3')).bytes();

/** A playlist of a target duration of one second that names the segments from one number to another. */
const list = (from: number, to: number, ended = false): string =>
  ['#EXTM3U', '#EXT-X-TARGETDURATION:1', `#EXT-X-MEDIA-SEQUENCE:${from}`]
    .concat(Array.from({ length: to - from + 1 }, (_, at) => `#EXTINF:1,\n${from + at}.mp3`))
    .concat(ended ? '#EXT-X-ENDLIST' : [])
    .join('\n');

const media = (text: string): HlsMedia => {
  const read = parsePlaylist(text, URL_OF_LIST);
  if (read.type !== 'media') throw new Error(read.type);
  return read;
};

/** A server that gives its playlists one after the other, the last one again and again, and all segments. */
class Server {
  readonly clock = new VirtualClock();
  readonly held = new HeldBytes();
  readonly asked: string[] = [];
  open = 0;
  segment = SOUND;
  /** The address at which the playlist is found. */
  listAt = URL_OF_LIST;
  /** Segments are told once this resolves. */
  gate: Promise<void> = Promise.resolve();
  readonly #lists: string[];

  constructor(...lists: readonly string[]) {
    this.#lists = [...lists];
  }

  get target() {
    return { outbound: this, url: URL_OF_LIST, signal: new AbortController().signal, clock: this.clock };
  }

  /** The numbers of the segments that were asked for. */
  get segments(): number[] {
    return this.asked.flatMap((url) => /(\d+)\.mp3$/.exec(url)?.[1] ?? []).map(Number);
  }

  async get({ url }: GetRequest): Promise<GetResponse> {
    this.asked.push(url);
    const isList = url === URL_OF_LIST;
    if (!isList) await this.gate;
    let left: Uint8Array | undefined = isList ? this.#nextList() : this.segment;
    let isOpen = true;
    this.open++;
    const close = () => {
      if (isOpen) this.open--;
      isOpen = false;
    };
    const read = async () => {
      const bytes = left;
      left = undefined;
      if (bytes === undefined) close();
      return bytes;
    };
    const found = isList ? this.listAt : url;
    return { status: 200, headers: new Headers(), framing: 'length', url: found, body: { read, close } };
  }

  #nextList(): Uint8Array {
    const text = this.#lists.length > 1 ? this.#lists.shift() : this.#lists[0];
    return new TextEncoder().encode(text);
  }

  /** What comes of work that waits for the clock. */
  async outcome<T>(work: Promise<T>): Promise<T | Error> {
    let settled: T | Error | undefined;
    void work.then(
      (value) => {
        settled = value;
      },
      (error: Error) => {
        settled = error;
      },
    );
    for (let step = 0; settled === undefined && step < 600; step++) {
      await this.clock.advance(250);
      await new Promise((resolve) => setImmediate(resolve)); // what has come is looked through in turns
    }
    if (settled === undefined) throw new Error('nothing came of it in 150 s');
    return settled;
  }

  /** Reads so many segments. */
  async read(body: HlsBody, count: number): Promise<void> {
    for (let at = 0; at < count; at++) expect(await this.outcome(body.next())).toBeInstanceOf(Uint8Array);
  }
}

test('An HLS stream whose segments come by the dozen is heard on, however long the last ones were heard', async () => {
  const server = new Server(list(10, 15));
  const body = new HlsBody(server.target, media(list(10, 12)), server.held);
  await server.read(body, 3);
  await server.clock.advance(2 * SOURCE_STALL_MS);
  await server.read(body, 1);
  expect(server.segments).toEqual([10, 11, 12, 13]);
});

test('An HLS stream that stands still has failed, and its playlist is asked for until then', async () => {
  const server = new Server(list(10, 12));
  const body = new HlsBody(server.target, media(list(10, 12)), server.held);
  await server.read(body, 3);
  const began = server.clock.now();
  expect(await server.outcome(body.next())).toMatchObject({ detail: { reason: 'timeout' } });
  expect(Math.abs(server.clock.now() - began - (3_000 + SOURCE_STALL_MS))).toBeLessThanOrEqual(1_000);
  expect(server.asked.filter((url) => url === URL_OF_LIST).length).toBeGreaterThan(25);
});

test('Whoever waits for the next segment of an HLS stream is let go at once when it is closed', async () => {
  const server = new Server(list(10, 12));
  const body = new HlsBody(server.target, media(list(10, 12)), server.held);
  await server.read(body, 3);
  const began = server.clock.now();
  const waiting = body.next();
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect([server.open, server.clock.armed]).toEqual([0, 1]);
  body.close();
  expect(await waiting.catch((error: Error) => error)).toMatchObject({ detail: { reason: 'unreachable' } });
  expect([server.clock.now(), server.clock.armed]).toEqual([began, 0]);
});

test('An HLS stream that is closed while its playlist comes waits for no further one', async () => {
  const server = new Server(list(10, 12));
  const body = new HlsBody(server.target, media(list(10, 12)), server.held);
  await server.read(body, 3);
  const get = server.get.bind(server);
  server.get = async (request) => {
    const found = await get(request);
    if (request.url === URL_OF_LIST) body.close();
    return found;
  };
  const began = server.clock.now();
  expect(await server.outcome(body.next())).toMatchObject({ detail: { reason: 'unreachable' } });
  // A second pause would end at 1,000 ms.
  expect(server.clock.now() - began).toBeLessThan(1_000);
});

test('An older copy of the playlist of an HLS stream repeats nothing, as it comes of one cache of several', async () => {
  const server = new Server(list(8, 12), list(7, 11), list(10, 14), list(11, 15));
  const body = new HlsBody(server.target, media(list(10, 14)), server.held);
  await server.read(body, 4);
  expect(server.segments).toEqual([12, 13, 14, 15]);
});

test('An HLS stream that begins anew, at lower numbers, is heard from three segments before its end again', async () => {
  const server = new Server(list(0, 4));
  const body = new HlsBody(server.target, media(list(100, 104)), server.held);
  await server.read(body, 6);
  expect(server.segments).toEqual([102, 103, 104, 2, 3, 4]);
});

test('The segments of an HLS stream are named from where its playlist is found now', async () => {
  const server = new Server(list(10, 13));
  server.listAt = 'http://edge.test/two/list.m3u8';
  const body = new HlsBody(server.target, media(list(10, 12)), server.held);
  await server.read(body, 4);
  expect(server.asked.at(-1)).toBe('http://edge.test/two/13.mp3');
});

test('No connection of an HLS stream is left open by whoever stops reading it, before or within a segment', async () => {
  const server = new Server();
  const source = await HlsSource.open(server.target, media(list(0, 3, true)), server.held);
  const within = source.bytes();
  expect((await within.next()).done).toBe(false);
  await within.return(undefined);
  expect(server.open).toBe(0);

  const { promise, resolve } = Promise.withResolvers<void>();
  server.gate = promise;
  const body = new HlsBody(server.target, media(list(0, 3, true)), server.held);
  const reading = server.outcome(body.next());
  await server.clock.advance(0);
  body.close();
  resolve();
  await reading;
  expect(server.open).toBe(0);
});

test('What comes before the sound of an HLS segment takes memory of the share of its application, and gives it back', async () => {
  const server = new Server();
  server.segment = new Uint8Array(1024 * 1024);
  server.segment.set(Buffer.from('RIFF\xff\xff\xff\x7fWAVEjunk\xff\xff\xff\x0f', 'latin1'));
  const opening = (held: HeldBytes) => server.outcome(HlsSource.open(server.target, media(list(0, 3, true)), held));
  expect(await opening(new HeldBytes(512 * 1024))).toMatchObject({ detail: { reason: 'preparation_failed' } });
  const changing = media(list(0, 3, true).replace('#EXTINF', '#EXT-X-DISCONTINUITY\n#EXTINF'));
  const body = new HlsBody(server.target, changing, new HeldBytes(512 * 1024));
  expect(await server.outcome(body.next())).toMatchObject({ detail: { reason: 'preparation_failed' } });
  body.close();
  const held = new HeldBytes();
  expect(await opening(held)).toMatchObject({ detail: { reason: 'unsupported' } });
  expect([held.used, server.open]).toEqual([0, 0]);
});
