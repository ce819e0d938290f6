/** The interfaces of PostgreSQL: the drivers give a `Connection`, and the platform works on a `Database`. */
import { DrizzleQueryError } from 'drizzle-orm/errors';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { codeOf } from '../../error-facts.ts';
import { StoreUnavailable } from '../journal/journal.ts';

export type Row = Readonly<Record<string, unknown>>;
export type Parameter = string | number | boolean | Uint8Array | null;

export interface Queryable {
  /** Runs one statement, prepared by its text. Arrays are passed as JSON text. Rejects with what the driver threw. */
  query<R extends Row = Row>(text: string, parameters?: readonly Parameter[]): Promise<readonly R[]>;
}

/** A connection pool as a driver gives it. */
export interface Connection extends Queryable {
  readonly drizzle: PgDatabase<PgQueryResultHKT>;
  /** `takesLong`: it may take longer than QUERY_MAX_MS, as a migration. */
  transaction<T>(work: (within: Queryable) => Promise<T>, takesLong?: boolean): Promise<T>;
  /**
   * Calls `notified` at each NOTIFY, and whenever the listening connection was made anew (something may have been
   * missed).
   */
  listen(channel: string, notified: () => void): Promise<void>;
  /**
   * Takes an advisory lock for as long as this process lives, on a connection of its own. False: another process holds
   * it. A connection that is lost is made again, and the lock taken again as soon as it is free.
   */
  lock(key: number, shared: boolean): Promise<boolean>;
  /**
   * Resolves when no statement can arrive any more that was given up; `query` and `transaction` wait for it as well.
   * Absent where nothing is known of such statements.
   */
  endGivenUp?(): Promise<void>;
  /**
   * Gives up the connections to servers that take no writes: the next ones go where the address leads then. Absent
   * where the driver's service sees to that.
   */
  leave?(): Promise<void>;
  close(): Promise<void>;
}

export interface Database extends Connection {
  /** How long the database has been away, in milliseconds. 0 while it answers. Absent where nobody looks. */
  awayMs?(): number;
  /** Whether other processes may write to the same database. */
  readonly shared: boolean;
  /** Runs what was built with Drizzle, bounded and with errors as `query` has them. */
  run<T>(work: (drizzle: PgDatabase<PgQueryResultHKT>) => PromiseLike<T>): Promise<T>;
}

/** The database answers, and cannot be worked with as it is. The message is the line that stops the start. */
export class UnusableDatabase extends Error {}

/**
 * SQLSTATE classes that say "not now": connection, resources, operator intervention, rolled back, and a read-only
 * standby.
 */
const TRANSIENT = /^(08|53|57|40|25006|58)/;
/** Five signs, as no error of the system has them: EPIPE and EPERM are no answer of the server. */
const SQL_STATE = /^(?!E[A-Z]{4}$)[0-9A-Z]{5}$/;
/** The SQLSTATE of an error the server reported, wherever a driver or Drizzle put it. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = codeOf(error) ?? '';
  return SQL_STATE.test(code) ? code : sqlState(error.cause);
}

/** What the server lacks, by the SQLSTATE of an error that does not end the connection. */
const SHORTAGES: Readonly<Record<string, string>> = {
  '25006': 'it takes no writes, as a standby',
  '53100': 'its disk is full: 53100',
  '53200': 'it is out of memory: 53200',
};

/** The server takes no writes: it is a standby, or was made read-only. */
export const isReadOnly = (error: unknown): boolean => sqlState(error) === '25006';

/**
 * Returns what the server said when it ended the connection, or did not let it in: a password that was changed, a
 * database that is away for a restore. Undefined for any other error. It says so by the severity (PostgreSQL §54.8),
 * whatever the SQLSTATE; nothing is wrong with the statement then. PgBouncer sends the severity only where PostgreSQL
 * has its translation.
 */
function fatalMessage(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const severity: unknown = Reflect.get(error, 'severity') ?? Reflect.get(error, 'severity_local');
  if (severity === 'FATAL' || severity === 'PANIC') return error.message;
  return fatalMessage(error.cause);
}

/** The error as the store's callers know it. */
export function asUnavailable(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return error;
  const state = sqlState(error);
  const fatal = fatalMessage(error);
  if (state !== undefined && fatal === undefined && !TRANSIENT.test(state)) return withoutValues(error);
  // The server never answered where there is no SQLSTATE: refused, reset, no such socket, not resolved, closed.
  const away = state !== undefined || looksLikeConnection(error);
  if (!away) return withoutValues(error);
  const code = state ?? codeOf(error) ?? '';
  const why = SHORTAGES[code] ?? (fatal === undefined ? code : `${code}: ${fatal}`);
  return new StoreUnavailable(`the database is away${why === '' ? '' : ` (${why})`}`, { cause: error });
}

/**
 * An error of Drizzle without the values of its query, which its message has and which a log must not: numbers, texts
 * of messages, hashes of keys. The statement and what the server says of it stay.
 */
function withoutValues(error: unknown): unknown {
  if (!(error instanceof DrizzleQueryError)) return error;
  return new Error(`a query failed (${error.cause?.message ?? 'for no reason told'}): ${error.query}`, { cause: error.cause });
}

const CONNECTION_CODES = /^(E[A-Z]{3,}|EAI_[A-Z]+|ERR_SOCKET.*|CONNECT(ION)?_.*|FAILED_TO_OPEN_SOCKET)$/;
/** The certificate of the server is not accepted: it has expired, has another name, or nobody known has issued it. */
const CERTIFICATE_CODES = /^(ERR_(TLS|SSL)_.*|(.*_)?CERT(_.*)?|UNABLE_TO_.*|HOSTNAME_MISMATCH)$/;

function looksLikeConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  const code = codeOf(error) ?? '';
  if (CONNECTION_CODES.test(code) || CERTIFICATE_CODES.test(code)) return true;
  if (/connection|socket|websocket|terminat/i.test(error.message)) return true;
  return error.cause instanceof Error && looksLikeConnection(error.cause);
}
