/** The relay step by step, on a clock that stands still. */
import { expect, test } from 'bun:test';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import {
  RELAY_APP_MAX_EVENTS,
  RELAY_DISABLED_LOOK_MS,
  RELAY_IN_FLIGHT_MAX,
  RELAY_IN_FLIGHT_RESERVE_MAX,
  RELAY_LEASE_MS,
  RELAY_LEASE_RETRY_MS,
  RELAY_LONE_LEASE_MS,
  RELAY_LONE_POLL_MS,
  RELAY_OUTAGE_PAUSE_MS,
  RELAY_POLL_MS,
  RELAY_SETTLING_MAX_EVENTS,
  RELAY_TURN_DELIVERIES,
  SETTLE_GATHER_MS,
} from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { RETRY_DELAYS_MS, RETRY_SPAN_MS } from '../../src/webhook/retry.ts';
import { settle, type VirtualClock } from '../support/virtual-clock.ts';
import { outboxEvent, steeredRelay } from './steered-relay.ts';

/** Lets all that is ready run, and then so much time pass. */
async function pass(clock: VirtualClock, ms: number): Promise<void> {
  await settle();
  await clock.advance(ms);
}

/** Lets run what is ready until it changes the count no more. */
async function untilQuiet(count: () => number): Promise<void> {
  for (let before = Number.NaN; before !== count(); ) {
    before = count();
    await settle();
  }
}

const never = () => new Promise<number>(() => {});

test('A delivery is settled with its attempt, and the next of its lane follows at once', async () => {
  const { relay, clock, state, settled, posts } = steeredRelay([outboxEvent(1), outboxEvent(2)]);
  const at = clock.now();
  const answer = Promise.withResolvers<number>();
  state.receive = (id) => (id === 'evt_1' ? answer.promise : 204);
  relay.start();
  await pass(clock, 40);
  expect([posts, relay.load()]).toEqual([['evt_1'], { leading: true, queued: 2, inFlight: 1, delivered: 0, failed: 0 }]);
  answer.resolve(200);
  await pass(clock, SETTLE_GATHER_MS);
  expect([posts, relay.load()]).toEqual([['evt_1', 'evt_2'], { leading: true, queued: 0, inFlight: 0, delivered: 2, failed: 0 }]);
  const attempt = { status: 200, error: '', duration_ms: 40, retry_at: null };
  expect(settled).toEqual([
    { xid: '1', eventId: 1, status: 'delivered', attempt: { ...attempt, at } },
    { xid: '1', eventId: 2, status: 'delivered', attempt: { ...attempt, at: at + 40, status: 204, duration_ms: 0 } },
  ]);
});

test('A failed event is tried again in its time, as often as the schedule says, and then its lane goes on', async () => {
  const { relay, clock, state, settled, posts } = steeredRelay([]);
  const failed = { status: 500, error: 'http_status', duration_ms: 1 };
  const first = clock.now() - RETRY_SPAN_MS;
  const attempts = RETRY_DELAYS_MS.slice(1).map((_, nth) => ({ ...failed, at: first + nth, retry_at: clock.now() }));
  state.toRead.push(outboxEvent(1, { attempts }), outboxEvent(2));
  state.receive = (id) => (id === 'evt_1' ? 500 : 200);
  relay.start();
  await settle();
  expect(posts).toEqual(['evt_1']);
  await pass(clock, 3_600_000 - 1);
  expect(posts).toEqual(['evt_1']);
  await pass(clock, SETTLE_GATHER_MS + 1);
  expect(posts).toEqual(['evt_1', 'evt_1', 'evt_2']);
  expect(settled.map(({ eventId, status, attempt }) => [eventId, status, attempt?.retry_at === null])).toEqual([
    [1, 'pending', false],
    [1, 'dead', true],
    [2, 'delivered', true],
  ]);
  expect(relay.load()).toMatchObject({ delivered: 1, failed: 2, queued: 0 });
});

