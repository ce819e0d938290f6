/** The end of the event log does not pass by an event whose transaction commits late. */
import { expect, test } from 'bun:test';
import type { Database } from '../../src/database/driver/database.ts';
import { eventTail } from '../../src/database/event/event-tail.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { EVENT_TAIL_LOOK_MS, EVENT_TAIL_SPACING_MS } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** A log with two events, and the transactions that write it. */
function world() {
  const clock = new VirtualClock();
  const committed: number[] = [1, 2];
  /** The numbers of the transactions that run. */
  const running = new Set<number>();
  const database = { isAway: false, queries: 0 };
  let next = 9;
  const runsBefore = (end: number) => [...running].some((each) => each < end);
  const answer = (text: string, first: unknown): unknown[] => {
    const last = committed.length === 0 ? null : Math.max(...committed);
    if (text.includes('max(')) return [{ last, next: String(next), runs: runsBefore(next) }];
    if (text.includes('pg_sequence')) return [{ first: Math.min(...committed), last }];
    if (text.includes('AS runs')) return [{ runs: runsBefore(Number(first)) }];
    return committed
      .filter((id) => id > Number(first))
      .sort((a, b) => a - b)
      .map((id) => ({ event_id: id, bytes: 10 }));
  };
  const tail = eventTail(
    {
      async query<R>(text: string, parameters: readonly unknown[] = []): Promise<readonly R[]> {
        database.queries++;
        if (database.queries > 10_000) throw new Error('the tail spins');
        if (database.isAway) throw new StoreUnavailable('away');
        return answer(text, parameters[0]) as R[];
      },
    } as Database,
    clock,
  );
  const told: number[] = [];
  /** Begins a transaction. Returns what ends it. */
  const begin = () => {
    const mine = next++;
    running.add(mine);
    return () => running.delete(mine);
  };
  return { clock, committed, begin, tail, told, database };
}

test('an event that is committed below a later one is told in its place', async () => {
  const { clock, committed, begin, tail, told } = world();
  expect(await tail.position()).toBe(2);
  const stop = tail.follow((position) => told.push(position));
  begin();
  committed.push(4);
  tail.wake();
  await clock.advance(500);
  expect(told).toEqual([]);
  committed.push(3);
  await clock.advance(500);
  expect(told).toEqual([4]);
  stop();
});

test('a number that never comes holds nothing up once no transaction can write it any more', async () => {
  const { clock, committed, begin, tail, told } = world();
  await tail.position();
  tail.follow((position) => told.push(position));
  committed.push(5, 8, 11, 14);
  await clock.advance(1_000);
  expect(told.at(-1)).toBe(14);
  const end = begin();
  committed.push(16);
  await clock.advance(5_000);
  expect(told.at(-1)).toBe(14);
  end();
  await clock.advance(200);
  expect(told.at(-1)).toBe(16);
});

test('an event of a transaction that takes five seconds is told in its place', async () => {
  const { clock, committed, begin, tail, told } = world();
  await tail.position();
  tail.follow((position) => told.push(position));
  const end = begin();
  committed.push(4);
  await clock.advance(6_000);
  expect(told).toEqual([]);
  committed.push(3);
  end();
  await clock.advance(100);
  expect(told).toEqual([4]);
});

test('a transaction that runs for ever holds the log up for ten seconds only', async () => {
  const { clock, committed, begin, tail, told } = world();
  await tail.position();
  tail.follow((position) => told.push(position));
  begin();
  committed.push(5, 6);
  await clock.advance(9_000);
  expect(told).toEqual([]);
  await clock.advance(3_000);
  expect(told).toEqual([6]);
});

test('who comes while nobody follows gets the end that the log has then', async () => {
  const { committed, tail } = world();
  expect(await tail.position()).toBe(2);
  committed.push(3);
  expect(await tail.position()).toBe(3);
});

test('who begins to follow as the last follower leaves is told what was added since it asked for the end', async () => {
  const { clock, committed, tail, told } = world();
  await tail.position();
  const stop = tail.follow(() => {});
  expect(await tail.position()).toBe(2);
  stop();
  committed.push(3);
  tail.follow((position) => told.push(position));
  await clock.advance(1_000);
  expect(told).toEqual([3]);
});

test('nobody who follows costs nothing', async () => {
  const { clock, tail, database } = world();
  await tail.position();
  const stop = tail.follow(() => {});
  await clock.advance(3_000);
  stop();
  const before = database.queries;
  tail.wake();
  await clock.advance(10_000);
  expect([database.queries, clock.armed]).toEqual([before, 0]);
});

test('who comes as the last follower leaves gets the end that the log has then', async () => {
  const { clock, committed, tail, told } = world();
  await tail.position();
  const stop = tail.follow((position) => told.push(position));
  committed.push(3);
  tail.wake();
  // The look begins, and its follower leaves before it is over.
  const looking = clock.advance(50);
  stop();
  expect(await tail.position()).toBe(3);
  await looking;
});

