/** The migrations of `drizzle/`, applied at each start, in one transaction, by one node at a time. */
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { installed } from '../../installation.ts';
import type { Connection } from './database.ts';

const FOLDER = installed('drizzle');
/** The key of `pg_advisory_xact_lock`: any number, the same on every node. */
const LOCK = 7_414_093_301;

/**
 * A restored dump keeps the transaction numbers that its outbox had at another server. Those that this server has not
 * reached would be held back until it does, and later events of the same Sessions would overtake them. So they become
 * the number of this transaction: behind the lower ones, in the order of their event numbers, before all that follow.
 */
const RENUMBER_RESTORED = 'UPDATE outbox SET xid = pg_current_xact_id() WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())';

/**
 * Applies what is missing; a second node that starts at the same time waits, then finds nothing to do. All or nothing.
 * What a dump of another server left is made readable here.
 */
export async function migrate(connection: Connection): Promise<void> {
  const migrations = readMigrationFiles({ migrationsFolder: FOLDER });
  await connection.transaction(async (within) => {
    // The other node's migration may take longer than any query of a call may.
    await within.query('SET LOCAL statement_timeout = 0');
    await within.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
    await within.query(
      'CREATE TABLE IF NOT EXISTS sidetone_migrations (hash text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())',
    );
    const applied = new Set((await within.query('SELECT hash FROM sidetone_migrations')).map((row) => row.hash));
    for (const migration of migrations) {
      if (applied.has(migration.hash)) continue;
      for (const statement of migration.sql) if (statement.trim() !== '') await within.query(statement);
      await within.query('INSERT INTO sidetone_migrations (hash) VALUES ($1)', [migration.hash]);
    }
    await within.query(RENUMBER_RESTORED);
  });
}