test('What is blocked, or has nowhere to go, or no key to be signed with, is settled without an attempt', async () => {
  const { relay, clock, state, settled, posts, patch } = steeredRelay([outboxEvent(1)]);
  patch({ blockedWebhookEvents: ['session.*'] });
  relay.start();
  await pass(clock, SETTLE_GATHER_MS);
  patch({ blockedWebhookEvents: [], webhookUrl: '' });
  state.toRead.push(outboxEvent(2));
  await pass(clock, RELAY_POLL_MS + SETTLE_GATHER_MS);
  state.secrets = [];
  patch({ webhookUrl: 'http://receiver.invalid/' });
  state.toRead.push(outboxEvent(3));
  await pass(clock, RELAY_POLL_MS + SETTLE_GATHER_MS);
  expect(posts).toEqual([]);
  expect(settled).toEqual([
    { xid: '1', eventId: 1, status: 'blocked', attempt: undefined },
    { xid: '1', eventId: 2, status: 'undeliverable', attempt: undefined },
    { xid: '1', eventId: 3, status: 'undeliverable', attempt: undefined },
  ]);
  expect(relay.load()).toMatchObject({ queued: 0, inFlight: 0, delivered: 0, failed: 0 });
});

test('An endpoint that answered 410 is looked at now and then, and tried as soon as the application is patched', async () => {
  const { relay, clock, state, settled, posts, calls, patch } = steeredRelay([outboxEvent(1), outboxEvent(2)]);
  state.receive = (id) => (posts.length === 1 && id === 'evt_1' ? 410 : 200);
  relay.start();
  await pass(clock, SETTLE_GATHER_MS);
  expect(calls).toContain('disable http://receiver.invalid/');
  await pass(clock, 10 * RELAY_DISABLED_LOOK_MS);
  expect([posts, relay.load().failed]).toEqual([['evt_1'], 1]);
  // The next look is not due yet: the patch hurries what waits.
  patch({ webhookDisabled: false });
  await settle();
  expect(posts).toEqual(['evt_1', 'evt_1', 'evt_2']);
  await pass(clock, SETTLE_GATHER_MS);
  expect(settled.map(({ eventId, status }) => [eventId, status])).toEqual([
    [1, 'pending'],
    [1, 'delivered'],
    [2, 'delivered'],
  ]);
});

test('A patch hurries what waits for it, also what was never tried, and nothing that waits for its time', async () => {
  const { relay, clock, state, posts, patch } = steeredRelay([outboxEvent(1)]);
  state.receive = (id) => (id !== 'evt_1' ? 200 : posts.length === 1 ? 410 : 500);
  relay.start();
  await pass(clock, 10);
  // Its retry is a second away.
  patch({ webhookDisabled: false });
  await settle();
  expect(posts).toEqual(['evt_1', 'evt_1']);
  patch({ webhookDisabled: true });
  state.toRead.push(outboxEvent(2, { lanes: ['session:2'] }));
  await pass(clock, RELAY_POLL_MS);
  expect(posts).toEqual(['evt_1', 'evt_1']);
  patch({ webhookDisabled: false });
  await settle();
  expect(posts).toEqual(['evt_1', 'evt_1', 'evt_2']);
  patch({});
  await settle();
  expect(posts).toHaveLength(3);
});

test('A patch that comes while the endpoint is looked up, or its 410 is stored, is not missed', async () => {
  const { relay, clock, state, posts, patch } = steeredRelay([outboxEvent(1)]);
  const [keys, stored] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  [state.slowKeys, state.disabling] = [keys.promise, stored.promise];
  state.app = { ...state.app, webhookDisabled: true, webhookSince: clock.now() };
  state.receive = () => (posts.length === 1 ? 410 : 200);
  relay.start();
  await settle();
  patch({ webhookDisabled: false });
  keys.resolve();
  await settle();
  expect(posts).toEqual(['evt_1']);
  patch({ webhookSince: clock.now() + 1 });
  stored.resolve();
  await settle();
  expect(posts).toEqual(['evt_1', 'evt_1']);
});

test('A failure waits for its time, also when the application is patched, while it rests or is under way', async () => {
  for (const isUnderWay of [false, true]) {
    const { relay, clock, state, posts, patch } = steeredRelay([outboxEvent(1)]);
    const answer = Promise.withResolvers<number>();
    if (isUnderWay) state.receive = () => answer.promise;
    relay.start();
    await settle();
    patch({});
    answer.resolve(503);
    await pass(clock, 999);
    expect(posts).toEqual(['evt_1']);
    await pass(clock, 1);
    expect(posts).toEqual(['evt_1', 'evt_1']);
  }
});

