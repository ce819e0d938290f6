/** Which of its connections the driver gives a statement to. */
import { expect, test } from 'bun:test';
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
