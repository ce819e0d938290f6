/** What a PostgreSQL of the operator's own is asked at the start: whether the platform can work on it. */
import { DATABASE_CONNECTIONS_MAX, STATEMENT_MAX_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { databaseServers } from '../../settings/database-url.ts';
import { type Connection, UnusableDatabase } from './database.ts';

/** Beside the pool, one connection listens and one holds the lock. */
const CONNECTIONS = DATABASE_CONNECTIONS_MAX + 2;

/** -1 stands for no limit, and an owner of the server passes those of roles and databases. */
const FACTS = `SELECT (SELECT setting FROM pg_settings WHERE name = 'statement_timeout') AS statement_timeout,
  current_setting('server_encoding') AS encoding,
  least(current_setting('max_connections')::int - CASE WHEN rolsuper THEN 0
      ELSE current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true), '0')::int END,
    CASE WHEN rolsuper OR rolconnlimit < 0 THEN NULL ELSE rolconnlimit END,
    CASE WHEN rolsuper OR datconnlimit < 0 THEN NULL ELSE datconnlimit END) AS connections
  FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()`;

/**
 * Throws where a pooler stands before the server that gives each transaction another connection of its own: PgBouncer
 * with `pool_mode = transaction`. The lock of a process on its database would be lost there, so that two processes work
 * on one, and with it LISTEN and the limits of a statement. Such a pooler does not pass the settings on with which we
 * connect, by which it is known. What may do harm later is a warning in the log.
 */
export async function examineServer(connection: Connection, log: Log): Promise<void> {
  const [row] = await connection.query(FACTS);
  if (row?.statement_timeout !== String(STATEMENT_MAX_MS))
    throw new UnusableDatabase(
      'DATABASE_URL: a pooler stands before the database, as PgBouncer, and keeps the settings of a connection back: name PostgreSQL itself',
    );
  if (row.encoding !== 'UTF8')
    log.warn(
      { encoding: String(row.encoding), expected: 'UTF8' },
      "the database cannot hold every letter, and what has one that it cannot fails: make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and bring the data there by pg_dump",
    );
  if (Number(row.connections) < CONNECTIONS)
    log.warn(
      { connections: Number(row.connections), expected: CONNECTIONS },
      'the database gives this role fewer connections than a process opens under load, and is then taken for away: raise max_connections, or the CONNECTION LIMIT of the role or the database',
    );
}

/** The values of libpq that the driver takes as they are meant, or more strictly, and its own word for `disable`. */
const SSL_MODES = ['disable', 'false', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];
const UNKNOWN_SSL_MODE =
  'its sslmode is none of disable, prefer, require and verify-full, and is taken for verify-full, as in ?sslmode=verify-full';

const serversOf = (url: string): readonly URL[] => databaseServers(url).flatMap((each) => URL.parse(each) ?? []);

const sslModeOf = (url: string): string | undefined => serversOf(url)[0]?.searchParams.get('sslmode') || undefined;

function hasUnknownSslMode(url: string): boolean {
  const mode = sslModeOf(url);
  return mode !== undefined && !SSL_MODES.includes(mode);
}

/** The servers that cannot be reached for `why`, by host and port only, since the rest of the URL has a password. */
export function outOfReach(url: string | undefined, why: string): string {
  if (url === undefined)
    return `the embedded PostgreSQL does not answer (${why}): is this machine too busy, or its disk too slow?`;
  const hosts = serversOf(url).map(({ host }) => host);
  const at = hosts.length === 0 ? 'the database' : `the database at ${hosts.join(' or ')}`;
  return `DATABASE_URL: ${at} cannot be reached (${why}): ${remedyOf(url, why)}`;
}

function remedyOf(url: string, why: string): string {
  if (hasUnknownSslMode(url)) return UNKNOWN_SSL_MODE;
  if (/CERT|VERIFY|SIGNED/.test(why))
    return 'its certificate is not trusted: NODE_EXTRA_CA_CERTS names the file of a private authority, and the host of the URL has to be in the certificate';
  if (serversOf(url).length > 1)
    return 'is PostgreSQL up there, one of them as the primary, and may this machine connect to it? That is the answer of the last one';
  const mode = sslModeOf(url);
  const isEncrypted = mode !== undefined && !['disable', 'false', 'prefer'].includes(mode);
  // A server without TLS answers an SSLRequest with no, and the driver begins TLS all the same.
  const tls = isEncrypted && why === 'ECONNRESET' ? `, with TLS as sslmode=${mode} asks for` : '';
  return `is PostgreSQL up there${tls}, and may this machine connect to it?`;
}
