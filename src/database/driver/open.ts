/**
 * Opens PostgreSQL: the embedded server and `postgres://` through postgres.js, Neon through its WebSocket driver. Rare
 * queries are built with Drizzle; those of every call are prepared statements in the file that owns them.
 */

import { withTimeLimit } from '../../bounds/time-limit.ts';
import type { Config } from '../../config.ts';
import { codeOf, messageOf } from '../../error-facts.ts';
import { LOCK_LOOK_MS, LOCK_WAIT_MS, QUERY_MAX_MS, START_CONNECT_PAUSE_MS, START_CONNECT_TRIES } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { startError } from '../../start-error.ts';
import { startEmbedded } from '../embedded/embedded.ts';
import { type SupervisedServer, supervised } from '../embedded/supervise.ts';
import { KeyLost, StoreUnavailable } from '../journal/journal.ts';
import { asUnavailable, type Connection, type Database, isReadOnly, sqlState, UnusableDatabase } from './database.ts';
import { examineServer, outOfReach } from './fitness.ts';
import { notInTime, whileAwaited } from './late.ts';
import { migrate } from './migrate.ts';
import { OutageLog } from './outage-log.ts';
import { openPostgres } from './postgres.ts';

export type DatabaseSettings = Pick<Config, 'dataDir' | 'databaseUrl' | 'databaseDriver'>;

/**
 * Opens the configured database, starting the embedded one, and applies the migrations. Throws with one line when it
 * cannot.
 */
export async function openDatabase(settings: DatabaseSettings, log: Log, lock?: DatabaseLock): Promise<Database> {
  let embedded: SupervisedServer | undefined;
  let connection: Connection;
  if (settings.databaseUrl === undefined) {
    embedded = supervised(settings.dataDir, await startEmbedded(settings.dataDir, log), log);
    const { socketDir, port, connectionClosed } = embedded;
    connection = openPostgres({ socketDir, port }, connectionClosed);
  } else {
    connection = await openAt(settings.databaseUrl, settings.databaseDriver);
  }
  const close = async () => {
    await connection.close();
    await embedded?.stop();
  };
  try {
    await untilConnected(() => connection.query('SELECT 1'));
    if (embedded === undefined && settings.databaseDriver === 'postgres')
      await untilConnected(() => examineServer(connection, log));
    if (lock !== undefined) await lockDatabase(connection, lock);
    if (lock === 'one') await untilConnected(() => endOthers(connection));
    await untilConnected(() => migrate(connection, log));
    embedded?.own();
  } catch (error) {
    // The server that was already running is another process's.
    if (error instanceof DatabaseInUse) await connection.close();
    else await close();
    if (error instanceof UnusableDatabase) throw error;
    const away = asUnavailable(error) instanceof StoreUnavailable;
    const refused = settings.databaseUrl === undefined ? undefined : sqlState(error);
    if (refused !== undefined) throw startError('DATABASE_URL', `the database refused: ${messageOf(error)}`, refused);
    throw away ? new Error(outOfReach(settings.databaseUrl, reason(error)), { cause: error }) : error;
  }
  const outage = new OutageLog(log);
  const inTime = bounded(connection, outage);
  return {
    drizzle: connection.drizzle,
    shared: embedded === undefined,
    run: async (work) =>
      inTime(
        (async () => {
          await connection.endGivenUp?.();
          return await work(connection.drizzle);
        })(),
      ),
    query: (text, parameters) => inTime(connection.query(text, parameters)),
    transaction: (work) => inTime(connection.transaction(whileAwaited(work))),
    listen: connection.listen,
    lock: connection.lock,
    awayMs: () => outage.awayMs(performance.now()),
    close() {
      outage.close();
      return close();
    },
  };
}

/** A connection to the server at `url`. Neon's driver is loaded where it is used only. */
async function openAt(url: string, driver: DatabaseSettings['databaseDriver']): Promise<Connection> {
  if (driver === 'postgres') return openPostgres({ url });
  const { openNeon } = await import('./neon.ts');
  return openNeon(url);
}

