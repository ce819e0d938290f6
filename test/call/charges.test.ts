/** Charges of a node whose database and provider answer when the test says so (contract §6). */
import { expect, test } from 'bun:test';
import { ChargeDispatcher } from '../../src/call/charge/charge-dispatcher.ts';
import type { ChargeRequest } from '../../src/call/ports/charges.ts';
import type { ChargeRow, Consumed, PaymentStore } from '../../src/database/call/payments.ts';
import type { CollectionRow } from '../../src/database/journal/payment-rows.ts';
import { CHARGE_LEFT_AFTER_MS, CHARGES_IN_FLIGHT_MAX, VAULT_SWEEP_MAX_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import type { ChargeOrder, ChargeOutcome } from '../../src/machine/payment/charge.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const REQUEST: ChargeRequest = {
  ...{ cardUuid: 'card_1', cvvUuid: 'cvv_1', expMonth: 1, expYear: 2030, amount: 100, currency: 'ils' },
  ...{ terminalNumber: '1234567', installments: 3 },
};
const ROW: ChargeRow = {
  ...{
    chargeUuid: 'left',
    operationUuid: 'left-operation',
    appUuid: 'app',
    sessionUuid: 'session',
    amount: 100,
    currency: 'ils',
  },
  ...{ provider: 'fake', terminalNumber: '1234567', clientState: 'state', traceparent: '', createdAt: 0 },
};
const context = { appUuid: 'app', operationUuid: 'operation', idempotencyKey: undefined, traceparent: '' };
const consumed = (): Consumed => ({
  ...{ card: Buffer.from('4111111111111111'), cvv: Buffer.from('123'), brand: 'visa', last4: '1111' },
});

/** What the database says, and whether the terminal and the Session are the application's own. */
interface Desk {
  admit(): Promise<Consumed | 'unknown' | 'used' | 'expired'>;
  charge(order: ChargeOrder): Promise<ChargeOutcome>;
  readonly isOff: boolean;
  readonly isAssigned: boolean;
  readonly isServed: boolean;
  readonly isConnected: boolean;
  readonly isHere: boolean;
  readonly isLive: boolean;
  /** How long the database takes to say whether the terminal is assigned, in milliseconds. */
  readonly asksMs: number;
  readonly shared: boolean;
  left(until: number): readonly ChargeRow[];
  readonly collections: readonly CollectionRow[];
  /** When the next reference expires; an error where the database cannot say. */
  expires(now: number): Promise<number | undefined>;
}

function desk(more: Partial<Desk> = {}) {
  const clock = new VirtualClock();
  const told: Record<string, unknown>[] = [];
  const orders: ChargeOrder[] = [];
  const swept: number[] = [];
  const options: Desk = {
    admit: async () => consumed(),
    charge: async () => ({ status: 'declined', reason: 'card_declined' }),
    ...{
      isOff: false,
      isAssigned: true,
      isServed: true,
      isConnected: true,
      isHere: true,
      isLive: true,
      asksMs: 0,
      shared: false,
    },
    ...{ left: () => [], collections: [], expires: async () => undefined },
    ...more,
  };
  const store: PaymentStore = {
    vault: { seal: () => new Uint8Array(0), open: () => new Uint8Array(0) },
    shared: options.shared,
    cardBrand: async () => undefined,
    admit: options.admit,
    wasAdmitted: async () => false,
    complete: async (charge, _status, { body }) => {
      told.push({ charge, ...JSON.parse(body) });
      return true;
    },
    attempting: async (until) => options.left(until),
    unfinished: async () => options.collections,
    endUnfinished: async (_collection, { body }) => {
      told.push(JSON.parse(body));
      return true;
    },
    destroyExpired: (now) => {
      swept.push(now);
      return options.expires(now);
    },
  };
  const gateway = {
    identifier: 'fake',
    serves: () => options.isServed,
    charge: (order: ChargeOrder) => {
      orders.push(order);
      return options.charge(order);
    },
  };
  const dispatcher = new ChargeDispatcher({
    ...{ store, clock, log: silentLog, gateway: options.isOff ? undefined : gateway },
    connected: () => (options.isConnected ? { clientState: 'state' } : undefined),
    isHere: () => options.isHere,
    isLive: async () => options.isLive,
    mayUseTerminal: async () => {
      if (options.asksMs > 0) await clock.advance(options.asksMs);
      return options.isAssigned;
    },
  });
  const charge = async (until = Number.POSITIVE_INFINITY) => {
    const answer = await dispatcher.charge('session', REQUEST, { ...context, until });
    return answer.status;
  };
  return { clock, dispatcher, charge, told, orders, swept };
}

