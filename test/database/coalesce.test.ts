/** Calls that share round trips: how many are under way, what goes into one, and what its end means for each. */
import { expect, test } from 'bun:test';
import { type CoalesceOptions, coalesce } from '../../src/database/journal/coalesce.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { COALESCE_BATCH_MAX_ITEMS, COALESCE_WAITING_MAX_ITEMS } from '../../src/limits.ts';
import { settle } from '../support/virtual-clock.ts';

/** Calls whose round trips end when the test says so. */
function begun(more: Pick<CoalesceOptions<number, string>, 'distinct' | 'flights'> = {}) {
  const trips: {
    readonly items: readonly number[];
    readonly answer: (values: readonly string[]) => void;
    readonly fail: () => void;
  }[] = [];
  const call = coalesce<number, string>({
    load: (items) => new Promise((answer, reject) => trips.push({ items, answer, fail: () => reject(new Error('broken')) })),
    ...more,
  });
  return { trips, call, items: () => trips.map((trip) => trip.items) };
}

test('Two round trips are under way at most, and what waits meanwhile shares the next', async () => {
  const { trips, call, items } = begun();
  const first = [call(1), call(2)];
  await settle();
  const second = call(3);
  await settle();
  const third = [call(4), call(5)];
  await settle();
  expect(items()).toEqual([[1, 2], [3]]);
  trips[0]?.answer(['one', 'two']);
  expect(await Promise.all(first)).toEqual(['one', 'two']);
  await settle();
  expect(items()).toEqual([[1, 2], [3], [4, 5]]);
  trips[1]?.fail();
  await expect(second).rejects.toThrow('broken');
  const broken = Promise.allSettled(third);
  trips[2]?.answer(['four']);
  for (const each of await broken)
    expect(each).toMatchObject({ status: 'rejected', reason: new Error('a batch was answered in part') });
});

test('One round trip holds so many calls, and no two of one name', async () => {
  for (const distinct of [undefined, String]) {
    const { trips, call, items } = begun({ flights: 1, ...(distinct === undefined ? {} : { distinct }) });
    const calls = Array.from({ length: COALESCE_BATCH_MAX_ITEMS + 1 }, (_, n) => call(n));
    await settle();
    trips[0]?.answer(Array.from({ length: COALESCE_BATCH_MAX_ITEMS }, String));
    await settle();
    expect(items().map(({ length }) => length)).toEqual([COALESCE_BATCH_MAX_ITEMS, 1]);
    trips[1]?.answer(['last']);
    expect((await Promise.all(calls)).at(-1)).toBe('last');
  }
  const named = begun({ flights: 1, distinct: (item) => String(item % 10) });
  for (const item of [1, 2, 11, 3, 21]) void named.call(item);
  await settle();
  for (const [at, values] of [['a', 'b', 'c'], ['d'], ['e']].entries()) {
    named.trips[at]?.answer(values);
    await settle();
  }
  expect(named.items()).toEqual([[1, 2, 3], [11], [21]]);
});

test('A call beyond those that may wait is refused at once', async () => {
  const { call, trips } = begun({ flights: 1 });
  const calls = Array.from({ length: COALESCE_WAITING_MAX_ITEMS }, (_, n) => call(n));
  await expect(call(-1)).rejects.toBeInstanceOf(StoreUnavailable);
  for (let at = 0; at * COALESCE_BATCH_MAX_ITEMS < COALESCE_WAITING_MAX_ITEMS; at += 1) {
    await settle();
    const trip = trips[at];
    trip?.answer(trip.items.map(String));
  }
  expect((await Promise.all(calls)).at(-1)).toBe(String(COALESCE_WAITING_MAX_ITEMS - 1));
  await settle();
  expect(trips.flatMap(({ items }) => items)).not.toContain(-1);
});
