/** A failover, as clients see it: their connections lead to a server that only reads, new ones to one that writes. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import type { Store } from '../../src/database/store.ts';
import { eventually } from '../cluster/harness.ts';
import { openSecondStore, openTestStore, type TestStore } from './open.ts';

let first: TestStore;
let node: Store;
let admin: postgres.Sql;
beforeAll(async () => {
  first = await openTestStore();
  node = await openSecondStore(first, undefined, 'node');
  const path = `${first.dataDir}/postgres-socket/.s.PGSQL.5432`;
  admin = postgres({ path, user: 'sidetone', database: 'postgres', max: 1 });
  await admin.unsafe('SET default_transaction_read_only = off');
});
afterAll(async () => {
  await admin.end();
  await node.close();
  await first.close();
});

const write = () =>
  node.nodes.fact(`fact ${performance.now()}`, 'x').then(
    () => 'stored',
    (error: unknown) => String(error),
  );

test('a node is not ready while its database takes no writes, and leaves a server that has become a standby', async () => {
  expect([await write(), await node.ready()]).toEqual(['stored', true]);
  // The settings of the server hold for connections that are up, those of the role for connections to come.
  await admin.unsafe('ALTER SYSTEM SET default_transaction_read_only = on');
  await admin.unsafe('SELECT pg_reload_conf()');
  await eventually(async () => !(await node.ready()), 'the node to be not ready');
  expect(await write()).toContain('the database is away (it takes no writes, as a standby)');

  await admin.unsafe('ALTER ROLE sidetone SET default_transaction_read_only = off');
  await eventually(async () => (await write()) === 'stored', 'the node to find the server that takes writes', 10_000);
  // The last of its connections is closed a moment later.
  const many = async () => (await Promise.all(Array.from({ length: 30 }, write))).every((each) => each === 'stored');
  await eventually(many, 'all connections to lead there', 10_000);
  expect(await node.ready()).toBe(true);
}, 30_000);
