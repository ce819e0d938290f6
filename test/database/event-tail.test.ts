/** The end of the event log does not pass by an event whose transaction commits late. */
import { expect, test } from 'bun:test';
import type { Database } from '../../src/database/driver/database.ts';
import { eventTail } from '../../src/database/event/event-tail.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

function world() {
  const clock = new VirtualClock();
  const committed: number[] = [1, 2];
  const transactions = { running: false };
  let queries = 0;
  const database: Pick<Database, 'query'> = {
    async query<R>(text: string, parameters: readonly unknown[] = []): Promise<readonly R[]> {
      queries++;
      const after = Number(parameters[0]);
      const rows: unknown[] = text.includes('max(')
        ? [{ last: Math.max(...committed), next: '9', runs: transactions.running }]
        : text.includes('pg_sequence')
          ? [{ first: Math.min(...committed), last: Math.max(...committed) }]
          : text.includes('AS runs')
            ? [{ runs: transactions.running }]
            : committed
                .filter((id) => id > after)
                .sort((a, b) => a - b)
                .map((id) => ({ event_id: id, bytes: 10 }));
      return rows as R[];
    },
  };
  const tail = eventTail(database as Database, clock);
  const told: number[] = [];
  return { clock, committed, transactions, tail, told, queries: () => queries };
}

test('an event that is committed below a later one is told in its place', async () => {
  const { clock, committed, transactions, tail, told } = world();
  expect(await tail.position()).toBe(2);
  const stop = tail.follow((position) => told.push(position));
  transactions.running = true;
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
  const { clock, committed, transactions, tail, told } = world();
  await tail.position();
  tail.follow((position) => told.push(position));
  committed.push(5, 8, 11, 14);
  await clock.advance(1_000);
  expect(told.at(-1)).toBe(14);
  transactions.running = true;
  committed.push(16);
  await clock.advance(5_000);
  expect(told.at(-1)).toBe(14);
  transactions.running = false;
  await clock.advance(200);
  expect(told.at(-1)).toBe(16);
});

test('an event of a transaction that takes five seconds is told in its place', async () => {
  const { clock, committed, transactions, tail, told } = world();
  await tail.position();
  tail.follow((position) => told.push(position));
  transactions.running = true;
  committed.push(4);
  await clock.advance(6_000);
  expect(told).toEqual([]);
  committed.push(3);
  transactions.running = false;
  await clock.advance(100);
  expect(told).toEqual([4]);
});

test('a transaction that runs for ever holds the log up for ten seconds only', async () => {
  const { clock, committed, transactions, tail, told } = world();
  await tail.position();
  tail.follow((position) => told.push(position));
  transactions.running = true;
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
  const { clock, tail, queries } = world();
  await tail.position();
  const stop = tail.follow(() => {});
  await clock.advance(3_000);
  stop();
  const before = queries();
  tail.wake();
  await clock.advance(10_000);
  expect([queries(), clock.armed]).toEqual([before, 0]);
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
  const { clock, committed, transactions, tail } = world();
  committed.splice(0, 2, 1, 3);
  transactions.running = true;
  const known: number[] = [];
  void tail.position().then((position) => known.push(position));
  await clock.advance(500);
  expect(known).toEqual([]);
  committed.push(2);
  transactions.running = false;
  await clock.advance(100);
  expect(known).toEqual([3]);

  const stuck = world();
  stuck.transactions.running = true;
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