test('What failed at one URL is tried at once at another, where its schedule goes on', async () => {
  const { relay, clock, posts, patch } = steeredRelay([outboxEvent(1), outboxEvent(2, { lanes: ['session:2'] })]);
  relay.start();
  await settle();
  await pass(clock, 1_000);
  expect(posts).toHaveLength(4);
  // The third attempts are two seconds away.
  patch({ webhookUrl: 'http://another.invalid/' });
  await settle();
  expect(posts).toHaveLength(6);
  // A change that leaves the URL as it is hurries nothing.
  patch({ webhookUrl: 'http://another.invalid/' });
  await pass(clock, 1_999);
  expect(posts).toHaveLength(6);
  await pass(clock, 1);
  expect(posts).toHaveLength(8);
  await pass(clock, 4_999);
  expect(posts).toHaveLength(8);
  await pass(clock, 1);
  expect(posts.filter((each) => each === 'evt_1')).toHaveLength(5);
  expect(posts).toHaveLength(10);
});

test('What failed before the relay began is tried at once, too, when the application sets another URL', async () => {
  const { relay, clock, state, posts, patch } = steeredRelay([]);
  state.toRead.push(outboxEvent(1, { attempts: [{ at: clock.now() - 1_000, retry_at: clock.now() + 3_600_000 }] }));
  relay.start();
  await settle();
  patch({});
  await settle();
  expect(posts).toEqual([]);
  patch({ webhookUrl: 'http://another.invalid/' });
  await settle();
  expect(posts).toEqual(['evt_1']);
});

test('An attempt that is under way while its URL is replaced is made at once at the other when it has failed', async () => {
  const { relay, clock, state, posts, patch } = steeredRelay([outboxEvent(1)]);
  const { promise, resolve: answer } = Promise.withResolvers<number>();
  state.receive = () => (posts.length === 1 ? promise : 200);
  relay.start();
  await settle();
  patch({ webhookUrl: 'http://another.invalid/' });
  await settle();
  expect(posts).toEqual(['evt_1']);
  answer(503);
  await pass(clock, 1);
  expect(posts).toEqual(['evt_1', 'evt_1']);
  expect(relay.load()).toMatchObject({ delivered: 1, failed: 1 });
});

test('An application that takes its webhook away has until the next attempt to set another', async () => {
  const { relay, clock, posts, settled, patch } = steeredRelay([outboxEvent(1)]);
  relay.start();
  await settle();
  patch({ webhookUrl: '' });
  await pass(clock, SETTLE_GATHER_MS);
  patch({ webhookUrl: 'http://another.invalid/' });
  await settle();
  expect(posts).toEqual(['evt_1', 'evt_1']);
  await pass(clock, SETTLE_GATHER_MS);
  expect(settled.map(({ status }) => status)).toEqual(['pending', 'pending']);
});

test('An application that moves its webhook while the database is away has its events at their time', async () => {
  const { relay, clock, state, posts, patch } = steeredRelay([outboxEvent(1)]);
  relay.start();
  await settle();
  state.isAway = true;
  patch({ webhookUrl: 'http://another.invalid/' });
  await settle();
  state.isAway = false;
  await pass(clock, 999);
  expect(posts).toEqual(['evt_1']);
  await pass(clock, 1);
  expect(posts).toEqual(['evt_1', 'evt_1']);
});

test('An endpoint that answered 410 is asked nothing more while that is being stored', async () => {
  const { relay, clock, state, posts } = steeredRelay([outboxEvent(1)]);
  const stored = Promise.withResolvers<void>();
  state.disabling = stored.promise;
  state.receive = () => 410;
  relay.start();
  await pass(clock, 3_000);
  stored.resolve();
  await pass(clock, 3_000);
  expect(posts).toEqual(['evt_1']);
});

test('An event whose receiver asks for an hour each time is tried for no longer than a day, scaled', async () => {
  const { relay, clock, state, posts, settled } = steeredRelay([outboxEvent(1)], { retryScale: 0.1, isAlone: true });
  const began = clock.now();
  state.retryAfter = '3600';
  relay.start();
  await pass(clock, 5 * 3_600_000);
  expect(posts).toHaveLength(3);
  const last = settled.at(-1);
  expect([last?.status, (last?.attempt?.at ?? 0) - began]).toEqual(['dead', 2 * 3_600_000]);
});

