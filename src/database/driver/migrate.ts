/** The migrations of `drizzle/`, applied at each start, in one transaction, by one node at a time. */
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { installed } from '../../installation.ts';
import { MIGRATION_LOCK_MAX_MS, MIGRATION_TRIES, MIGRATION_TRY_PAUSE_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type Connection, sqlState, UnusableDatabase } from './database.ts';

const FOLDER = installed('drizzle');
/** The key of `pg_advisory_xact_lock`: any number, the same on every node. */
const LOCK = 7_414_093_301;

/**
 * A restored dump keeps the transaction numbers that its outbox had at another server. Those that this server has not
 * reached would be held back until it does, and later events of the same Sessions would overtake them. So they become
 * the number of this transaction: behind the lower ones, in the order of their event numbers, before all that follow.
 */
const RENUMBER_RESTORED = 'UPDATE outbox SET xid = pg_current_xact_id() WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())';

type Migrations = ReturnType<typeof readMigrationFiles>;

/**
 * Applies what is missing; a second node that starts at the same time waits, then finds nothing to do. All or nothing.
 * What a dump of another server left is made readable here.
 *
 * Whatever waits for a table that is in use holds up everybody who comes after it, the calls of the other nodes among
 * them, and a `pg_dump` uses every table until it is done. So the wait for a table is short, and the whole is tried
 * again. Throws UnusableDatabase when a table stays in use.
 */
export async function migrate(connection: Connection, log: Log): Promise<void> {
  const migrations = readMigrationFiles({ migrationsFolder: FOLDER });
  for (let tries = 1; ; tries += 1) {
    try {
      tellUnknown(await applyMissing(connection, migrations), log);
      return;
    } catch (error) {
      if (!IN_USE.has(sqlState(error) ?? '')) throw error;
      if (tries >= MIGRATION_TRIES)
        throw new UnusableDatabase(
          'a table that the migration changes stays in use, as by pg_dump: start again when that is done',
          { cause: error },
        );
      if (tries === 1) log.warn({}, 'a table that the migration changes is in use, as by pg_dump: trying on');
      await new Promise((resolve) => setTimeout(resolve, MIGRATION_TRY_PAUSE_MS));
    }
  }
}

/** The SQLSTATE of a lock that was not given within `lock_timeout`, and of two that wait for each other. */
const IN_USE = new Set(['55P03', '40P01']);

/** The migrations of the database that a newer release has made: how many, and when the last of them. */
interface Unknown {
  readonly count: number;
  readonly lastAt: string;
}

/**
 * Going back one release is meant to work, and so is an old node that starts again during an upgrade. Further back
 * nothing is promised, and which release the database is of is not known here.
 */
function tellUnknown({ count, lastAt }: Unknown, log: Log): void {
  if (count === 0) return;
  log.warn(
    { migrations: count, applied_at: lastAt },
    'a newer release has migrated this database: this one goes on with what it knows, which is good for going one release back, and for the time of an upgrade. Else stop it, and start that one',
  );
}

async function applyMissing(connection: Connection, migrations: Migrations): Promise<Unknown> {
  return await connection.transaction(async (within) => {
    // The other node's migration may take longer than any query of a call may.
    await within.query('SET LOCAL statement_timeout = 0');
    await within.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
    await within.query(`SET LOCAL lock_timeout = ${MIGRATION_LOCK_MAX_MS}`);
    await within.query(
      'CREATE TABLE IF NOT EXISTS sidetone_migrations (hash text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())',
    );
    const rows = await within.query(
      `SELECT hash, to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS applied_at FROM sidetone_migrations`,
    );
    const applied = new Set(rows.map((row) => row.hash));
    for (const migration of migrations) {
      if (applied.has(migration.hash)) continue;
      for (const statement of migration.sql) if (statement.trim() !== '') await within.query(statement);
      await within.query('INSERT INTO sidetone_migrations (hash) VALUES ($1)', [migration.hash]);
    }
    await within.query(RENUMBER_RESTORED);
    const known = new Set<unknown>(migrations.map(({ hash }) => hash));
    const unknown = rows.filter((row) => !known.has(row.hash)).map((row) => String(row.applied_at));
    return { count: unknown.length, lastAt: unknown.toSorted().at(-1) ?? '' };
  }, true);
}
