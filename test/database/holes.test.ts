/** What is answered over a connection on which a statement failed after its first rows: its own rows, and no others. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import type { Database } from '../../src/database/driver/database.ts';
import { openDatabase } from '../../src/database/driver/open.ts';
import { DATABASE_CONNECTIONS_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { openTestStore, type TestStore } from './open.ts';

/** Four rows, and then an error. */
const FAILS = 'SELECT 10 / (5 - x) AS v FROM generate_series(1, 9) AS x';
const NUMBERS = 'SELECT x::int AS v FROM generate_series(1, 3) AS x';
const EXPECTED = [{ v: 1 }, { v: 2 }, { v: 3 }];

let store: TestStore;
let database: Database;
beforeAll(async () => {
  store = await openTestStore();
  database = await openDatabase({ dataDir: store.dataDir, databaseUrl: store.url, databaseDriver: 'postgres' }, silentLog);
});
afterAll(async () => {
  await database.close();
  await store.close();
});

/** So many at once that each connection has its turn, and more that wait behind it. */
const onEach = <T>(work: () => Promise<T>) =>
  Promise.allSettled(Array.from({ length: 2 * DATABASE_CONNECTIONS_MAX }, () => work()));

const WAYS: readonly (readonly [string, (text: string) => Promise<ArrayLike<unknown>>])[] = [
  ['statements', (text) => database.query(text)],
  [
    'what Drizzle builds',
    async (text) => {
      const rows = await database.run((on) => on.execute(sql.raw(text)));
      return Array.isArray(rows) ? rows : [];
    },
  ],
];

test.each(WAYS)('%s', async (_, ask) => {
  const failed = await onEach(() => ask(FAILS));
  expect(failed.every(({ status }) => status === 'rejected')).toBe(true);
  for (const [text, rows] of [
    [NUMBERS, EXPECTED],
    ['SELECT 1 WHERE false', []],
  ] as const)
    for (const answer of await onEach(() => ask(text))) {
      if (answer.status === 'rejected') throw answer.reason;
      expect(Array.from(answer.value)).toEqual([...rows]);
    }
});

test('A row that is asked for after another one’s statement has failed is found.', async () => {
  await onEach(() => database.query(FAILS));
  for (const answer of await onEach(() => database.query('SELECT 7 AS v')))
    expect(answer).toMatchObject({ status: 'fulfilled', value: [{ v: 7 }] });
});
