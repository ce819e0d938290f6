/** The search for the next home of a Room whose home is lost, with nothing around it but rows that the test sets. */
import { expect, test } from 'bun:test';
import type { NewHome } from '../../src/call/ports/room-peers.ts';
import { HomeSearch, type HomeSearchOptions } from '../../src/call/room/home-search.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { HOME_SEARCH_TRIES, HOME_TRUSTED_TRIES, SEAT_NOTE_RETRY_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const HOME: NewHome = { roomId: 'room', nodeId: 'lost', epoch: 3 };
const NEXT: NewHome = { roomId: 'room', nodeId: 'next', epoch: 4 };

/** A search at the node `own`, and what it did: `row` is what the database says of the Room. */
function world(row: Awaited<ReturnType<HomeSearchOptions['homes']['where']>>) {
  const clock = new VirtualClock();
  const did: string[] = [];
  const rows = { row, isAway: false };
  /** The pipes of this node lead there. */
  const pipes = { home: HOME };
  const looked = () => {
    if (rows.isAway) throw new StoreUnavailable('away');
  };
  const search = new HomeSearch({
    ...{ clock, log: silentLog, nodeId: 'own' },
    homes: {
      async seize(roomId, from, epoch) {
        looked();
        if (rows.row?.nodeId !== from || rows.row.epoch !== epoch) return undefined;
        did.push(`took from ${from}`);
        return {
          ...{ roomId, appUuid: 'app', nodeId: 'own', epoch: epoch + 1, voiceActivityEvents: false, holdMusicUrl: '' },
          ...{ volume: undefined, deleting: false, playback: '', createdAt: 0, deletedAt: undefined },
        };
      },
      async where() {
        looked();
        return rows.row;
      },
    },
    leadsTo: (home) => home.nodeId === pipes.home.nodeId && home.epoch === pipes.home.epoch,
    become: async ({ epoch }) => void did.push(`is the home at ${epoch}`),
    follow(home) {
      pipes.home = home;
      did.push(`followed to ${home.nodeId}`);
    },
    closed: () => void did.push('closed'),
    failed: () => void did.push('failed'),
  });
  const advance = async (tries: number) => {
    await settle();
    await clock.advance(tries * SEAT_NOTE_RETRY_MS);
  };
  return { search, did, rows, pipes, advance, clock };
}

test('A Room whose home is silent is taken by the first node that looks, and followed or closed by the others.', async () => {
  for (const [row, outcome] of [
    [HOME, ['took from lost', 'is the home at 4']],
    [NEXT, ['followed to next']],
    // It was given up, and taken again by the same node.
    [{ ...HOME, epoch: 5 }, ['followed to lost']],
    [undefined, ['closed']],
  ] as const) {
    const { search, did, clock } = world(row);
    await search.lost(HOME, 'silent');
    expect([did, search.has('room'), clock.armed]).toEqual([[...outcome], false, 0]);
  }
});

test('A home that says of itself that it is none may be one that opens the Room just now: it is trusted for a while.', async () => {
  const { search, did, advance } = world(HOME);
  const found = search.lost(HOME, 'moved');
  // The same home, as another pipe sees it: nothing changes.
  void search.lost(HOME, 'silent');
  await advance(HOME_TRUSTED_TRIES - 1);
  expect([did, search.has('room')]).toEqual([[], true]);
  await advance(1);
  await found;
  expect(did).toEqual(['took from lost', 'is the home at 4']);
});

test('A Room that nobody has at the moment, or of which the database does not tell, is looked for again.', async () => {
  for (const before of [{ nodeId: null, epoch: 4 }, { nodeId: 'own', epoch: 4 }, HOME] as const) {
    const { search, did, rows, advance } = world(before);
    rows.isAway = before === HOME;
    const found = search.lost(HOME, 'silent');
    await advance(3);
    expect(did).toEqual([]);
    Object.assign(rows, { row: NEXT, isAway: false });
    await advance(1);
    await found;
    expect(did).toEqual(['followed to next']);
  }
});

test('The members of a Room have left once its home was looked for in vain for ten seconds.', async () => {
  const { search, did, advance, clock } = world({ nodeId: null, epoch: 4 });
  // Two pipes lead there; one search is enough.
  const found = search.lost(HOME, 'silent');
  void search.lost(HOME, 'silent');
  await advance(HOME_SEARCH_TRIES - 1);
  expect(did).toEqual([]);
  await advance(1);
  await found;
  expect([did, search.has('room'), clock.armed]).toEqual([['failed'], false, 0]);
});

test('A next home that is lost while the one before is looked for is looked for in its place.', async () => {
  const { search, did, rows, pipes, advance } = world({ nodeId: null, epoch: 4 });
  const found = search.lost(HOME, 'silent');
  await advance(1);
  // The pipes were told of the next home, and have lost it.
  pipes.home = NEXT;
  void search.lost(NEXT, 'silent');
  rows.row = NEXT;
  await advance(1);
  await found;
  expect(did).toEqual(['took from next', 'is the home at 5']);
});

test('A search is over once the pipes of the node lead elsewhere.', async () => {
  const { search, did, pipes, advance } = world({ nodeId: null, epoch: 4 });
  const found = search.lost(HOME, 'silent');
  pipes.home = NEXT;
  await advance(1);
  await found;
  expect(did).toEqual([]);
});
