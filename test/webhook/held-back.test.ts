/** The relay while something else than time holds its jobs back. */
import { expect, test } from 'bun:test';
import type { AppDetail, AppStore } from '../../src/database/app/apps.ts';
import type { CredentialStore } from '../../src/database/app/credentials.ts';
import type { Attempt } from '../../src/database/event/attempt.ts';
import type { OutboxEvent, OutboxStore, Settlement } from '../../src/database/event/outbox.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { RELAY_LEASE_MS, RELAY_LEASE_RETRY_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { createRelay } from '../../src/webhook/relay.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

/** A clock that counts the timers that were set. */
class CountingClock extends VirtualClock {
  timers = 0;

  override at(deadline: number, fire: () => void): () => void {
    this.timers += 1;
    if (this.timers > 5_000) throw new Error('the relay spins');
    return super.at(deadline, fire);
  }
}

const event: OutboxEvent = {
  ...{ xid: '1', eventId: 1, webhookId: 'evt_1', appUuid: 'app_1', name: 'session.created', lanes: ['session:1'] },
  ...{ body: '{}', traceparent: '', at: 0, attempts: [] },
};

const app: AppDetail = {
  ...{
    appUuid: 'app_1',
    name: '',
    webhookUrl: 'http://receiver.invalid/',
    webhookDisabled: false,
    webhookSince: 0,
    createdAt: 0,
  },
  ...{ blockedWebhookEvents: [], roomLimits: { maxRooms: 1, maxMembersPerRoom: 1 } },
  ...{ inboundPhoneNumbers: [], outboundCallerIds: [], paymentTerminals: [], webhookError: '' },
};

/** A relay with one event, on a store that the test has in its hands. */
function held(attemptsAt: (now: number) => readonly Attempt[] = () => []) {
  const clock = new CountingClock();
  const attempts = attemptsAt(clock.now());
  const settled: Settlement[] = [];
  const state = { isAway: false, isLeased: true, posts: 0, slow: Promise.resolve() };
  let reads = 0;
  const answered = async <T>(value: T): Promise<T> => {
    if (state.isAway) throw new StoreUnavailable('away');
    return value;
  };
  const outbox: OutboxStore = {
    lease: () => answered(state.isLeased),
    release: async () => {},
    horizon: () => answered({ xid: '0', eventId: 0 }),
    backlog: () => answered([]),
    read: () => answered({ events: reads++ === 0 ? [{ ...event, attempts }] : [], more: false, heldBack: false }),
    readApp: () => answered({ events: [], more: false }),
    isEmpty: () => answered(false),
    settle: async (_holder, settlements) => {
      settled.push(...settlements);
      return await answered(true);
    },
    onEvents: () => {},
    follow: () => {},
  };
  const apps: Pick<AppStore, 'settings' | 'onChange' | 'disableWebhook'> = {
    settings: async () => {
      await state.slow;
      return await answered(app);
    },
    onChange: () => {},
    disableWebhook: async () => true,
  };
  const credentials: Pick<CredentialStore, 'signingSecrets'> = { signingSecrets: () => answered([`whsec_${'A'.repeat(43)}=`]) };
  const relay = createRelay({
    outbox,
    apps,
    credentials,
    outbound: {
      fetch: async () => {
        state.posts += 1;
        return { status: 503, headers: new Headers(), body: undefined };
      },
    },
    clock,
    log: silentLog,
    timeoutSec: 5,
    retryScale: 1,
    random: () => 0.5,
  });
  return { relay, clock, state, settled };
}

test('A relay whose lease has run out rests until the database is back, also when a retry is due', async () => {
  const { relay, clock, state } = held();
  relay.start();
  await settle();
  // It was sent once, and its retry is due while the lease lasts no more.
  expect(state.posts).toBe(1);
  state.isAway = true;
  await clock.advance(6_000);
  const before = clock.timers;
  await clock.advance(10_000);
  // The lease and the reader ask now and then; nothing asks again at once.
  expect(clock.timers - before).toBeLessThan(100);
});

test('An event whose endpoint was looked up for longer than the lease lasted waits for the lease', async () => {
  const { relay, clock, state } = held();
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
  expect(state.posts).toBe(0);
  await clock.advance(RELAY_LEASE_RETRY_MS);
  expect(state.posts).toBe(1);
});

test('An event whose endpoint was looked up until another relay took the lease is left to that one', async () => {
  const { relay, clock, state } = held();
  const found = Promise.withResolvers<void>();
  state.slow = found.promise;
  relay.start();
  await settle();
  state.isLeased = false;
  await clock.advance(RELAY_LEASE_MS / 2);
  found.resolve();
  await clock.advance(RELAY_LEASE_MS);
  expect({ posts: state.posts, leading: relay.load().leading }).toEqual({ posts: 0, leading: false });
});

test('A relay that goes on for another keeps to the schedule of the failed attempts that it finds', async () => {
  const failed = { status: 503, error: 'http_status', duration_ms: 1 };
  const { relay, clock, state, settled } = held((now) => [
    { ...failed, at: now - 2_000, retry_at: now - 1_000 },
    { ...failed, at: now - 1_000, retry_at: now + 1_000 },
  ]);
  relay.start();
  await clock.advance(999);
  expect(state.posts).toBe(0);
  await clock.advance(1);
  expect(state.posts).toBe(1);
  // Two attempts failed before: the pause after the third is the third of the schedule.
  await clock.advance(4_999);
  expect(state.posts).toBe(1);
  expect(settled.map(({ status, attempt }) => [status, (attempt?.retry_at ?? 0) - (attempt?.at ?? 0)])).toEqual([
    ['pending', 5_000],
  ]);
  await clock.advance(1);
  expect([state.posts, relay.load().failed, relay.load().queued]).toEqual([2, 2, 1]);
});
