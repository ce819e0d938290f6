/** The relay while something else than time holds its jobs back. */
import { expect, test } from 'bun:test';
import type { Attempt } from '../../src/database/event/attempt.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { RELAY_LEASE_MS, RELAY_LEASE_RETRY_MS, SETTLE_GATHER_MS } from '../../src/limits.ts';
import { settle } from '../support/virtual-clock.ts';
import { outboxEvent, steeredRelay } from './steered-relay.ts';

test('A relay whose lease has run out rests until the database is back, also when a retry is due', async () => {
  const { relay, clock, state, posts } = steeredRelay();
  relay.start();
  await settle();
  // It was sent once, and its retry is due while the lease lasts no more.
  expect(posts.length).toBe(1);
  state.isAway = true;
  await clock.advance(6_000);
  const before = clock.timers;
  await clock.advance(10_000);
  // The lease and the reader ask now and then; nothing asks again at once.
  expect(clock.timers - before).toBeLessThan(150);
});

test('An event whose endpoint was looked up for longer than the lease lasted waits for the lease', async () => {
  const { relay, clock, state, posts } = steeredRelay();
  const found = Promise.withResolvers<void>();
  state.slow = found.promise;
  relay.start();
  await settle();
  state.isAway = true;
  await clock.advance(RELAY_LEASE_MS + 1_000);
  // The database answers the look-up before it is asked for the lease again.
  state.isAway = false;
  found.resolve();
  await settle();
  expect(posts.length).toBe(0);
  await clock.advance(RELAY_LEASE_RETRY_MS);
  expect(posts.length).toBe(1);
});

test('An event whose endpoint was looked up until another relay took the lease is left to that one', async () => {
  const { relay, clock, state, posts } = steeredRelay();
  const found = Promise.withResolvers<void>();
  state.slow = found.promise;
  relay.start();
  await settle();
  state.isLeased = false;
  await clock.advance(RELAY_LEASE_MS / 2);
  found.resolve();
  await clock.advance(RELAY_LEASE_MS);
  expect({ posts: posts.length, leading: relay.load().leading }).toEqual({ posts: 0, leading: false });
});

test('A lease counts from when it was asked for: one whose answer took longer than it lasts sends nothing', async () => {
  const { relay, clock, state, posts } = steeredRelay();
  const answered = Promise.withResolvers<void>();
  state.leasing = answered.promise;
  relay.start();
  await settle();
  await clock.advance(RELAY_LEASE_MS);
  answered.resolve();
  await settle();
  expect([posts, relay.load().leading]).toEqual([[], true]);
  await clock.advance(RELAY_LEASE_MS / 4);
  expect(posts).toEqual(['evt_1']);
});

test('A relay that waits for the lease asks twice as often as one that holds it, as it has to see it run out twice', async () => {
  for (const isLeased of [false, true]) {
    const { relay, clock, state, calls } = steeredRelay([]);
    state.isLeased = isLeased;
    relay.start();
    await settle();
    await clock.advance(RELAY_LEASE_MS);
    expect(calls.filter((call) => call.startsWith('lease')).length).toBe(isLeased ? 5 : 9);
  }
});

test('A relay that has lost its lease does not begin anew while nobody says whose it is, although events can be read', async () => {
  const { relay, clock, state, posts } = steeredRelay();
  state.settle = async () => false;
  state.receive = () => 200;
  relay.start();
  await settle();
  await clock.advance(SETTLE_GATHER_MS);
  expect([posts, relay.load().leading]).toEqual([['evt_1'], false]);
  state.leasing = Promise.reject(new StoreUnavailable('away'));
  state.toRead.push(outboxEvent(2));
  await clock.advance(RELAY_LEASE_MS);
  expect([posts, relay.load().leading]).toEqual([['evt_1'], false]);
  [state.leasing, state.settle] = [undefined, async () => true];
  await clock.advance(RELAY_LEASE_RETRY_MS);
  expect([posts, relay.load().leading]).toEqual([['evt_1', 'evt_2'], true]);
});

test('A relay that goes on for another keeps to the schedule of the failed attempts that it finds', async () => {
  const failed = { status: 503, error: 'http_status', duration_ms: 1 };
  const { relay, clock, state, settled, posts } = steeredRelay([]);
  const now = clock.now();
  const attempts: readonly Attempt[] = [
    { ...failed, at: now - 2_000, retry_at: now - 1_000 },
    { ...failed, at: now - 1_000, retry_at: now + 1_000 },
  ];
  state.toRead.push(outboxEvent(1, { attempts }));
  relay.start();
  await clock.advance(999);
  expect(posts.length).toBe(0);
  await clock.advance(1);
  expect(posts.length).toBe(1);
  // Two attempts failed before: the pause after the third is the third of the schedule.
  await clock.advance(4_999);
  expect(posts.length).toBe(1);
  expect(settled.map(({ status, attempt }) => [status, (attempt?.retry_at ?? 0) - (attempt?.at ?? 0)])).toEqual([
    ['pending', 5_000],
  ]);
  await clock.advance(1);
  expect([posts.length, relay.load().failed, relay.load().queued]).toEqual([2, 2, 1]);
});
