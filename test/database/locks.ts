import type postgres from 'postgres';

/** Resolves when so many statements of the whole server wait for a lock. */
export async function untilWaiting(sql: postgres.Sql, statements: number): Promise<void> {
  while ((await sql`SELECT 1 FROM pg_locks WHERE NOT granted`).length < statements) await sql`SELECT pg_sleep(0.005)`;
}