test('A charge is answered 202 and leaves with its terms, and its event tells what came of it and what may be shown', async () => {
  const { charge, orders, told, dispatcher } = desk();
  expect([dispatcher.provider, await charge()]).toEqual(['fake', 202]);
  await settle();
  expect(orders).toMatchObject([
    {
      ...{ operationUuid: 'operation', sessionUuid: 'session', expMonth: 1, expYear: 2030, amount: 100, currency: 'ils' },
      ...{ terminalNumber: '1234567', installments: 3, last4: '1111' },
    },
  ]);
  expect(told).toMatchObject([
    {
      ...{ event: 'payment.charge.completed', operation_uuid: 'operation', session_uuid: 'session', client_state: 'state' },
      ...{ status: 'declined', retryable: false, amount: 100, currency: 'ils', provider: 'fake', terminal_number: '1234567' },
    },
  ]);
});

test('The digits are wiped once the provider has answered, also where it fails', async () => {
  for (const isBroken of [false, true]) {
    const secrets = consumed();
    const { charge, told } = desk({
      admit: async () => secrets,
      charge: async () => {
        if (isBroken) throw new Error(`cannot charge ${Buffer.from(secrets.card)}`);
        return { status: 'declined', reason: 'card_declined' };
      },
    });
    await charge();
    await settle();
    expect([...secrets.card, ...secrets.cvv].every((byte) => byte === 0)).toBe(true);
    expect(told).toMatchObject([
      isBroken ? { status: 'indeterminate', failure_reason: 'internal_error' } : { status: 'declined' },
    ]);
  }
});

test('Nothing leaves once the node that was asked for the charge has given it up', async () => {
  const { clock, charge, orders, told } = desk({ asksMs: 1_000 });
  expect(await charge(clock.now() + 1_000)).toBe(503);
  await settle();
  expect([orders, told]).toEqual([[], []]);
  expect(await charge(clock.now() + 1_001)).toBe(202);
});

test.each<[string, Partial<Desk>, number]>([
  ['payments are off', { isOff: true }, 503],
  ['the terminal is not assigned to the application', { isAssigned: false }, 403],
  ['the provider has no credentials for the terminal', { isServed: false }, 503],
  ['the Session is not connected', { isConnected: false }, 409],
  ['the Session is just moving to another node', { isConnected: false, isHere: false }, 503],
  ['the Session is over', { isConnected: false, isHere: false, isLive: false }, 409],
  ['a reference is not of this Session', { admit: async () => 'unknown' }, 404],
  ['a reference was used', { admit: async () => 'used' }, 409],
  ['a reference has expired', { admit: async () => 'expired' }, 409],
])('Nothing leaves where %s', async (_why, more, status) => {
  const { charge, orders, told } = desk(more);
  expect(await charge()).toBe(status);
  await settle();
  expect([orders, told]).toEqual([[], []]);
});

test('As many charges as may be under way are taken, those that are being stored included; the next one is 503', async () => {
  const answers: (() => void)[] = [];
  const { charge, orders } = desk({
    admit: () => new Promise((resolve) => answers.push(() => resolve(consumed()))),
    charge: () => new Promise(() => {}),
  });
  const first = Array.from({ length: CHARGES_IN_FLIGHT_MAX }, charge);
  await settle();
  expect([answers.length, await charge()]).toEqual([CHARGES_IN_FLIGHT_MAX, 503]);
  for (const answer of answers.splice(1)) answer();
  await settle();
  expect([orders.length, await charge()]).toEqual([CHARGES_IN_FLIGHT_MAX - 1, 503]);
  answers[0]?.();
  expect(await Promise.all(first)).toEqual(first.map(() => 202));
});

