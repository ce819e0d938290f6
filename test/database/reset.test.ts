/**
 * What resets of the database's connections leave of the pool, which is the driver's own affair
 * (bin/mend-packages.mjs).
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { rmSync } from 'node:fs';
import { openPostgres } from '../../src/database/driver/postgres.ts';
import { startEmbedded } from '../../src/database/embedded/embedded.ts';
import { DATABASE_CONNECTIONS_MAX, QUERY_MAX_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { FaultProxy } from '../cluster/proxy.ts';
import { dataDirectory } from '../support/data-directory.ts';
import { fillDataDir } from '../support/postgres-template.ts';

/** A connection is lost in about one round of ten without what is mended. */
const ROUNDS = 20;
const dataDir = dataDirectory('sidetone-reset-');
beforeAll(() => fillDataDir(dataDir));
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const settled = (query: Promise<unknown>) =>
  query.then(
    () => 'done',
    () => 'failed',
  );

/** A database behind a proxy; `usable` counts the connections of its pool that work, all at once. */
async function open() {
  const server = await startEmbedded(dataDir, silentLog);
  const proxy = await FaultProxy.start({ path: `${server.socketDir}/.s.PGSQL.${server.port}` });
  const database = openPostgres({ url: `postgres://sidetone@127.0.0.1:${proxy.port}/postgres` });
  const usable = async () => {
    const began = performance.now();
    const all = Array.from({ length: DATABASE_CONNECTIONS_MAX }, () => settled(database.query('SELECT pg_sleep(0.5)')));
    const done = (await Promise.all(all)).filter((each) => each === 'done').length;
    // One that waited for the connection of another took twice as long.
    return performance.now() - began < 5_000 ? done : 0;
  };
  const close = async () => {
    await database.close();
    proxy.stop();
    await server.stop();
  };
  return { proxy, database, usable, close };
}

test('Connections that are reset in the middle of queries are all used again, and no query waits for ever', async () => {
  const { proxy, database, usable, close } = await open();
  for (let round = 0; round < ROUNDS; round += 1) {
    const asked = Array.from({ length: 3 * DATABASE_CONNECTIONS_MAX }, async (_, at) => {
      await wait(at % 8);
      return await settled(database.query('SELECT 1'));
    });
    await wait(round % 8);
    proxy.set('reset');
    await wait(4);
    proxy.set('pass');
    expect(await Promise.all(asked)).toHaveLength(asked.length);
  }
  expect(await usable()).toBe(DATABASE_CONNECTIONS_MAX);
  await close();
}, 60_000);

test('Queries that nobody answered in time leave the rows of others alone, and every connection in use', async () => {
  const { proxy, database, usable, close } = await open();
  const ask = async (value: number) => (await database.query('SELECT $1::int AS value', [value]))[0]?.value;
  expect(await usable()).toBe(DATABASE_CONNECTIONS_MAX);
  proxy.set('blackhole');
  // More than are sent at once on all connections: some wait for their turn.
  const lost = Array.from({ length: 300 }, (_, value) => settled(ask(value)));
  await wait(QUERY_MAX_MS + 500);
  proxy.set('pass');
  const values = Array.from({ length: 300 }, (_, value) => 1_000 + value);
  expect(await Promise.all(values.map(ask))).toEqual(values);
  expect(await Promise.all(lost)).toHaveLength(300);
  expect(await usable()).toBe(DATABASE_CONNECTIONS_MAX);
  await close();
}, 60_000);