test('A relay that has read further than its database has come begins anew, with what that has', async () => {
  const { relay, clock, state, posts, readTo } = steeredRelay([outboxEvent(1, { xid: '900' })]);
  relay.start();
  await settle();
  expect([posts, readTo()]).toMatchObject([['evt_1'], { xid: '900' }]);
  // An earlier state of the database was restored.
  state.wentBack = true;
  await pass(clock, RELAY_POLL_MS);
  state.wentBack = false;
  expect([readTo(), relay.load().leading]).toEqual([undefined, false]);
  state.receive = () => 200;
  state.toRead.push(outboxEvent(2, { xid: '7' }));
  await pass(clock, RELAY_LEASE_MS / 4);
  expect([posts.at(-1), readTo(), relay.load().leading]).toMatchObject(['evt_2', { xid: '7' }, true]);
});

test('An endpoint that was switched off elsewhere is found on again at the next look', async () => {
  const { relay, clock, state, posts } = steeredRelay([outboxEvent(1)]);
  state.app = { ...state.app, webhookDisabled: true, webhookSince: clock.now() };
  state.receive = () => 200;
  relay.start();
  await settle();
  // Another node was asked to patch it, and nobody tells.
  state.app = { ...state.app, webhookDisabled: false };
  await pass(clock, RELAY_DISABLED_LOOK_MS - 1);
  expect(posts).toEqual([]);
  await pass(clock, 1);
  expect(posts).toEqual(['evt_1']);
});

test('What waits for a disabled endpoint is set aside a span of retries after it could first have been sent', async () => {
  const scale = 0.01;
  // It was emitted before the endpoint was switched off, a minute before that, or a minute after it.
  for (const [at, sinceBefore, triedBefore] of [
    [-1, 0, 0],
    [-60_001, 60_000, 60_000],
    [-1, 60_000, 1],
  ] as const) {
    const { relay, clock, state, settled, posts } = steeredRelay([], { retryScale: scale });
    const now = clock.now();
    state.app = { ...state.app, webhookDisabled: true, webhookSince: now - sinceBefore };
    state.toRead.push(outboxEvent(1, { at: now + at }));
    relay.start();
    const left = RETRY_SPAN_MS * scale - triedBefore;
    await pass(clock, left - 1);
    expect([settled, posts]).toEqual([[], []]);
    await pass(clock, 1 + SETTLE_GATHER_MS);
    expect(settled).toEqual([
      {
        ...{ xid: '1', eventId: 1, status: 'dead' },
        attempt: { at: now + left, status: null, error: 'disabled', duration_ms: 0, retry_at: null },
      },
    ]);
    expect(posts).toEqual([]);
  }
});

test('A look-up that the database does not answer is made again, and counts as no attempt', async () => {
  const { relay, clock, state, settled, posts, patch } = steeredRelay([]);
  state.receive = () => 200;
  relay.start();
  await settle();
  state.isAway = true;
  state.isAway = false;
  state.slow = Promise.reject(new StoreUnavailable('away'));
  state.slow.catch(() => {});
  state.toRead.push(outboxEvent(1));
  await pass(clock, RELAY_POLL_MS);
  state.slow = Promise.resolve();
  patch({});
  expect(posts).toEqual([]);
  await pass(clock, RELAY_OUTAGE_PAUSE_MS - 1);
  expect([posts, relay.load()]).toMatchObject([[], { inFlight: 0, queued: 1 }]);
  await pass(clock, 1 + SETTLE_GATHER_MS);
  expect([posts, settled.map(({ status }) => status)]).toEqual([['evt_1'], ['delivered']]);
  expect(relay.load()).toMatchObject({ failed: 0, delivered: 1 });
});

test('An event whose secret cannot be opened is looked at now and then, and sent as soon as the secret is another', async () => {
  const said: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void said.push(message) };
  const { relay, clock, state, posts, patch } = steeredRelay([outboxEvent(1)], { log });
  state.receive = () => 200;
  state.slow = Promise.reject(new Error('MASTER_KEY opens no webhook secret of this application'));
  state.slow.catch(() => {});
  relay.start();
  await pass(clock, RELAY_DISABLED_LOOK_MS - 1);
  expect(said).toHaveLength(1);
  await pass(clock, 1);
  expect(said).toHaveLength(2);
  state.slow = Promise.resolve();
  patch({});
  await settle();
  expect(posts).toEqual(['evt_1']);
});

