import { afterAll, beforeAll, expect, test } from 'bun:test';
import { systemClock } from '../../src/clock.ts';
import type { ChargeRow } from '../../src/database/call/payments.ts';
import { openStore, type Store } from '../../src/database/store.ts';
import { newAppUuid, newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { masterKey, openSecondStore, openTestStore, type TestStore } from './open.ts';

let first: TestStore;
beforeAll(async () => {
  first = await openTestStore();
});
afterAll(() => first.close());

/** Admits a charge with references of its own. */
async function admitted({ journal, payments }: Store): Promise<string> {
  const [appUuid, sessionUuid, chargeUuid] = [newAppUuid(), newUuid(), newUuid()];
  const references = { card: `card_${newUuid()}`, cvv: `cvv_${newUuid()}` };
  const expiresAt = Date.now() + 60_000;
  const staged = Object.values(references).map((reference) => {
    const owner = { appUuid, sessionUuid, reference };
    return { staged: { ...owner, sealed: payments.vault.seal([1, 2, 3], owner), brand: '', last4: '', expiresAt } };
  });
  await journal.commit({ events: [], payments: staged });
  const charge: ChargeRow = {
    ...{ chargeUuid, operationUuid: newUuid(), appUuid, sessionUuid, amount: 100, currency: 'ils', provider: 'sandbox' },
    ...{ terminalNumber: '1234567', clientState: '', traceparent: '', createdAt: Date.now() },
  };
  expect(await payments.admit(charge, references, undefined)).toMatchObject({ last4: '' });
  return chargeUuid;
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
