/** Which of its connections the driver gives a statement to. */
import { expect, test } from 'bun:test';
import postgres from 'postgres';
import { RenewedClient } from '../../src/database/driver/given-up.ts';
import { openPostgres } from '../../src/database/driver/postgres.ts';
import { DATABASE_CONNECTIONS_MAX } from '../../src/limits.ts';
import { openTestStore } from './open.ts';

test('A statement is given to the first connection that is free, so that one server process stays warm', async () => {
  const { url, close } = await openTestStore();
  const database = openPostgres({ url });
  const server = async (seconds = 0) =>
    (await database.query<{ pid: number }>('SELECT pg_backend_pid() AS pid, pg_sleep($1::float8)', [seconds]))[0]?.pid;
  const first = await server();
  for (let time = 0; time < 20; time += 1) expect(await server()).toBe(first);

  const all = await Promise.all(Array.from({ length: DATABASE_CONNECTIONS_MAX }, () => server(0.2)));
  expect(new Set(all).size).toBe(DATABASE_CONNECTIONS_MAX);
  expect(all[0]).toBe(first);

  const slow = server(0.2);
  expect(await server()).toBe(all[1]);
  expect(await slow).toBe(first);
  expect(await server()).toBe(first);

  // A statement that fails leaves its connection free.
  await expect(database.query('SELECT 1 / 0')).rejects.toThrow('division by zero');
  expect(await server()).toBe(first);

  // More at once than there are connections: all are answered.
  expect(await Promise.all(Array.from({ length: 100 }, () => server()))).toHaveLength(100);
  await database.close();
  await close();
}, 30_000);

test('The lock of a process whose connection was lost is taken again, also where another one had it meanwhile', async () => {
  const { url, close } = await openTestStore();
  const [first, second, watcher] = [openPostgres({ url }), openPostgres({ url }), openPostgres({ url })];
  const KEY = 77;
  const holders = async () =>
    (await watcher.query("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = $1::int AND granted", [KEY])).map(
      ({ pid }) => pid,
    );
  /** Resolves with the holder that is not `before`. */
  const nextHolder = async (before: unknown) => {
    for (;;) {
      const [holder] = await holders();
      if (holder !== undefined && holder !== before) return holder;
      await watcher.query('SELECT pg_sleep(0.02)');
    }
  };
  const lose = async (pid: unknown) => void (await watcher.query('SELECT pg_terminate_backend($1::int, 5000)', [Number(pid)]));

  expect([await first.lock(KEY, false), await second.lock(KEY, false)]).toEqual([true, false]);
  const [held] = await holders();
  await lose(held);
  const again = await nextHolder(held);

  await lose(again);
  while (!(await second.lock(KEY, false))) await watcher.query('SELECT pg_sleep(0.02)');
  const other = await nextHolder(again);
  // The first asks for it in vain, and goes on asking.
  await watcher.query('SELECT pg_sleep(1.5)');
  expect(await holders()).toEqual([other]);
  await second.close();
  const last = await nextHolder(other);
  // Shared, it is not given while one process has it for itself.
  const third = openPostgres({ url });
  expect(await third.lock(KEY, true)).toBe(false);
  await first.close();
  while (!(await third.lock(KEY, true))) await watcher.query('SELECT pg_sleep(0.02)');
  expect((await holders()).includes(last)).toBe(false);
  await Promise.all([third.close(), watcher.close()]);
  await close();
}, 30_000);

test('Only what is not answered in its time counts as hanging, with the process of the server that has it', async () => {
  const { dataDir, close } = await openTestStore();
  const hanging: unknown[] = [];
  const open = () =>
    postgres({ path: `${dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 1 });
  const client = new RenewedClient(open, (server) => hanging.push(server));
  const [own] = await client.query('SELECT pg_backend_pid() AS pid');
  await expect(client.query('SELECT 1 / 0')).rejects.toThrow('division by zero');
  await client.begin(async (within) => void (await within.unsafe('SELECT 1')), 5_000);
  await client.query('SELECT pg_sleep(0.2)');
  expect(hanging).toEqual([]);
  await client.query('SELECT pg_sleep(0.2)', [], 50);
  expect(hanging).toEqual([own?.pid]);
  await client.begin(async (within) => void (await within.unsafe('SELECT pg_sleep(0.2)')), 50);
  expect(hanging).toEqual([own?.pid, undefined]);
  await client.begin(async (within) => void (await within.unsafe('SELECT pg_sleep(0.2)')));
  expect(hanging).toHaveLength(2);
  // One that waits behind another in the driver is taken back.
  const before = client.begin(async (within) => void (await within.unsafe('SELECT pg_sleep(0.2)')));
  await expect(client.query('SELECT 1', [], 50)).rejects.toThrow('canceling statement');
  await before;
  expect(hanging).toHaveLength(2);
  await client.end();
  await close();
}, 30_000);