test('So many deliveries are under way at most, of which the last are from the reserve of quiet applications', async () => {
  const most = RELAY_IN_FLIGHT_MAX + RELAY_IN_FLIGHT_RESERVE_MAX;
  const events = Array.from({ length: most + 500 }, (_, n) =>
    outboxEvent(n, { appUuid: `app_${n % (most + 10)}`, lanes: [`session:${n}`] }),
  );
  const { relay, state, posts } = steeredRelay(events);
  const answer = Promise.withResolvers<number>();
  state.receive = (id) => (id === 'evt_7' ? answer.promise : never());
  relay.start();
  await untilQuiet(() => posts.length);
  expect([posts.length, relay.load().inFlight]).toEqual([most, most]);
  answer.resolve(200);
  await settle();
  expect([posts.length, relay.load().inFlight]).toEqual([most + 1, most]);
});

test('In one turn so many deliveries are begun at most, however quickly each is answered', async () => {
  const events = Array.from({ length: 3 * RELAY_TURN_DELIVERIES + 5 }, (_, n) =>
    outboxEvent(n, { appUuid: `app_${n % 10}`, lanes: [`session:${n}`] }),
  );
  const turns: (() => void)[] = [];
  const turn = () => new Promise<void>((resolve) => void turns.push(resolve));
  const { relay, state, posts } = steeredRelay(events, { turn });
  state.receive = () => 200;
  relay.start();
  await untilQuiet(() => posts.length);
  const begun = [posts.length];
  while (turns.length > 0) {
    for (const end of turns.splice(0)) end();
    await untilQuiet(() => posts.length);
    begun.push(posts.length);
  }
  expect(begun).toEqual([1, 2, 3].map((nth) => nth * RELAY_TURN_DELIVERIES).concat(events.length, events.length));
});

test('Beyond the reserve nothing is sent of an application that has its part under way', async () => {
  const events = Array.from({ length: RELAY_IN_FLIGHT_MAX * 2 }, (_, n) =>
    outboxEvent(n, { appUuid: `app_${n % 10}`, lanes: [`session:${n}`] }),
  );
  const { relay, state, posts } = steeredRelay(events);
  state.receive = never;
  relay.start();
  await untilQuiet(() => posts.length);
  expect(posts.length).toBeLessThanOrEqual(RELAY_IN_FLIGHT_MAX);
  expect(posts.length).toBeGreaterThan(RELAY_IN_FLIGHT_MAX / 4);
});

test('Nothing is sent while too many outcomes wait for the database, and all goes on when it has them', async () => {
  const count = RELAY_SETTLING_MAX_EVENTS + 2 * RELAY_IN_FLIGHT_MAX;
  const events = Array.from({ length: count }, (_, n) => outboxEvent(n, { appUuid: `app_${n % 10}`, lanes: [`session:${n}`] }));
  const { relay, clock, state, posts, settled } = steeredRelay(events);
  state.receive = () => 200;
  const answer = Promise.withResolvers<boolean>();
  state.settle = () => answer.promise;
  relay.start();
  await untilQuiet(() => posts.length);
  await pass(clock, 1_000);
  expect(posts.length).toBeGreaterThanOrEqual(RELAY_SETTLING_MAX_EVENTS);
  expect(posts.length).toBeLessThan(count);
  state.settle = async () => true;
  answer.resolve(true);
  await untilQuiet(() => posts.length);
  await pass(clock, 1_000);
  expect([posts.length, settled.length]).toEqual([count, count]);
});

test('The end sends nothing new, waits for what is under way, writes it, and gives the lease back last', async () => {
  const { relay, clock, state, posts, settled, calls } = steeredRelay([
    outboxEvent(1),
    outboxEvent(2),
    outboxEvent(3, { lanes: ['session:3'] }),
  ]);
  const answers = new Map(['evt_1', 'evt_3'].map((id) => [id, Promise.withResolvers<number>()] as const));
  state.receive = async (id) => (await answers.get(id)?.promise) ?? 200;
  relay.start();
  await settle();
  expect(posts).toEqual(['evt_1', 'evt_3']);
  let isStopped = false;
  const stopped = relay.stop().then(() => {
    isStopped = true;
  });
  const before = calls.filter((call) => call.startsWith('lease')).length;
  await pass(clock, 2 * RELAY_LEASE_MS);
  expect(calls.filter((call) => call.startsWith('lease')).length - before).toBe(8);
  answers.get('evt_1')?.resolve(200);
  await pass(clock, 1_000);
  expect([isStopped, settled.length]).toEqual([false, 1]);
  answers.get('evt_3')?.resolve(500);
  await pass(clock, SETTLE_GATHER_MS - 1);
  expect([isStopped, calls.includes('release')]).toEqual([false, false]);
  await pass(clock, 1);
  await stopped;
  expect(posts).toEqual(['evt_1', 'evt_3']);
  expect(settled.map(({ eventId, status }) => [eventId, status])).toEqual([
    [1, 'delivered'],
    [3, 'pending'],
  ]);
  expect([calls.at(-1), relay.load().leading, clock.armed]).toEqual(['release', false, 0]);
});