test('A charge that is refused gives its place back', async () => {
  const { charge } = desk({ admit: async () => 'used' });
  for (let count = 0; count <= CHARGES_IN_FLIGHT_MAX; count++) expect(await charge()).toBe(409);
});

test('A stop takes no more charges, and waits for one that is being stored until its outcome is told', async () => {
  let store = (_: Consumed) => {};
  let answer = (_: ChargeOutcome) => {};
  const { charge, told, dispatcher } = desk({
    admit: () => new Promise((resolve) => (store = resolve)),
    charge: () => new Promise((resolve) => (answer = resolve)),
  });
  const admitted = charge();
  await settle();
  let isClosed = false;
  const closed = dispatcher.close().then(() => {
    isClosed = true;
  });
  await settle();
  expect([isClosed, await charge()]).toEqual([false, 503]);
  store(consumed());
  expect(await admitted).toBe(202);
  await settle();
  expect([isClosed, told]).toEqual([false, []]);
  answer({ status: 'declined', reason: 'card_declined' });
  await closed;
  expect(told).toMatchObject([{ status: 'declined' }]);
});

test('A start ends the collections and charges that an earlier process left, alone at once, beside others after two minutes', async () => {
  const collection = { ...ROW, operationUuid: 'card-operation', kind: 'card', nodeId: 'gone' } as const;
  for (const shared of [false, true]) {
    const untils: number[] = [];
    const { clock, dispatcher, told } = desk({
      ...{ shared, collections: [collection] },
      left: (until) => {
        untils.push(until);
        return untils.length === 1 ? [ROW] : [];
      },
    });
    const now = clock.now();
    await dispatcher.start();
    expect(told).toMatchObject([
      { event: 'payment.card.collected', operation_uuid: 'card-operation', status: 'failed', reason: 'internal_error' },
      {
        ...{ event: 'payment.charge.completed', operation_uuid: 'left-operation', client_state: 'state' },
        ...{ status: 'indeterminate', retryable: false, failure_reason: 'interrupted' },
      },
    ]);
    expect(untils).toEqual([shared ? now - CHARGE_LEFT_AFTER_MS : Number.MAX_SAFE_INTEGER, now - CHARGE_LEFT_AFTER_MS]);
    await dispatcher.close();
  }
});

test('A charge whose provider is slow is not taken for one that nobody works on', async () => {
  let own: ChargeRow | undefined;
  const { clock, charge, dispatcher, told, orders } = desk({
    charge: () => new Promise(() => {}),
    left: () => (own === undefined ? [] : [own, ROW]),
  });
  await dispatcher.start();
  await charge();
  own = { ...ROW, chargeUuid: orders[0]?.chargeUuid ?? '' };
  await clock.advance(VAULT_SWEEP_MAX_MS);
  expect(told.map(({ charge: uuid }) => uuid)).toEqual(['left']);
});

test('References are destroyed when their time is over, and every half a minute it is looked after them', async () => {
  const expires: (number | undefined | Error)[] = [undefined, 5_000, 1, new Error('a bug'), undefined];
  const { clock, dispatcher, swept } = desk({
    expires: async (now) => {
      const next = expires.shift();
      if (next instanceof Error) throw next;
      return next === undefined ? undefined : now + next;
    },
  });
  const from = clock.now();
  await dispatcher.start();
  await clock.advance(100_000);
  // The first sweep waits half a minute, the next two until something expires, and not less than 100 ms.
  expect(swept.map((at) => at - from)).toEqual([0, 30_000, 35_000, 35_100, 65_100, 95_100]);
  await dispatcher.close();
  await clock.advance(100_000);
  expect(swept).toHaveLength(6);
});

test('A sweep that is under way at the stop is the last one', async () => {
  let answer = (_: undefined) => {};
  let sweeps = 0;
  const { clock, dispatcher } = desk({
    expires: () => (++sweeps === 1 ? Promise.resolve(undefined) : new Promise((resolve) => (answer = resolve))),
  });
  await dispatcher.start();
  await clock.advance(VAULT_SWEEP_MAX_MS);
  await dispatcher.close();
  answer(undefined);
  await clock.advance(10 * VAULT_SWEEP_MAX_MS);
  expect([sweeps, clock.armed]).toEqual([2, 0]);
});