/** The connections to a server that takes no writes are given up so often at most. */
const STANDBY_LEAVE_SPACING_MS = 2_000;

/**
 * A connection that was not made in time, or that the server or the system closed while it was made; the SQLSTATE of a
 * statement that took longer than it may.
 */
const BUSY = new Set(['CONNECT_TIMEOUT', 'CONNECTION_CLOSED', '57014']);

/**
 * Does work of a start that may be done twice, and does it again when the machine was too busy for it. The program is
 * loaded meanwhile, which on a busy machine alone takes longer than the three seconds that a connection has; and a
 * socket whose backlog is full is closed at once.
 */
async function untilConnected<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries >= START_CONNECT_TRIES || !BUSY.has(reason(error))) throw error;
      await new Promise((resolve) => setTimeout(resolve, START_CONNECT_PAUSE_MS * tries));
    }
  }
}

/** The key of the advisory lock on the whole database: any number, the same on every node. */
const LOCK = 7_414_093_303;

/**
 * How a process takes the database: `one`, alone, until it ends; `node`, beside others of a cluster. After a `kill -9`
 * the server may need a moment to notice that the process is gone.
 */
export type DatabaseLock = 'one' | 'node';

class DatabaseInUse extends Error {}

async function lockDatabase(connection: Connection, lock: DatabaseLock): Promise<void> {
  for (let waited = 0; ; waited += LOCK_LOOK_MS) {
    if (await untilConnected(() => connection.lock(LOCK, lock === 'node'))) return;
    if (waited >= LOCK_WAIT_MS) break;
    await new Promise((resolve) => setTimeout(resolve, LOCK_LOOK_MS));
  }
  throw new DatabaseInUse(
    lock === 'one'
      ? 'another process works on this database: give each its own, or set NATS_URL on all to make them one cluster'
      : 'a process without NATS_URL works on this database: stop it, or set NATS_URL there too',
  );
}

/**
 * Ends what an earlier process of ours left under way: the server goes on with a statement whose sender was killed, and
 * would commit it after we have looked at what is there. One that cannot be ended in time is over by its
 * statement_timeout.
 */
async function endOthers(connection: Connection): Promise<void> {
  for (let waited = 0; waited < LOCK_WAIT_MS; waited += LOCK_LOOK_MS) {
    const left = await connection.query(OTHERS);
    if (left.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, LOCK_LOOK_MS));
  }
}

/** Tells every other process's connections of this role to end, and names those that are still there. */
const OTHERS = `
SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user
  AND application_name LIKE 'sidetone%' AND application_name <> current_setting('application_name')`;

/**
 * A query that fails because the database is away, or does not answer in time, is `StoreUnavailable`; any other error
 * (a constraint, a bug) stays what it is. Every wait is bounded: drivers queue while they reconnect, callers do not.
 *
 * After a failover the connections may lead to the old server, which lives on as a standby, while DATABASE_URL leads to
 * the new one: a server that takes no writes is left.
 */
function bounded({ leave }: Pick<Connection, 'leave'>, outage: OutageLog): <T>(answer: Promise<T>) => Promise<T> {
  let leftAt = -Infinity;
  const leaveStandby = () => {
    if (performance.now() - leftAt < STANDBY_LEAVE_SPACING_MS) return;
    leftAt = performance.now();
    void leave?.();
  };
  return async (answer) => {
    try {
      const result = await withTimeLimit(answer, QUERY_MAX_MS, () => {
        throw notInTime();
      });
      outage.answered(performance.now());
      return result;
    } catch (error) {
      if (isReadOnly(error)) leaveStandby();
      const known = asUnavailable(error);
      if (known instanceof StoreUnavailable && !(known instanceof KeyLost)) outage.failed(known, performance.now());
      throw known;
    }
  };
}

const reason = (error: unknown): string => (error instanceof Error ? (codeOf(error) ?? (error.message || error.name)) : 'closed');
