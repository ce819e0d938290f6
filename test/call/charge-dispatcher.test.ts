import { expect, test } from 'bun:test';
import { ChargeDispatcher } from '../../src/call/charge/charge-dispatcher.ts';
import type { PaymentStore } from '../../src/database/call/payments.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import type { PlatformEvent } from '../../src/event/event.ts';
import { silentLog } from '../../src/log.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const REQUEST = {
  ...{ cardUuid: 'card_1', cvvUuid: 'cvv_1', expMonth: 1, expYear: 2030, amount: 100, currency: 'ils' },
  ...{ provider: 'fake', terminalNumber: '1', installments: 1 },
};

/** A desk whose database takes a charge and is away from then on. Unless it is heard, its answer is lost. */
function desk(isStored: boolean, isHeard = false) {
  const clock = new VirtualClock();
  const told: Record<string, unknown>[] = [];
  const attempts: string[] = [];
  const database = { isAway: false };
  const work = <T>(result: T) => {
    if (database.isAway) throw new StoreUnavailable('away');
    return result;
  };
  const store: PaymentStore = {
    vault: { seal: () => new Uint8Array(0), open: () => new Uint8Array(0) },
    shared: false,
    cardBrand: async () => undefined,
    admit: async () => {
      database.isAway = true;
      if (isHeard) return { card: new Uint8Array(16), cvv: new Uint8Array(3), brand: 'visa', last4: '1111' };
      throw new StoreUnavailable('no answer');
    },
    wasAdmitted: async () => work(isStored),
    complete: async (_charge, status, event: PlatformEvent) => {
      told.push(work({ status, ...JSON.parse(event.body) }));
      return true;
    },
    attempting: async () => [],
    unfinished: async () => [],
    endUnfinished: async () => true,
    destroyExpired: async () => undefined,
  };
  const dispatcher = new ChargeDispatcher({
    store,
    clock,
    log: silentLog,
    gateway: {
      identifier: 'fake',
      serves: () => true,
      charge: async ({ operationUuid }) => {
        attempts.push(operationUuid);
        return { status: 'declined', reason: 'card_declined' };
      },
    },
    connected: () => ({ clientState: '' }),
    isHere: () => true,
    isLive: async () => true,
    mayUseTerminal: async () => true,
  });
  const context = { appUuid: 'app', operationUuid: 'operation', idempotencyKey: undefined, traceparent: '' };
  return { clock, told, attempts, database, charge: () => dispatcher.charge('session', REQUEST, context), dispatcher };
}

test('A charge that was refused because the database did not answer, and is stored, is told as failed when it answers', async () => {
  const { clock, told, attempts, database, charge, dispatcher } = desk(true);
  await expect(charge()).rejects.toThrow(StoreUnavailable);
  await settle();
  await clock.advance(10_000);
  expect(told).toEqual([]);
  database.isAway = false;
  await clock.advance(2_000);
  expect(told).toMatchObject([{ status: 'failed', failure_reason: 'interrupted', retryable: true, operation_uuid: 'operation' }]);
  expect([attempts, dispatcher.attempting]).toEqual([[], 0]);
});

test('A charge that was refused and is not stored is told nothing of, and not attempted', async () => {
  const { clock, told, attempts, database, charge, dispatcher } = desk(false);
  await expect(charge()).rejects.toThrow(StoreUnavailable);
  database.isAway = false;
  await settle();
  await clock.advance(10_000);
  expect([told, attempts, dispatcher.attempting]).toEqual([[], [], 0]);
});

test('A stop waits ten seconds for a database that is away, not for ever', async () => {
  for (const isHeard of [true, false]) {
    const { clock, told, attempts, charge, dispatcher } = desk(true, isHeard);
    await charge().catch(() => {});
    await clock.advance(60_000);
    expect([attempts.length, dispatcher.attempting, told]).toEqual([isHeard ? 1 : 0, 1, []]);
    let isClosed = false;
    const closed = dispatcher.close().then(() => {
      isClosed = true;
    });
    await clock.advance(9_000);
    expect(isClosed).toBe(false);
    await clock.advance(4_000);
    expect(isClosed).toBe(true);
    await closed;
  }
});

test('An outcome that the database takes during a stop is told', async () => {
  const { clock, told, database, charge, dispatcher } = desk(true, true);
  await charge();
  await settle();
  const closed = dispatcher.close();
  await clock.advance(5_000);
  database.isAway = false;
  await clock.advance(3_000);
  await closed;
  expect(told).toMatchObject([{ status: 'declined', operation_uuid: 'operation' }]);
});
