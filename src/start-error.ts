/** What keeps the platform from starting, said in one line that names the setting. */

/** What is to be done, by the code of the system that says why an address cannot be bound, or by that of PostgreSQL. */
const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process has it, or the setting names it twice: end that one, or set another port',
  EACCES: 'this user may not: ports below 1024 want CAP_NET_BIND_SERVICE, or set a higher one',
  EAGAIN: 'the system permits no more threads: raise TasksMax of the unit, the limit of processes of the container, or ulimit -u',
  ENOSPC: 'the disk is full: make room on it, or set DATA_DIR to another',
  EADDRNOTAVAIL: 'it is no address of this machine: `ip address` lists those',
  '28P01': 'set the password of this role in DATABASE_URL, with what is special in it percent-encoded (# is %23)',
  '3D000': 'make it (CREATE DATABASE), or name another in DATABASE_URL',
  '08P01':
    'a pooler stands before the database, as PgBouncer, which does not take the settings of a connection: name PostgreSQL itself in DATABASE_URL',
  '25006':
    'it is a standby, or default_transaction_read_only is on: name the primary, or see to ALTER ROLE … RESET default_transaction_read_only',
  '3F000': 'its search_path names no schema that there is: ALTER ROLE … SET search_path = public, or make the schema',
  '42704':
    'leave a parameter that PostgreSQL does not know out of DATABASE_URL; where it is idle_session_timeout, PostgreSQL 14 or newer is needed',
  '53100': 'make room on its disk',
  '53300': 'raise max_connections, or the CONNECTION LIMIT of the role or the database: a process has up to 12 connections',
  '42501':
    'give the role the right to make tables there, as the owner of a database has it, and the tables that another role has restored: ALTER TABLE … OWNER TO',
};

/** More about an address that carriers see. */
const MAPPED = '; one that a router or a cloud maps to this machine belongs into SIP_ADVERTISE';

/** What is to be done about a file that cannot be opened. */
const FILE_REMEDIES: Readonly<Record<string, (path: string) => string>> = {
  EACCES: (path) => `let the user of the platform read ${path}, and enter the folders above it`,
  ENOENT: (path) => `there is no ${path}`,
};

/**
 * `SETTING: what (CODE): remedy`. The code is that of the system, or the message of an error without one; the remedy is
 * left out where none is known.
 */
export function startError(setting: string, what: string, error: unknown): Error {
  const reason = !(error instanceof Error) ? String(error) : 'code' in error ? String(error.code) : error.message;
  const mapped = reason === 'EADDRNOTAVAIL' && setting.includes('SIP_LISTEN') ? MAPPED : '';
  const known = fileRemedy(error, reason) ?? REMEDIES[reason];
  const remedy = known === undefined ? undefined : `${known}${mapped}`;
  return new Error(`${setting}: ${what} (${reason})${remedy === undefined ? '' : `: ${remedy}`}`, { cause: error });
}

/** What the system answers where a file or a folder belongs to somebody else. */
const FOREIGN = new Set(['EACCES', 'EPERM']);

/** The remedy for a file that was to be opened, or is another user's. Undefined for any other error. */
function fileRemedy(error: unknown, reason: string): string | undefined {
  if (!(error instanceof Error) || !('path' in error) || typeof error.path !== 'string') return undefined;
  if ('syscall' in error && error.syscall === 'open') return FILE_REMEDIES[reason]?.(error.path);
  return FOREIGN.has(reason)
    ? `${error.path} is another user's, as after a start by root: start as that one, or chown it to this one`
    : undefined;
}