test('What waits for its next attempt keeps neither the end up, nor a timer after it or after the lease is lost', async () => {
  for (const isLost of [false, true]) {
    const { relay, clock, state, settled } = steeredRelay([outboxEvent(1)]);
    state.retryAfter = '60';
    relay.start();
    await pass(clock, SETTLE_GATHER_MS);
    expect(settled.map(({ status }) => status)).toEqual(['pending']);
    const armed = clock.armed;
    if (isLost) {
      state.isLeased = false;
      await pass(clock, RELAY_LEASE_MS / 4 - SETTLE_GATHER_MS);
      // The pause until the lease is asked for again is left; the next attempt and the next reading are gone.
      expect([armed, clock.armed]).toEqual([3, 1]);
    }
    await relay.stop();
    expect(clock.armed).toBe(0);
  }
});

test('An event is tried for a day since its first attempt, however long its receiver asked to wait between them', async () => {
  const { relay, clock, state, settled } = steeredRelay([]);
  const failed = { status: 503, error: 'http_status', duration_ms: 1, retry_at: clock.now() };
  const attempts = [24 * 3_600_000 - 4_000, 3_600_000].map((ago) => ({ ...failed, at: clock.now() - ago }));
  state.toRead.push(outboxEvent(1, { attempts }));
  relay.start();
  await pass(clock, SETTLE_GATHER_MS);
  expect(settled.map(({ status }) => status)).toEqual(['dead']);
});

test('Thousands of events that are settled without being sent are settled one after the other', async () => {
  const events = Array.from({ length: RELAY_APP_MAX_EVENTS }, (_, n) => outboxEvent(n, { lanes: [`session:${n}`] }));
  const { relay, clock, state, settled, take } = steeredRelay([outboxEvent(1)]);
  state.app = { ...state.app, webhookUrl: '' };
  relay.start();
  await pass(clock, SETTLE_GATHER_MS);
  // The endpoint is known by now: no event waits for a look-up.
  expect(take(events.map((event) => ({ ...event, xid: '2' })))).toBe(true);
  await untilQuiet(() => relay.load().queued);
  await pass(clock, 1_000);
  expect([settled.length, relay.load().queued]).toEqual([RELAY_APP_MAX_EVENTS + 1, 0]);
});

test('A lease that is lost at the end leaves the outcome to whoever has it', async () => {
  const { relay, clock, state, settled } = steeredRelay([outboxEvent(1), outboxEvent(2, { lanes: ['session:2'] })]);
  const answer = Promise.withResolvers<number>();
  state.receive = (id) => (id === 'evt_1' ? answer.promise : 500);
  relay.start();
  await settle();
  const stopped = relay.stop();
  state.isLeased = false;
  state.settle = async () => false;
  await pass(clock, RELAY_LEASE_MS);
  answer.resolve(200);
  await pass(clock, RELAY_LEASE_MS);
  await stopped;
  expect([settled, clock.armed]).toEqual([[], 0]);
});

test('A relay whose lease another one has taken sends nothing, and begins anew when it has it again', async () => {
  const { relay, clock, state, posts, readTo, take } = steeredRelay([outboxEvent(1)]);
  expect([readTo(), take([outboxEvent(5)])]).toEqual([undefined, false]);
  relay.start();
  relay.start();
  await settle();
  expect([posts, relay.load().leading, readTo()]).toMatchObject([['evt_1'], true, { xid: '1', eventId: 1 }]);
  state.isLeased = false;
  await pass(clock, RELAY_LEASE_MS / 4);
  expect([relay.load().leading, readTo(), take([outboxEvent(5)])]).toEqual([false, undefined, false]);
  await pass(clock, 60_000);
  expect(posts).toEqual(['evt_1']);
  state.isLeased = true;
  state.toRead.push(outboxEvent(1));
  state.receive = () => 200;
  await pass(clock, RELAY_LEASE_MS / 4);
  expect([posts, relay.load()]).toMatchObject([['evt_1', 'evt_1'], { leading: true, queued: 0 }]);
});

