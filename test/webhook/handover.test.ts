/** The lease passes from one relay to another. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { systemClock } from '../../src/clock.ts';
import { newUuid } from '../../src/id.ts';
import { openSecondStore, openTestStore, type TestStore } from '../database/open.ts';
import { eventOf } from './emit.ts';
import { hastyRelay } from './hasty-relay.ts';
import { startReceiver } from './receiver.ts';

let first: TestStore;
beforeAll(async () => {
  first = await openTestStore();
});
afterAll(() => first.close());

const LEASE_MS = 400;

test('A relay that is stopped while a receiver takes its time keeps the lease until it has the answer: nobody sends again', async () => {
  const { store } = first;
  const second = await openSecondStore(first);
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const receiver = startReceiver(async ({ step }) => {
    if (step === 1) {
      asked.resolve();
      await answered.promise;
    }
    return new Response(null, { status: 200 });
  });
  const { appUuid } = await store.apps.create({ name: 'handover', webhookUrl: receiver.url });
  const [leaves, follows] = [store, second].map((each) =>
    hastyRelay(each, systemClock(), { timeoutSec: 10, leaseMs: LEASE_MS, nodeId: newUuid() }),
  );
  leaves?.start();
  const session = newUuid();
  await store.journal.commit({ events: [1, 2].map((step) => eventOf(appUuid, session, step)) });
  await asked.promise;
  follows?.start();
  const stopped = leaves?.stop();
  setTimeout(answered.resolve, 4 * LEASE_MS);
  await stopped;
  await receiver.until(() => receiver.accepted.size === 2);
  await follows?.stop();
  expect(receiver.received.map(({ step }) => step)).toEqual([1, 2]);
  receiver.stop();
  await second.close();
});
