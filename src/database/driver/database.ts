/**
 * One face for every way to reach PostgreSQL: the embedded server and `postgres://` through postgres.js, Neon through its WebSocket driver.
 * Rare queries are built with Drizzle; those of every call are prepared statements in the file that owns them.
 */
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import type { Config } from '../../config.ts';
import { QUERY_MAX_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type EmbeddedServer, startEmbedded } from '../embedded/embedded.ts';
import { supervised } from '../embedded/supervise.ts';
import { StoreUnavailable } from '../journal/journal.ts';
import { migrate } from './migrate.ts';
import { openNeon } from './neon.ts';
import { openPostgres } from './postgres.ts';

export type Row = Readonly<Record<string, unknown>>;
export type Parameter = string | number | boolean | Uint8Array | null;

export interface Queryable {
  /** Runs one statement, prepared by its text. Arrays are passed as JSON text. Rejects with what the driver threw. */
  query<R extends Row = Row>(text: string, parameters?: readonly Parameter[]): Promise<readonly R[]>;
}

/** What a driver gives. */
export interface Connection extends Queryable {
  readonly drizzle: PgDatabase<PgQueryResultHKT>;
  transaction<T>(work: (within: Queryable) => Promise<T>): Promise<T>;
  /** Calls `notified` at each NOTIFY, and whenever the listening connection was made anew (something may have been missed). */
  listen(channel: string, notified: () => void): Promise<void>;
  close(): Promise<void>;
}

export interface Database extends Connection {
  /** Whether other processes may write to the same database. */
  readonly shared: boolean;
  /** Runs what was built with Drizzle, bounded and with errors as `query` has them. */
  run<T>(work: (drizzle: PgDatabase<PgQueryResultHKT>) => PromiseLike<T>): Promise<T>;
}

export type DatabaseSettings = Pick<Config, 'dataDir' | 'databaseUrl' | 'databaseDriver'>;

/** Opens the configured database, starting the embedded one, and applies the migrations. Throws with one line when it cannot. */
export async function openDatabase(settings: DatabaseSettings, log: Log): Promise<Database> {
  let embedded: EmbeddedServer | undefined;
  let connection: Connection;
  if (settings.databaseUrl === undefined) {
    embedded = supervised(settings.dataDir, await startEmbedded(settings.dataDir, log), log);
    const { socketDir, port } = embedded;
    connection = openPostgres({ socketDir, port });
  } else {
    connection =
      settings.databaseDriver === 'neon' ? openNeon(settings.databaseUrl) : openPostgres({ url: settings.databaseUrl });
  }
  const close = async () => {
    await connection.close();
    await embedded?.stop();
  };
  try {
    await migrate(connection);
  } catch (error) {
    await close();
    const away = asUnavailable(error) instanceof StoreUnavailable;
    throw away ? new Error(`DATABASE_URL: the database cannot be reached (${reason(error)})`, { cause: error }) : error;
  }
  return {
    drizzle: connection.drizzle,
    shared: embedded === undefined,
    run: async (work) => bounded(Promise.resolve(work(connection.drizzle))),
    query: (text, parameters) => bounded(connection.query(text, parameters)),
    transaction: (work) => bounded(connection.transaction(work)),
    listen: connection.listen,
    close,
  };
}

/**
 * A query that fails because the database is away, or does not answer in time, is `StoreUnavailable`; any other error (a constraint, a bug) stays
 * what it is. Every wait is bounded: drivers queue while they reconnect, callers do not.
 */
async function bounded<T>(answer: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreUnavailable('the database did not answer in time')), QUERY_MAX_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } catch (error) {
    throw asUnavailable(error);
  } finally {
    clearTimeout(timer);
  }
}

const reason = (error: unknown): string =>
  error instanceof Error
    ? 'code' in error && typeof error.code === 'string'
      ? error.code
      : error.message || error.name
    : 'closed';

/** SQLSTATE classes that say "not now": connection, resources, operator intervention, rolled back, and a read-only standby. */
const TRANSIENT = /^(08|53|57|40|25006|58)/;
/** The SQLSTATE of an error the server reported, wherever a driver or Drizzle put it. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return /^[0-9A-Z]{5}$/.test(code) && code !== 'EPIPE' ? code : sqlState(error.cause);
}

/** The error as the store's callers know it. */
export function asUnavailable(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return error;
  const state = sqlState(error);
  if (state !== undefined && !TRANSIENT.test(state)) return error;
  // Without a SQLSTATE the server never answered: refused, reset, no such socket, not resolved, closed.
  const away = state !== undefined || looksLikeConnection(error);
  return away ? new StoreUnavailable('the database is away', { cause: error }) : error;
}

const CONNECTION_CODES = /^(E[A-Z]{3,}|ERR_SOCKET.*|CONNECT(ION)?_.*|FAILED_TO_OPEN_SOCKET)$/;

function looksLikeConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (CONNECTION_CODES.test(code)) return true;
  if (/connection|socket|websocket|terminat/i.test(error.message)) return true;
  return error.cause instanceof Error && looksLikeConnection(error.cause);
}