test('A relay whose outcomes are refused has lost its lease, and begins anew', async () => {
  const { relay, clock, state, posts, settled, readTo, take } = steeredRelay([outboxEvent(1), outboxEvent(2)]);
  state.receive = (id) => (id === 'evt_1' ? 200 : 500);
  state.settle = async () => false;
  relay.start();
  await pass(clock, SETTLE_GATHER_MS);
  expect([relay.load().leading, readTo(), take([outboxEvent(5)])]).toEqual([false, undefined, false]);
  await pass(clock, RELAY_LEASE_MS / 4 - SETTLE_GATHER_MS - 1);
  expect(posts).toEqual(['evt_1', 'evt_2']);
  state.settle = async () => true;
  state.toRead.push(outboxEvent(2));
  state.receive = () => 200;
  await pass(clock, 1 + SETTLE_GATHER_MS);
  expect([posts, relay.load().leading]).toEqual([['evt_1', 'evt_2', 'evt_2'], true]);
  expect(settled.map(({ eventId }) => eventId)).toEqual([2]);
});

test('A relay that has lost its lease does not lead on while the database does not say whose it is', async () => {
  const { relay, clock, state, posts } = steeredRelay([outboxEvent(1)]);
  state.receive = () => 200;
  state.settle = async () => false;
  relay.start();
  await pass(clock, SETTLE_GATHER_MS);
  expect([posts, relay.load().leading]).toEqual([['evt_1'], false]);
  state.isAway = true;
  await pass(clock, RELAY_LEASE_MS / 4);
  state.isAway = false;
  state.isLeased = false;
  state.toRead.push(outboxEvent(2));
  await pass(clock, RELAY_LEASE_MS);
  expect([posts, relay.load().leading]).toEqual([['evt_1'], false]);
});

test('An event whose endpoint was being looked up as the lease ended is left to whoever has the lease then', async () => {
  for (const isLost of [true, false]) {
    const { relay, clock, state, posts } = steeredRelay([outboxEvent(1)]);
    const { promise, resolve } = Promise.withResolvers<void>();
    state.slow = promise;
    state.receive = () => 200;
    relay.start();
    await settle();
    if (isLost) state.isLeased = false;
    else state.isAway = true;
    await pass(clock, RELAY_LEASE_MS);
    state.isAway = false;
    resolve();
    await settle();
    expect([posts, relay.load().inFlight]).toEqual([[], 0]);
    await pass(clock, RELAY_LEASE_RETRY_MS);
    expect(posts).toEqual(isLost ? [] : ['evt_1']);
  }
});

test('At the end an event whose endpoint is still being looked up is sent while the lease is held, and not once it is lost', async () => {
  for (const isLeased of [true, false]) {
    const { relay, clock, state, posts } = steeredRelay([outboxEvent(1)]);
    const { promise, resolve } = Promise.withResolvers<void>();
    state.slow = promise;
    state.receive = () => 200;
    relay.start();
    await settle();
    const stopped = relay.stop();
    state.isLeased = isLeased;
    await pass(clock, isLeased ? 2 * RELAY_LEASE_MS : RELAY_LEASE_MS / 2);
    resolve();
    await pass(clock, RELAY_LEASE_MS);
    await stopped;
    expect(posts).toEqual(isLeased ? ['evt_1'] : []);
  }
});

test('Nothing is sent past the end of a lease that could not be renewed; what fell due goes as soon as it is', async () => {
  const { relay, clock, state, posts } = steeredRelay([outboxEvent(1)]);
  relay.start();
  await pass(clock, SETTLE_GATHER_MS);
  state.isAway = true;
  await pass(clock, RELAY_LEASE_MS);
  const sent = posts.length;
  // The next attempt falls due meanwhile.
  await pass(
    clock,
    RETRY_DELAYS_MS.slice(0, sent).reduce((sum, delay) => sum + delay, 0),
  );
  expect(posts.length).toBe(sent);
  state.isAway = false;
  state.receive = () => 200;
  await pass(clock, RELAY_LEASE_RETRY_MS);
  expect([sent, posts.length]).toEqual([3, 4]);
});

