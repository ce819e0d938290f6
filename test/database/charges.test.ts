import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { systemClock } from '../../src/clock.ts';
import type { ChargeRow } from '../../src/database/call/payments.ts';
import { openStore, type Store } from '../../src/database/store.ts';
import { newAppUuid, newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { eventOf } from '../webhook/emit.ts';
import { untilWaiting } from './locks.ts';
import { masterKey, openSecondStore, openTestStore, type TestStore } from './open.ts';
import { ended, sessionRow } from './rows.ts';

const wall = systemClock();
let skew = 0;
let first: TestStore;
let sql: postgres.Sql;
beforeAll(async () => {
  first = await openTestStore({ ...wall, now: () => wall.now() + skew });
  sql = postgres({ path: `${first.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 2 });
});
afterAll(async () => {
  await sql?.end();
  await first?.close();
});

/** A charge with references of its own, which are stored. */
async function staged({ journal, payments }: Store) {
  const [appUuid, sessionUuid, chargeUuid] = [newAppUuid(), newUuid(), newUuid()];
  const references = { card: `card_${newUuid()}`, cvv: `cvv_${newUuid()}` };
  const expiresAt = Date.now() + 60_000;
  const rows = Object.values(references).map((reference) => {
    const owner = { appUuid, sessionUuid, reference };
    return { staged: { ...owner, sealed: payments.vault.seal([1, 2, 3], owner), brand: '', last4: '', expiresAt } };
  });
  await journal.commit({ events: [], payments: rows });
  const charge: ChargeRow = {
    ...{ chargeUuid, operationUuid: newUuid(), appUuid, sessionUuid, amount: 100, currency: 'ils', provider: 'sandbox' },
    ...{ terminalNumber: '1234567', clientState: '', traceparent: '', createdAt: Date.now() },
  };
  return { charge, references, again: () => ({ ...charge, chargeUuid: newUuid(), createdAt: Date.now() }) };
}

/** Admits a charge with references of its own. */
async function admitted(store: Store): Promise<string> {
  const { charge, references } = await staged(store);
  expect(await store.payments.admit(charge, references, undefined)).toMatchObject({ last4: '' });
  return charge.chargeUuid;
}

const left = async ({ payments }: Store): Promise<readonly string[]> =>
  (await payments.attempting(Number.MAX_SAFE_INTEGER)).map(({ chargeUuid }) => chargeUuid);

test('A charge of a node that lives is ended by that node alone, however long the database was away; one of a dead node by any', async () => {
  const nodeId = newUuid();
  const [one, two] = [await openSecondStore(first, undefined, nodeId), await openSecondStore(first)];
  const charge = await admitted(one);
  expect([await left(one), await left(two)]).toEqual([[charge], []]);
  expect(await two.nodes.bury(nodeId, 0)).toBe(true);
  expect(await left(two)).toEqual([charge]);
  await one.close();
  await two.close();
});

test('A process that has an external database for itself ends every charge that was left, at its start', async () => {
  const before = await openSecondStore(first);
  const charge = await admitted(before);
  await before.close();
  const settings = { dataDir: first.dataDir, databaseUrl: first.url, databaseDriver: 'postgres', masterKey } as const;
  const alone = await openStore(settings, silentLog, systemClock(), newUuid(), 'one');
  expect(alone.payments.shared).toBe(false);
  expect(await left(alone)).toContain(charge);
  await alone.close();
});

test('References that a charge took are known as used for a day after they would have expired, and then forgotten.', async () => {
  const { store } = first;
  const { charge, references, again } = await staged(store);
  expect(await store.payments.admit(charge, references, undefined)).toMatchObject({ last4: '' });
  for (const [hours, tells] of [
    [0, 'used'],
    [23, 'used'],
    [25, 'unknown'],
  ] as const) {
    skew = hours * 3_600_000;
    await store.forget();
    skew = 0;
    expect(await store.payments.admit(again(), references, undefined)).toBe(tells);
  }
});

test('References that a node of an older release took are used, not expired.', async () => {
  const { store } = first;
  const { charge, references, again } = await staged(store);
  await sql.unsafe('UPDATE payment_references SET sealed = NULL WHERE reference = $1', [references.card]);
  expect(await store.payments.admit(again(), references, undefined)).toBe('used');
  const { appUuid, sessionUuid, createdAt } = charge;
  expect(await store.payments.cardBrand(appUuid, sessionUuid, references.card, createdAt)).toBeUndefined();
});

test('What a charge has taken is destroyed, and of two charges at once that take it one is made', async () => {
  const { store } = first;
  const { charge, references, again } = await staged(store);
  const both = Object.values(references);
  const [isLocked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const over = sql.begin(async (tx) => {
    await tx`SELECT FROM payment_references WHERE reference IN ${tx(both)} FOR UPDATE`;
    isLocked.resolve();
    await release.promise;
  });
  await isLocked.promise;
  const admissions = [charge, again()].map((each) => store.payments.admit(each, references, undefined));
  await untilWaiting(sql, 2);
  release.resolve();
  await over;
  const outcomes = await Promise.all(admissions);
  expect(outcomes.filter((outcome) => outcome === 'used')).toHaveLength(1);
  expect(outcomes.filter((outcome) => typeof outcome === 'object')).toHaveLength(1);
  const rows = await sql`SELECT sealed FROM payment_references WHERE reference IN ${sql(both)}`;
  expect([...rows]).toEqual([{ sealed: null }, { sealed: null }]);
});

test('The brand of a card is told to its own Session, while it can be charged; a CVV has none', async () => {
  const { store } = first;
  const { charge, references } = await staged(store);
  const brand = (reference: string, now = Date.now(), of: Pick<ChargeRow, 'appUuid' | 'sessionUuid'> = charge) =>
    store.payments.cardBrand(of.appUuid, of.sessionUuid, reference, now);
  expect(await brand(references.card)).toBe('');
  expect(await brand(references.cvv)).toBeUndefined();
  expect(await brand(references.card, Date.now() + 60_001)).toBeUndefined();
  for (const other of [{ appUuid: newAppUuid() }, { sessionUuid: newUuid() }]) {
    expect(await brand(references.card, Date.now(), { ...charge, ...other })).toBeUndefined();
    expect(await store.payments.admit({ ...charge, ...other }, references, undefined)).toBe('unknown');
  }
  await store.payments.admit(charge, references, undefined);
  expect(await brand(references.card)).toBeUndefined();
  const rows = await first.store.payments.attempting(charge.createdAt);
  expect(rows.map(({ chargeUuid }) => chargeUuid)).toContain(charge.chargeUuid);
  expect((await first.store.payments.attempting(charge.createdAt - 1)).map(({ chargeUuid }) => chargeUuid)).not.toContain(
    charge.chargeUuid,
  );
});

test('A call is not erased before the outcome of its charge, whose event would be left', async () => {
  const { store } = first;
  const { charge, references } = await staged(store);
  const { chargeUuid, appUuid, sessionUuid } = charge;
  await store.journal.commit({ session: ended(sessionRow({ appUuid, sessionUuid })), events: [] });
  await store.payments.admit(charge, references, undefined);
  expect(await store.calls.erase(sessionUuid)).toBe('pending');
  const told = eventOf(appUuid, sessionUuid, 1, 'payment.charge.completed');
  expect(await store.payments.complete(chargeUuid, 'succeeded', told, 1)).toBe(true);
  expect(await store.payments.complete(chargeUuid, 'failed', eventOf(appUuid, sessionUuid, 2), 2)).toBe(false);
  // Its event is to be delivered by now.
  expect(await store.calls.erase(sessionUuid)).toBe('pending');
  const logged = await store.events.list({ appUuid, sessionUuid, status: undefined, after: 0, limit: 10 });
  expect(logged.map(({ name }) => name)).toEqual(['payment.charge.completed']);
  await sql`UPDATE events SET status = 'delivered' WHERE session_uuid = ${sessionUuid}`;
  expect(await store.calls.erase(sessionUuid)).toBe('erased');
});
