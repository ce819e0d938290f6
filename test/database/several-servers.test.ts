/** DATABASE_URL with several servers, of which one is the primary, and another one after a failover. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Database } from '../../src/database/driver/database.ts';
import { openDatabase } from '../../src/database/driver/open.ts';
import { silentLog } from '../../src/log.ts';
import { eventually } from '../cluster/harness.ts';
import { FaultProxy } from '../cluster/proxy.ts';
import { ReplicatedPostgres } from '../support/replicated-postgres.ts';

/** Nobody listens there. */
const GONE = '127.0.0.1:1';

let servers: ReplicatedPostgres;
let proxies: readonly FaultProxy[];
const opened: Database[] = [];
beforeAll(async () => {
  servers = await ReplicatedPostgres.start();
  proxies = await Promise.all([FaultProxy.start(servers.standby), FaultProxy.start(servers.primary)]);
}, 60_000);
afterAll(async () => {
  await Promise.all(opened.map((each) => each.close()));
  for (const proxy of proxies) proxy.stop();
  await servers.stop();
});

async function open(hosts: string): Promise<Database> {
  const databaseUrl = `postgres://sidetone@${hosts}/postgres`;
  const database = await openDatabase({ dataDir: '', databaseUrl, databaseDriver: 'postgres' }, silentLog);
  opened.push(database);
  return database;
}

const write = (database: Database, text: string) => database.query('INSERT INTO written VALUES ($1) RETURNING text', [text]);
const texts = async (database: Database) => (await database.query('SELECT text FROM written')).map(({ text }) => text);

test('A server is reached at its address of IPv6, alone and behind another.', async () => {
  const proxy = await FaultProxy.start(servers.primary, '::1');
  for (const hosts of [`[::1]:${proxy.port}`, `${GONE},[::1]:${proxy.port}`]) {
    const database = await open(hosts);
    expect(await database.query('SELECT pg_is_in_recovery() AS recovers')).toEqual([{ recovers: false }]);
    await database.close();
  }
  proxy.stop();
}, 60_000);

test('The primary is found behind servers that are gone or take no writes, and the new one after a failover.', async () => {
  const [standby, primary] = proxies.map(({ port }) => `127.0.0.1:${port}`);
  await expect(open(`${GONE},${standby}`)).rejects.toThrow(/\(CONNECTION_DESTROYED\): is PostgreSQL up there, one of them as/);
  const database = await open(`${GONE},${standby},${primary}`);
  await database.query('CREATE TABLE written (text text PRIMARY KEY)');
  // Each connection finds the primary: there are more statements at once than connections.
  const before = Array.from({ length: 20 }, (_, at) => `before ${at}`);
  await Promise.all(before.map((text) => write(database, text)));
  await servers.failOver();
  const goesOn = () =>
    write(database, 'after').then(
      () => true,
      () => false,
    );
  await eventually(goesOn, 'a write at the new primary');
  expect(new Set(await texts(database))).toEqual(new Set([...before, 'after']));
  // The one that was lost comes first now.
  expect(new Set(await texts(await open(`${primary},${standby}`)))).toEqual(new Set([...before, 'after']));
}, 60_000);

test('None of them being there is told with all of them, and without the password.', async () => {
  const databaseUrl = 'postgres://us:secret@127.0.0.1:1,localhost:2/postgres';
  const failed = openDatabase({ dataDir: '', databaseUrl, databaseDriver: 'postgres' }, silentLog);
  await expect(failed).rejects.toThrow(
    /^DATABASE_URL: the database at 127\.0\.0\.1:1 or localhost:2 cannot be reached \(ECONNREFUSED\): is PostgreSQL up there, one of them as the primary/,
  );
});