test('the end of the log is known once no transaction can write below it any more, or after two seconds', async () => {
  const { clock, committed, begin, tail } = world();
  committed.splice(0, 2, 1, 3);
  const end = begin();
  const known: number[] = [];
  void tail.position().then((position) => known.push(position));
  await clock.advance(500);
  expect(known).toEqual([]);
  committed.push(2);
  end();
  await clock.advance(100);
  expect(known).toEqual([3]);

  const stuck = world();
  stuck.begin();
  void stuck.tail.position().then((position) => known.push(position));
  await stuck.clock.advance(0);
  await stuck.clock.advance(1_900);
  expect(known).toEqual([3]);
  await stuck.clock.advance(200);
  expect(known).toEqual([3, 2]);
});

test('a log that has become an earlier one is told as such, and followed from its own end on', async () => {
  const { clock, committed, tail, told } = world();
  committed.push(3, 4, 5, 6);
  await tail.position();
  let lost = 0;
  const stop = tail.follow(
    (position) => told.push(position),
    () => {
      lost += 1;
    },
  );
  await clock.advance(3_000);
  expect(lost).toBe(0);
  committed.splice(2);
  await clock.advance(1_000);
  expect([lost, await tail.position()]).toEqual([1, 2]);
  committed.push(3);
  await clock.advance(1_000);
  expect([told, lost]).toEqual([[2, 3], 1]);
  stop();
});

test('a gap waits for the transactions that ran when it was seen, and for none that began after it', async () => {
  const { clock, committed, begin, tail, told } = world();
  await tail.position();
  tail.follow((position) => told.push(position));
  const endFirst = begin();
  committed.push(4);
  await clock.advance(1_000);
  const endSecond = begin();
  endFirst();
  await clock.advance(100);
  expect(told).toEqual([4]);
  committed.push(6);
  await clock.advance(1_000);
  expect(told).toEqual([4]);
  endSecond();
  await clock.advance(100);
  expect(told).toEqual([4, 6]);
});

test('an event that is erased while it is behind a gap leaves the database in peace', async () => {
  const { clock, committed, begin, tail, told, database } = world();
  await tail.position();
  tail.follow((position) => told.push(position));
  const end = begin();
  committed.push(4);
  await clock.advance(1_000);
  committed.pop();
  end();
  const before = database.queries;
  await clock.advance(10_000);
  // A tail that spins has its turns here.
  await new Promise((resolve) => setImmediate(resolve));
  expect(database.queries - before).toBeLessThan((3 * 10_000) / EVENT_TAIL_LOOK_MS);
});

test('who follows is told on when another one leaves, of the end and of the bytes before it', async () => {
  const { clock, committed, tail } = world();
  await tail.position();
  const told: number[][] = [];
  tail.follow((...news) => told.push(news));
  const stop = tail.follow(() => {});
  stop();
  committed.push(3, 4);
  await clock.advance(EVENT_TAIL_LOOK_MS);
  expect(told).toEqual([[4, 20]]);
});

test('who asks for the end while another follows is told it at once, and takes nothing from the other', async () => {
  const { clock, committed, tail, database } = world();
  await tail.position();
  const told: number[][] = [];
  tail.follow((...news) => told.push(news));
  await clock.advance(EVENT_TAIL_LOOK_MS);
  const before = database.queries;
  committed.push(3, 4);
  expect([await tail.position(), database.queries]).toEqual([2, before]);
  await clock.advance(EVENT_TAIL_LOOK_MS);
  expect(told).toEqual([[4, 20]]);
});

test('what wakes the tail is told at once, and a hundred of it cost one reading', async () => {
  const { clock, committed, tail, told, database } = world();
  await tail.position();
  tail.follow((position) => told.push(position));
  const before = database.queries;
  committed.push(3);
  for (let times = 0; times < 100; times++) tail.wake();
  await clock.advance(EVENT_TAIL_SPACING_MS);
  expect(told).toEqual([3]);
  // A reading goes on until nothing is left.
  expect(database.queries - before).toBeLessThanOrEqual(3);
});

test('an event is told although the tail is woken all the time', async () => {
  const { clock, committed, tail, told, database } = world();
  await tail.position();
  const stop = tail.follow((position) => told.push(position));
  committed.push(3);
  const before = database.queries;
  for (let ms = 0; ms < 1_000; ms += EVENT_TAIL_SPACING_MS / 5) {
    tail.wake();
    await clock.advance(EVENT_TAIL_SPACING_MS / 5);
    if (ms >= EVENT_TAIL_SPACING_MS) expect(told).toEqual([3]);
  }
  // At the end of the log a reading asks for its bounds, too.
  expect(database.queries - before).toBeLessThan((2 * 1_000) / EVENT_TAIL_SPACING_MS + 4);
  stop();
  expect(clock.armed).toBe(0);
});

test('those who ask for the end at the same time share a reading, which fails as the database does', async () => {
  const { clock, committed, tail, told, database } = world();
  expect(await Promise.all([tail.position(), tail.position()])).toEqual([2, 2]);
  expect(database.queries).toBe(1);
  tail.follow((position) => told.push(position));
  database.isAway = true;
  committed.push(3);
  await clock.advance(3_000);
  database.isAway = false;
  await clock.advance(EVENT_TAIL_LOOK_MS);
  expect(told).toEqual([3]);

  const away = world();
  away.database.isAway = true;
  await expect(away.tail.position()).rejects.toBeInstanceOf(StoreUnavailable);
});
