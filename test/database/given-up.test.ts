/** What becomes of work whose caller was told that the database did not answer in time. */
import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/database/driver/open.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { QUERY_MAX_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { openTestStore } from './open.ts';

test('Work whose caller was told that it failed writes nothing later, whether it was slow or waited for a connection', async () => {
  const { url, dataDir, close } = await openTestStore();
  const database = await openDatabase({ dataDir, databaseUrl: url, databaseDriver: 'postgres' }, silentLog);
  await database.query('CREATE TABLE written (by text)');
  // Together they take a little longer than a caller waits. Each alone is no slow statement.
  const halfSec = (QUERY_MAX_MS + 300) / 2_000;
  const began = performance.now();
  const slow = Array.from({ length: 3 }, () =>
    database.transaction(async (within) => {
      await within.query('SELECT pg_sleep($1::float8)', [halfSec]);
      await within.query('SELECT pg_sleep($1::float8)', [halfSec]);
      await within.query("INSERT INTO written VALUES ('a slow one')");
    }),
  );
  const slowBuilt = database.run((on) =>
    on.transaction(async (within) => {
      await within.execute(sql`INSERT INTO written VALUES ('a slow one that Drizzle built')`);
      await within.execute(sql`SELECT pg_sleep(${halfSec}::float8)`);
      await within.execute(sql`SELECT pg_sleep(${halfSec}::float8)`);
    }),
  );
  const waiting = Array.from({ length: 6 }, () =>
    database.transaction(async (within) => void (await within.query("INSERT INTO written VALUES ('one that waited')"))),
  );
  const built = Array.from({ length: 6 }, (_, at) =>
    database.run((on) => {
      const statement = sql`INSERT INTO written VALUES ('one that Drizzle built')`;
      return at % 2 === 0 ? on.execute(statement) : on.transaction((within) => within.execute(statement));
    }),
  );
  const outcomes = await Promise.allSettled([...slow, slowBuilt, ...waiting, ...built]);
  expect(performance.now() - began).toBeGreaterThan(QUERY_MAX_MS - 100);
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toEqual([]);
  for (const outcome of outcomes) expect(outcome.status === 'rejected' && outcome.reason instanceof StoreUnavailable).toBe(true);
  // The statements before this one are over when it is, as they have their connections in turn.
  await database.transaction(async (within) => void (await within.query('SELECT pg_sleep(0.1)')));
  expect(await database.query('SELECT by FROM written')).toEqual([]);
  await database.close();
  await close();
}, 30_000);
