/** The relay while something else than time holds its jobs back. */
import { expect, test } from 'bun:test';
import type { AppDetail, AppStore } from '../../src/database/app/apps.ts';
import type { CredentialStore } from '../../src/database/app/credentials.ts';
import type { OutboxEvent, OutboxStore } from '../../src/database/event/outbox.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
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

test('A relay whose lease has run out rests until the database is back, also when a retry is due', async () => {
  const clock = new CountingClock();
  let isAway = false;
  let reads = 0;
  const answered = async <T>(value: T): Promise<T> => {
    if (isAway) throw new StoreUnavailable('away');
    return value;
  };
  const outbox: OutboxStore = {
    lease: () => answered(true),
    release: async () => {},
    horizon: () => answered({ xid: '0', eventId: 0 }),
    backlog: () => answered([]),
    read: () => answered({ events: reads++ === 0 ? [event] : [], more: false, heldBack: false }),
    readApp: () => answered({ events: [], more: false }),
    isEmpty: () => answered(false),
    settle: () => answered(true),
    onEvents: () => {},
    follow: () => {},
  };
  const apps: Pick<AppStore, 'get' | 'onChange' | 'disableWebhook'> = {
    get: () => answered(app),
    onChange: () => {},
    disableWebhook: async () => true,
  };
  const credentials: Pick<CredentialStore, 'signingSecrets'> = { signingSecrets: () => answered([`whsec_${'A'.repeat(43)}=`]) };
  let posts = 0;
  const relay = createRelay({
    outbox,
    apps,
    credentials,
    outbound: {
      fetch: async () => {
        posts += 1;
        return { status: 503, headers: new Headers(), body: undefined };
      },
    },
    clock,
    log: silentLog,
    timeoutSec: 5,
    retryScale: 1,
    random: () => 0.5,
  });
  relay.start();
  await settle();
  // It was sent once, and its retry is due while the lease lasts no more.
  expect(posts).toBe(1);
  isAway = true;
  await clock.advance(6_000);
  const before = clock.timers;
  await clock.advance(10_000);
  // The lease and the reader ask now and then; nothing asks again at once.
  expect(clock.timers - before).toBeLessThan(100);
});
