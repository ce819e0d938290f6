/** What becomes of statements that are not answered, and reach the database long after, as TCP may deliver them. */
import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/database/driver/open.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { DATABASE_CONNECTIONS_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { FaultProxy } from '../cluster/proxy.ts';
import { openTestStore } from './open.ts';

test('Connections that are dead without a word are made anew, and what they had changes nothing when it arrives after all', async () => {
  const { url, dataDir, close } = await openTestStore();
  const proxy = await FaultProxy.start({ path: `${dataDir}/postgres-socket/.s.PGSQL.5432` });
  const databaseUrl = `postgres://sidetone@127.0.0.1:${proxy.port}/postgres`;
  const database = await openDatabase({ dataDir, databaseUrl, databaseDriver: 'postgres' }, silentLog);
  const direct = await openDatabase({ dataDir, databaseUrl: url, databaseDriver: 'postgres' }, silentLog);
  await database.query('CREATE TABLE calls (call text PRIMARY KEY, state text)');
  const WRITE = 'INSERT INTO calls VALUES ($1, $2) ON CONFLICT (call) DO UPDATE SET state = excluded.state';
  const built = (call: string, state: string) =>
    sql`INSERT INTO calls VALUES (${call}, ${state}) ON CONFLICT (call) DO UPDATE SET state = excluded.state`;
  const writes = {
    'a statement': (state: string) => database.query(WRITE, ['a statement', state]),
    'a transaction': (state: string) =>
      database.transaction(async (within) => void (await within.query(WRITE, ['a transaction', state]))),
    'one of Drizzle': (state: string) => database.run((on) => on.execute(built('one of Drizzle', state))),
    'a transaction of Drizzle': (state: string) =>
      database.run((on) => on.transaction((within) => within.execute(built('a transaction of Drizzle', state)))),
  };
  const all = async (state: string) => await Promise.all(Object.values(writes).map((write) => write(state)));
  // Every connection is up, and has prepared what it will be sent.
  await Promise.all(Array.from({ length: 2 * DATABASE_CONNECTIONS_MAX }, () => all('new')));

  const frozen = Promise.withResolvers<void>();
  const committing = database.transaction(async (within) => {
    await within.query(WRITE, ['a COMMIT', 'ringing']);
    proxy.freeze();
    frozen.resolve();
  });
  await frozen.promise;
  const given = await Promise.allSettled([committing, ...Object.values(writes).map((write) => write('ringing'))]);
  for (const outcome of given) expect(outcome.status === 'rejected' && outcome.reason).toBeInstanceOf(StoreUnavailable);

  await all('ringing');
  await database.query(WRITE, ['a COMMIT', 'ringing']);
  await all('answered');
  await database.query(WRITE, ['a COMMIT', 'answered']);
  proxy.thaw();
  // The database has done by then whatever was sent to it.
  await direct.query('SELECT pg_sleep(0.3)');
  expect(await direct.query("SELECT call FROM calls WHERE state <> 'answered'")).toEqual([]);
  expect(await direct.query('SELECT call FROM calls')).toHaveLength(5);
  const OURS = "SELECT pid FROM pg_stat_activity WHERE application_name = current_setting('application_name')";
  // The old connections are gone. Those of both databases have one name.
  expect((await direct.query(OURS)).length).toBeLessThanOrEqual(DATABASE_CONNECTIONS_MAX + 1);
  await database.close();
  await direct.close();
  proxy.stop();
  await close();
}, 60_000);
