/** Keys of a secure collection whose end the database takes its time to store. */

import { expect, test } from 'bun:test';
import type { Leg, LegListener } from '../../src/call/ports/leg.ts';
import { SessionRegistry } from '../../src/call/session/session-registry.ts';
import type { Change } from '../../src/database/journal/journal.ts';
import { newUuid } from '../../src/id.ts';
import { CARD_BRANDS } from '../../src/machine/payment/card.ts';
import type { CollectionTerms } from '../../src/machine/payment/collection.ts';
import { bareRegistry } from '../support/bare-registry.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const CARD = '4111111111111111';

/** An answered call that collects a card. */
async function collecting() {
  const clock = new VirtualClock();
  const changes: Change[] = [];
  const database = { answers: Promise.resolve() };
  const registry = new SessionRegistry({
    journal: {
      commit: async (change) => {
        await database.answers;
        changes.push(change);
        return true;
      },
      wasStored: async () => false,
    },
    ...bareRegistry(),
    clock,
    payments: {
      nodeId: 'node',
      vault: { seal: () => new Uint8Array(1), open: () => new Uint8Array(1) },
      referenceTtlMs: 60_000,
      cardBrand: async () => undefined,
    },
  });
  let hear: LegListener = () => {};
  const orders = { start() {}, ring() {}, startEarlyMedia() {}, answer() {}, reject() {}, cancel() {}, hangup() {} };
  const leg: Leg = { audio: undefined, ...orders };
  await registry.incoming({
    callerId: '',
    did: '+15550002',
    appUuid: 'app',
    leg,
    refuse: () => {},
    listen: (listener) => {
      hear = listener;
    },
  });
  await settle();
  const [actor] = registry.all();
  if (actor === undefined) throw new Error('no Session');
  const context = () => ({ appUuid: 'app', operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' });
  await actor.command({ type: 'answer' }, context());
  hear({ type: 'leg.answered' });
  await settle();
  const terms: CollectionTerms = {
    ...{ kind: 'card', reference: 'card_r', maxAttempts: 1, firstDigitTimeoutMs: 60_000, interDigitTimeoutMs: 60_000 },
    ...{ terminators: ['#'], acceptedBrands: CARD_BRANDS, cardBrand: undefined, hasPrompt: false, retryUrls: [] },
  };
  await actor.command({ type: 'collect_payment', terms, promptUrls: [], cardUuid: undefined }, context());
  const press = (keys: string) => {
    for (const digit of keys) hear({ type: 'leg.media', notice: { type: 'digit', digit, durationMs: 100, method: 'rfc4733' } });
  };
  const names = () => changes.flatMap(({ events }) => events.map(({ name }) => name));
  const cancel = () => actor.command({ type: 'cancel_payment', kind: 'card' }, context());
  return { clock, database, press, names, cancel };
}

test.each(['completed', 'cancelled'] as const)(
  'Keys that are pressed while the end of a collection that was %s is being stored are told to nobody, nor those right after.',
  async (how) => {
    const { clock, database, press, names, cancel } = await collecting();
    const { promise, resolve } = Promise.withResolvers<void>();
    database.answers = promise;
    if (how === 'completed') press(`${CARD}#`);
    else void cancel();
    await settle();
    await clock.advance(4_000);
    press('123');
    resolve();
    await settle();
    await clock.advance(400);
    press('4');
    await settle();
    expect(names().filter((name) => name === 'payment.card.collected')).toHaveLength(1);
    expect(names()).not.toContain('dtmf.received');
    await clock.advance(4_000);
    press('5');
    await settle();
    expect(names().filter((name) => name === 'dtmf.received')).toHaveLength(1);
  },
);