test('What a flush hands over is sent without being read, and what wakes the relay is read at once', async () => {
  const { relay, clock, state, posts, calls, take, wake, readTo } = steeredRelay([]);
  state.receive = () => 200;
  relay.start();
  await settle();
  const reads = () => calls.filter((call) => call === 'read').length;
  const before = reads();
  expect(take([outboxEvent(1, { xid: '5' })])).toBe(true);
  await settle();
  expect([posts, reads(), readTo()]).toMatchObject([['evt_1'], before, { xid: '5', eventId: 1 }]);
  state.toRead.push(outboxEvent(2, { xid: '6' }));
  wake();
  await settle();
  expect([posts, reads()]).toEqual([['evt_1', 'evt_2'], before + 1]);
  await pass(clock, RELAY_POLL_MS - 1);
  expect(reads()).toBe(before + 1);
  await pass(clock, 1);
  expect(reads()).toBe(before + 2);
});

test('A process that has its database for itself renews and reads less often', async () => {
  for (const [isAlone, leaseMs, pollMs] of [
    [true, RELAY_LONE_LEASE_MS, RELAY_LONE_POLL_MS],
    [false, RELAY_LEASE_MS, RELAY_POLL_MS],
  ] as const) {
    const { relay, clock, calls } = steeredRelay([], { isAlone });
    relay.start();
    await pass(clock, 5 * leaseMs);
    expect(calls.filter((call) => call === `lease ${leaseMs}`).length).toBe(21);
    expect(calls.filter((call) => call === 'read').length).toBe(1 + (5 * leaseMs) / pollMs);
    await relay.stop();
    expect([calls.at(-1), clock.armed]).toEqual(['release', 0]);
  }
});

test('A process that has its database for itself asks again for a lease that the database did not answer for sooner', async () => {
  const { relay, clock, state, calls } = steeredRelay([], { isAlone: true });
  const leases = () => calls.filter((call) => call.startsWith('lease')).length;
  relay.start();
  await settle();
  state.isAway = true;
  await pass(clock, RELAY_LONE_LEASE_MS / 4 + 2 * RELAY_LEASE_RETRY_MS);
  expect(leases()).toBe(4);
  state.isAway = false;
  await pass(clock, RELAY_LEASE_RETRY_MS);
  expect(leases()).toBe(5);
  await pass(clock, RELAY_LONE_LEASE_MS / 4);
  expect(leases()).toBe(6);
});

test('The last deliveries are waited for until none is left, the time is over, or the database is away', async () => {
  const { relay, clock, state, calls } = steeredRelay([]);
  relay.start();
  await settle();
  state.isEmpty = true;
  expect(await relay.deliverLast(1_000)).toBe(true);
  state.isEmpty = false;
  const reads = () => calls.filter((call) => call === 'read').length;
  const before = reads();
  let ended: boolean | undefined;
  const last = relay.deliverLast(1_000).then((isEmpty) => {
    ended = isEmpty;
  });
  await settle();
  expect(reads()).toBe(before + 1);
  await pass(clock, 999);
  expect(ended).toBeUndefined();
  await pass(clock, 1);
  await last;
  expect(ended).toBe(false);
  // What others commit meanwhile is not waited for: each has its own transactions before it.
  expect(new Set(calls.filter((call) => call.startsWith('before')))).toEqual(new Set(['before 1', 'before 2']));
  state.isAway = true;
  expect(await relay.deliverLast(1_000)).toBe(false);
});

test('A receiver that times out is sent fewer events at once', async () => {
  const events = Array.from({ length: 400 }, (_, n) => outboxEvent(n, { lanes: [`session:${n}`] }));
  const { relay, clock, state, posts } = steeredRelay(events);
  state.receive = (_id, signal) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  relay.start();
  await settle();
  const atOnce = relay.load().inFlight;
  expect(atOnce).toBe(posts.length);
  await pass(clock, 5_000);
  expect(relay.load().inFlight).toBeLessThan(atOnce / 4);
  expect(relay.load().failed).toBe(atOnce);
});
