/** A relay on a store, a receiver and a clock that the test has in its hands. */

import type { App, AppStore } from '../../src/database/app/apps.ts';
import type { CredentialStore } from '../../src/database/app/credentials.ts';
import type { OutboxEvent, OutboxStore, Settlement } from '../../src/database/event/outbox.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { EVERYWHERE } from '../../src/destinations.ts';
import { silentLog } from '../../src/log.ts';
import { createRelay, type RelayOptions } from '../../src/webhook/relay.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** A clock that counts the timers that were set. */
class CountingClock extends VirtualClock {
  timers = 0;

  override at(deadline: number, fire: () => void): () => void {
    this.timers += 1;
    if (this.timers > 50_000) throw new Error('the relay spins');
    return super.at(deadline, fire);
  }
}

export const outboxEvent = (eventId: number, more: Partial<OutboxEvent> = {}): OutboxEvent => ({
  ...{ xid: '1', eventId, webhookId: `evt_${eventId}`, appUuid: 'app_1', name: 'session.created', lanes: ['session:1'] },
  ...{ body: '{}', traceparent: '', at: 0, attempts: [] },
  ...more,
});

const app: App = {
  ...{ appUuid: 'app_1', name: '', webhookUrl: 'http://receiver.invalid/', webhookDisabled: false, webhookSince: 0 },
  ...{ createdAt: 0, blockedWebhookEvents: [], destinations: EVERYWHERE, roomLimits: { maxRooms: 1, maxMembersPerRoom: 1 } },
};

/** What a receiver answers to an event: a status, in the end. */
type Receive = (webhookId: string, signal: AbortSignal) => number | Promise<number>;

const atOnce = (): Promise<void> | undefined => undefined;

/** Makes the relay. `events` are what it reads first. */
export function steeredRelay(events: readonly OutboxEvent[] = [outboxEvent(1)], more: Partial<RelayOptions> = {}) {
  const clock = new CountingClock();
  const settled: Settlement[] = [];
  const posts: string[] = [];
  const calls: string[] = [];
  const receive: Receive = () => 503;
  const state = {
    /** The database does not answer. */
    isAway: false,
    isLeased: true,
    /** The answer to who asks for the lease waits for it. */
    leasing: atOnce(),
    isEmpty: false,
    /** The database is an earlier one. */
    wentBack: false,
    /** What a failed delivery is answered with as `Retry-After`; `""` for none. */
    retryAfter: '',
    /** The storing of a 410 waits for it. */
    disabling: Promise.resolve(),
    /** The look-up of an endpoint waits for it. */
    slow: Promise.resolve(),
    /** The look-up of the keys waits for it, when the endpoint has been read. */
    slowKeys: Promise.resolve(),
    settle: async (): Promise<boolean> => true,
    app,
    secrets: [`whsec_${'A'.repeat(43)}=`] as readonly string[],
    toRead: [...events],
    receive,
  };
  const answered = async <T>(value: T): Promise<T> => {
    if (state.isAway) throw new StoreUnavailable('away');
    return value;
  };
  const wakers: (() => void)[] = [];
  const changes: ((appUuid: string) => void)[] = [];
  let reader: Parameters<OutboxStore['follow']>[0] | undefined;
  let transactions = 0;
  const outbox: OutboxStore = {
    lease(_holder, ttlMs) {
      calls.push(`lease ${ttlMs}`);
      const answer = () => answered(state.isLeased);
      return state.leasing?.then(answer) ?? answer();
    },
    async release() {
      calls.push('release');
    },
    horizon: () => answered({ xid: '0', eventId: 0 }),
    backlog: () => answered([]),
    async read() {
      calls.push('read');
      const events = state.isAway ? [] : state.toRead.splice(0);
      return await answered({ events, more: false, heldBack: false, wentBack: state.wentBack });
    },
    readApp: () => answered({ events: [], more: false }),
    nextTransaction: () => answered(String(++transactions)),
    isEmpty(before) {
      calls.push(`before ${before}`);
      return answered(state.isEmpty);
    },
    async settle(_holder, settlements) {
      if (!(await answered(await state.settle()))) return false;
      settled.push(...settlements);
      return true;
    },
    onEvents: (wake) => void wakers.push(wake),
    follow(by) {
      reader = by;
    },
  };
  const apps: Pick<AppStore, 'settings' | 'onChange' | 'disableWebhook'> = {
    async settings(appUuid) {
      await state.slow;
      return await answered({ ...state.app, appUuid });
    },
    onChange: (changed) => void changes.push(changed),
    async disableWebhook(_appUuid, url, since) {
      calls.push(`disable ${url}`);
      await state.disabling;
      if (since !== state.app.webhookSince) return false;
      state.app = { ...state.app, webhookDisabled: true, webhookSince: clock.now() };
      for (const changed of changes) changed('app_1');
      return true;
    },
  };
  const credentials: Pick<CredentialStore, 'signingSecrets'> = {
    async signingSecrets() {
      await state.slowKeys;
      return await answered(state.secrets);
    },
  };
  const relay = createRelay({
    outbox,
    apps,
    credentials,
    outbound: {
      async fetch({ headers, signal }) {
        const webhookId = headers['webhook-id'] ?? '';
        posts.push(webhookId);
        const status = await state.receive(webhookId, signal);
        const headersOf = new Headers(state.retryAfter === '' ? {} : { 'retry-after': state.retryAfter });
        return { status, headers: headersOf, body: undefined };
      },
    },
    clock,
    log: silentLog,
    timeoutSec: 5,
    retryScale: 1,
    random: () => 0.5,
    turn: () => Promise.resolve(),
    ...more,
  });
  return {
    relay,
    clock,
    state,
    settled,
    /** The events that were posted, by their names. */
    posts,
    /** What the store was asked for. */
    calls,
    /** How far the relay says that it has read. */
    readTo: () => reader?.readTo(),
    take: (taken: readonly OutboxEvent[]) => reader?.take(taken),
    wake() {
      for (const each of wakers) each();
    },
    patch(change: Partial<App>) {
      state.app = { ...state.app, ...change };
      for (const changed of changes) changed('app_1');
    },
  };
}
