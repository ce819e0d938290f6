/** Pages of an event log that is filtered by what no index has. */
import { expect, test } from 'bun:test';
import { pageOfLog } from '../../src/database/event/event-page.ts';
import type { EventQuery, LoggedEvent } from '../../src/database/event/events.ts';
import { EVENT_LIST_LOOK_MS, EVENT_LIST_MAX_BYTES, EVENT_LIST_PIECE_ROWS } from '../../src/limits.ts';
import fc from '../support/fast-check.ts';

const event = (eventId: number, status: LoggedEvent['status'], body = '{}'): LoggedEvent => ({
  ...{ eventId, status, body, attempts: [], at: 0, name: 'session.ended', sessionUuid: undefined },
  webhookId: `evt_${eventId}`,
  appUuid: 'app',
});

/** A log up to the position `newest`. Each position that it looks at takes `usPerRow` microseconds. */
function logOf(events: readonly LoggedEvent[], newest: number, usPerRow = 0) {
  let now = 0;
  let looks = 0;
  return {
    now: () => now,
    looks: () => looks,
    ends: async () => ({ oldest: 1, newest }),
    list: async (query: EventQuery) => {
      looks++;
      const { after, before = newest + 1, limit, status, name, oldestFirst } = query;
      now += ((before - after) * usPerRow) / 1000;
      const matching = events.filter(
        (each) =>
          each.eventId > after &&
          each.eventId < before &&
          (status === undefined || each.status === status) &&
          (name === undefined || each.name === name),
      );
      const ordered = oldestFirst === true ? matching : matching.toReversed();
      const page: LoggedEvent[] = [];
      let bytes = 0;
      for (const each of ordered.slice(0, limit)) {
        if (bytes >= EVENT_LIST_MAX_BYTES) break;
        bytes += each.body.length;
        page.push(each);
      }
      return page;
    },
  };
}

const asked = { appUuid: undefined, sessionUuid: undefined, status: 'dead', after: 0, limit: 3 } as const;

test('Pages of rare events have each of them once, in order, forwards and backwards, and the last page says so', async () => {
  const positions = fc.uniqueArray(fc.integer({ min: 1, max: 200_000 }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(positions, fc.boolean(), async (given, isBack) => {
      const sorted = given.toSorted((one, other) => one - other);
      const log = logOf(
        sorted.map((position) => event(position, 'dead')),
        200_000,
        50,
      );
      const seen: number[] = [];
      let place: number | undefined = isBack ? 300_000 : 0;
      for (let pages = 0; place !== undefined; pages++) {
        expect(pages).toBeLessThan(40);
        const began = log.now();
        const page = await pageOfLog(log, isBack ? { ...asked, before: place } : { ...asked, after: place }, log.now);
        expect(log.now() - began).toBeLessThan(EVENT_LIST_LOOK_MS * 2);
        expect(page.events.length).toBeLessThanOrEqual(3);
        seen.push(...page.events.map(({ eventId }) => eventId));
        place = page.next;
      }
      expect(seen).toEqual(isBack ? sorted.toReversed() : sorted);
    }),
    { numRuns: 50 },
  );
});

test('A page that finds nothing in two seconds says where to go on, instead of failing', async () => {
  const log = logOf([event(9_000_000, 'dead')], 10_000_000, 50);
  const page = await pageOfLog(log, asked, log.now);
  expect(page.events).toEqual([]);
  expect(page.next).toBeGreaterThan(EVENT_LIST_PIECE_ROWS);
  expect(log.now()).toBeLessThan(EVENT_LIST_LOOK_MS * 2);
});

test('A page that ends early because its events are large says that there are more', async () => {
  const large = 'x'.repeat(EVENT_LIST_MAX_BYTES / 2);
  const log = logOf(
    [1, 2, 3].map((position) => event(position, 'dead', large)),
    3,
  );
  const first = await pageOfLog(log, { ...asked, limit: 100 }, log.now);
  expect([first.events.map(({ eventId }) => eventId), first.next]).toEqual([[1, 2], 2]);
  const rest = await pageOfLog(log, { ...asked, after: 2, limit: 100 }, log.now);
  expect([rest.events.map(({ eventId }) => eventId), rest.next]).toEqual([[3], undefined]);
});

test('A page of a log that is not filtered is read at once', async () => {
  const log = logOf(
    Array.from({ length: 10 }, (_, i) => event(i + 1, 'delivered')),
    1_000_000,
    50,
  );
  const page = await pageOfLog(log, { ...asked, status: undefined }, log.now);
  expect([page.events.length, page.next, log.looks()]).toEqual([3, 3, 1]);
});

test('An event on either side of the edge of a piece is found, and a page that is just full is the last', async () => {
  const newest = 100_000;
  // Each piece of a quick log is twice as long as the one before it.
  for (const edge of [1, 3, 7].map((pieces) => pieces * EVENT_LIST_PIECE_ROWS))
    for (const [position, place] of [
      [edge, {}],
      [edge + 1, {}],
      [newest - edge + 1, { before: newest + 1 }],
      [newest - edge, { before: newest + 1 }],
    ] as const) {
      const found = event(position, 'dead');
      const log = logOf([found], newest);
      expect(await pageOfLog(log, { ...asked, limit: 1, ...place }, log.now)).toEqual({ events: [found], next: undefined });
    }
});

test('What no index has is looked for in pieces that grow, and the events of one Session at once', async () => {
  const far = { ...event(10_000_000, 'dead'), name: 'room.created' };
  for (const filter of [{ status: 'dead' }, { status: undefined, name: 'room.created' }] as const) {
    const log = logOf([far], 10_000_000);
    expect((await pageOfLog(log, { ...asked, ...filter }, log.now)).events).toEqual([far]);
    expect(log.looks()).toBeGreaterThan(10);
    expect(log.looks()).toBeLessThan(20);
  }
  const log = logOf([far], 10_000_000);
  expect((await pageOfLog(log, { ...asked, sessionUuid: 'session' }, log.now)).events).toEqual([far]);
  expect(log.looks()).toBe(1);
});
