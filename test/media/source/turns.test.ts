/** What one application can take of the connections and the memory of sources, and what it leaves to the others. */
import { expect, test } from 'bun:test';
import {
  PLAYLISTS_OF_APP_OPENING_MAX,
  PLAYLISTS_OF_APP_WAITING_MAX,
  SOURCE_CONNECTIONS_OF_APP_OPENING_MAX,
  SOURCE_HELD_OF_APP_MAX_BYTES,
  SOURCE_HELD_TOTAL_MAX_BYTES,
  SOURCES_BEGUN_A_TURN_MAX,
} from '../../../src/limits.ts';
import { openPlaylist, openStream } from '../../../src/media/playback/playlist.ts';
import { HeldBytes } from '../../../src/media/source/held-bytes.ts';
import { SourceTurns } from '../../../src/media/source/source-turns.ts';
import type { GetRequest, GetResponse } from '../../../src/outbound/http-get.ts';
import { OutboundError } from '../../../src/outbound/outbound.ts';
import { tone } from '../sound.ts';
import { wavFile } from './files.ts';
import { playlistTerms } from './terms.ts';

const SOUND = wavFile(tone(500, 1, 8_000), {});
const LONG = new Array<string>(100).fill('http://slow.test/');
const GOOD = ['http://good.test/'];

/** Servers of sources: all but one are slow, in one of two ways. */
class Servers {
  /** The connections to slow ones: at the moment, and at most. */
  open = 0;
  most = 0;
  readonly #release = Promise.withResolvers<void>();
  readonly #drips: boolean;

  /** `drips`: they send the first audio at once, and no more. Else they never answer. */
  constructor({ drips }: { readonly drips: boolean }) {
    this.#drips = drips;
  }

  /** Closes every connection to a slow one. */
  end(): void {
    this.#release.resolve();
  }

  /** Resolves when so many connections to slow ones are open: they are begun a few in a turn. */
  async opened(count: number): Promise<void> {
    while (this.open < count) await new Promise<void>((resolve) => setImmediate(resolve));
  }

  readonly get = async ({ url }: GetRequest): Promise<GetResponse> => {
    const answer = { status: 200, headers: new Headers(), framing: 'close', url } as const;
    const parts = [SOUND];
    if (url === GOOD[0]) return { ...answer, body: { read: async () => parts.pop(), close() {} } };
    this.open++;
    this.most = Math.max(this.most, this.open);
    const closed = Promise.withResolvers<void>();
    const over = Promise.race([closed.promise, this.#release.promise]).then(() => {
      throw new OutboundError('unreachable', 'closed');
    });
    over.catch(() => this.open--);
    if (!this.#drips) await over;
    return { ...answer, body: { read: async () => parts.pop() ?? (await over), close: () => closed.resolve() } };
  };
}

test('An application whose sources never answer has so many connections to them, and another opens its own at once', async () => {
  const servers = new Servers({ drips: false });
  const terms = playlistTerms(servers);
  const asked = Array.from({ length: 200 }, () => openPlaylist(terms, LONG, 'greedy'));
  await servers.opened(SOURCE_CONNECTIONS_OF_APP_OPENING_MAX);
  const quiet = await openPlaylist(terms, GOOD, 'quiet');
  expect('refused' in quiet).toBe(false);
  expect(servers.open).toBe(SOURCE_CONNECTIONS_OF_APP_OPENING_MAX);
  servers.end();
  for (const each of await Promise.all(asked))
    expect(each).toEqual({ refused: { reason: 'unreachable', retryable: true, source_index: 0 } });
  expect(servers.most).toBe(SOURCE_CONNECTIONS_OF_APP_OPENING_MAX);
});

test('Sources that drip after their first audio count until they are heard or given up', async () => {
  const servers = new Servers({ drips: true });
  const terms = playlistTerms(servers);
  const playlist = () => openPlaylist(terms, LONG, 'greedy');
  const admitted = await Promise.all(Array.from({ length: 5 }, playlist));
  expect(admitted.filter((each) => 'refused' in each)).toEqual([]);
  const asked = [...admitted, ...Array.from({ length: 20 }, playlist)];
  await servers.opened(SOURCE_CONNECTIONS_OF_APP_OPENING_MAX + admitted.length);
  const quiet = await openPlaylist(terms, GOOD, 'quiet');
  expect('refused' in quiet).toBe(false);
  // Each that was admitted has one connection besides, which will be heard.
  expect(servers.open).toBe(SOURCE_CONNECTIONS_OF_APP_OPENING_MAX + admitted.length);
  servers.end();
  for (const each of await Promise.all(asked)) if (!('refused' in each)) each.release();
  expect(servers.open).toBe(0);
});

test('An application whose playlists wait by the thousand is refused the next one, and another is not', async () => {
  const servers = new Servers({ drips: false });
  const terms = playlistTerms(servers);
  const length = PLAYLISTS_OF_APP_OPENING_MAX + PLAYLISTS_OF_APP_WAITING_MAX;
  const asked = Array.from({ length }, () => openStream(terms, 'http://slow.test/', 'greedy'));
  expect(await openStream(terms, 'http://slow.test/', 'greedy')).toEqual({
    refused: { reason: 'preparation_failed', retryable: true },
  });
  const quiet = await openPlaylist(terms, GOOD, 'quiet');
  expect('refused' in quiet).toBe(false);
  servers.end();
  await Promise.all(asked);
});

test('An application that holds all the memory it may leaves some to the others', () => {
  const held = new HeldBytes();
  const [greedy, quiet] = [held.of('greedy'), held.of('quiet')];
  expect(greedy.take(SOURCE_HELD_OF_APP_MAX_BYTES)).toBe(true);
  expect([greedy.take(1), held.of('greedy').take(1)]).toEqual([false, false]);
  expect(quiet.take(SOURCE_HELD_TOTAL_MAX_BYTES - SOURCE_HELD_OF_APP_MAX_BYTES)).toBe(true);
  expect(quiet.take(1)).toBe(false);
  greedy.give(SOURCE_HELD_OF_APP_MAX_BYTES);
  expect(held.of('greedy').take(1)).toBe(true);
  expect(held.used).toBe(SOURCE_HELD_TOTAL_MAX_BYTES - SOURCE_HELD_OF_APP_MAX_BYTES + 1);
});

test('An application that opens hundreds of sources at once begins a few in a turn of the event loop, and another is next', async () => {
  const turns = new SourceTurns();
  const begun: string[] = [];
  const open = (app: string) => turns.connection(app, new AbortController().signal, async () => void begun.push(app));
  const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
  const all = Array.from({ length: 300 }, () => open('greedy'));
  await Promise.resolve();
  expect(begun.length).toBeLessThanOrEqual(SOURCES_BEGUN_A_TURN_MAX);
  all.push(open('quiet'));
  for (let turn = 1; begun.length < all.length; turn++) {
    await nextTurn();
    expect(begun.length).toBeLessThanOrEqual((turn + 1) * SOURCES_BEGUN_A_TURN_MAX);
  }
  expect(begun.indexOf('quiet')).toBeLessThan(3 * SOURCES_BEGUN_A_TURN_MAX);
  // Whoever comes when nobody waits begins at once.
  await nextTurn();
  await nextTurn();
  await open('late');
  expect(begun.at(-1)).toBe('late');
});
