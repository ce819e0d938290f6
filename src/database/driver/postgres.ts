/** PostgreSQL over its own protocol, by postgres.js. */
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { newUuid } from '../../id.ts';
import { CONNECT_MAX_SEC, DATABASE_CONNECTIONS_MAX, GIVEN_UP_MS, STATEMENT_MAX_MS } from '../../limits.ts';
import { databaseServers } from '../../settings/database-url.ts';
import type { Connection, Parameter, Queryable, Row } from './database.ts';
import { GivenUp, RenewedClient } from './given-up.ts';

/** A lock whose connection was lost is taken again after this. */
const RELOCK_MS = 1_000;
/** The most that PostgreSQL takes, 25 days. 0 would stand for no limit, and the driver does not send it. */
const NEVER_MS = 2_147_483_647;
/** So many of the connections take statements in their order, the first that is free; the others are a pool. */
const ORDERED = 6;

export type PostgresTarget = { readonly url: string } | { readonly socketDir: string; readonly port: number };

/** Connects lazily, and again by itself whenever a connection is lost. `closed` is told of each one that was closed. */
export function openPostgres(target: PostgresTarget, closed: () => void = () => {}): Connection {
  const givenUp = new GivenUp();
  const clients: RenewedClient[] = [];
  let renewedAt = -Infinity;
  // One that is dead without a word is seldom alone, and each would be found out by a statement that fails.
  const hangs = (server: number | undefined) => {
    if (server !== undefined) givenUp.add(server);
    if (performance.now() - renewedAt < GIVEN_UP_MS) return;
    renewedAt = performance.now();
    for (const each of clients) each.renew();
  };
  const open = (max: number) => {
    const renewed = new RenewedClient(() => {
      const client = connect(target, max, { onclose: closed });
      // Drizzle sets the client's parsers: from here on JSON parameters are text, as `query` documents.
      drizzle(client);
      return client;
    }, hangs);
    clients.push(renewed);
    return renewed;
  };
  const ordered = Array.from({ length: ORDERED }, () => open(1));
  const pool = open(DATABASE_CONNECTIONS_MAX - ORDERED);
  // The driver listens on a connection of its own, which goes with the client.
  const listener = connect(target, 1);
  const ask = firstFree(ordered, pool);
  const endGivenUp = () => givenUp.ended((text, parameters) => ask(text, parameters, GIVEN_UP_MS));
  let held: ReturnType<typeof lockConnection> | undefined;
  return {
    drizzle: drizzle(pool.forDrizzle()),
    endGivenUp,
    async query<R extends Row>(text: string, parameters?: readonly Parameter[]): Promise<readonly R[]> {
      if (givenUp.isEmpty) return await ask<R>(text, parameters, GIVEN_UP_MS);
      const began = performance.now();
      await endGivenUp();
      return await ask<R>(text, parameters, leftSince(began));
    },
    async transaction<T>(work: (within: Queryable) => Promise<T>, takesLong = false): Promise<T> {
      const began = performance.now();
      await endGivenUp();
      return await pool.begin((within) => work(queryable(within)), takesLong ? undefined : leftSince(began));
    },
    async listen(channel, notified) {
      await listener.listen(channel, notified, notified);
    },
    async lock(key, shared) {
      held ??= lockConnection(target, key, shared);
      return await held.take();
    },
    // The server closes the connections, and the driver makes them anew.
    async leave() {
      await Promise.all(clients.map(({ client }) => client.unsafe(LEAVE).catch(() => {})));
    },
    async close() {
      await held?.end();
      await Promise.all([listener.end({ timeout: 2 }), ...clients.map((each) => each.end())]);
    },
  };
}

/** The milliseconds that are left of GIVEN_UP_MS since `began`. */
const leftSince = (began: number): number => Math.max(0, began + GIVEN_UP_MS - performance.now());

/** The name of this process's connections at the server. Each process has its own. */
const APPLICATION_NAME = `sidetone ${newUuid()}`;

/** Ends the connections of this process at a server that takes no writes, the one that asks last. */
const LEAVE = `SELECT pg_terminate_backend(pid) FROM (
  SELECT pid FROM pg_stat_activity WHERE application_name = current_setting('application_name') AND usename = current_user
    AND current_setting('transaction_read_only') = 'on' ORDER BY pid = pg_backend_pid()) AS ours`;

/** `more`: options of postgres.js beside ours. */
function connect(target: PostgresTarget, max: number, more: object = {}): postgres.Sql {
  const options = {
    max,
    connect_timeout: CONNECT_MAX_SEC,
    // An outage ends when it ends: try again at once for a caller that waits, never back off for minutes.
    backoff: () => 0.1,
    onnotice: () => {},
    fetch_types: false,
    connection: {
      application_name: APPLICATION_NAME,
      statement_timeout: STATEMENT_MAX_MS,
      idle_in_transaction_session_timeout: STATEMENT_MAX_MS,
      // The connections that hold the lock of this process and that listen are idle all their lives.
      idle_session_timeout: NEVER_MS,
      // What a role or a database may be set to, and these statements do not bear: a row that is waited for would be an
      // error, and so would one that changed meanwhile; the driver reads bytes in hexadecimal only.
      lock_timeout: NEVER_MS,
      default_transaction_isolation: 'read committed' as const,
      bytea_output: 'hex',
      // Every statement finds its rows by an index. A plan made while a table was empty would read all of it, and be
      // kept while it grows.
      enable_seqscan: 'off',
      enable_hashjoin: 'off',
      enable_mergejoin: 'off',
    },
    ...more,
  };
  return 'url' in target
    ? postgres(...address(target.url, options))
    : postgres({ ...options, path: socketPath(target.socketDir, target.port), user: 'sidetone', database: 'postgres' });
}

/** A connection that lives as long as the process and holds one advisory lock. */
function lockConnection(target: PostgresTarget, key: number, shared: boolean) {
  const statement = `SELECT pg_try_advisory_lock${shared ? '_shared' : ''}(${key}) AS held`;
  let held = false;
  let ended = false;
  const again = () => {
    if (!ended) setTimeout(() => void take().then((taken) => taken || again(), again), RELOCK_MS).unref();
  };
  const onclose = () => {
    if (held) again();
    held = false;
  };
  const sql = connect(target, 1, { max_lifetime: null, onclose });
  const take = async (): Promise<boolean> => {
    if (ended) return true;
    const [row] = await sql.unsafe<{ held: boolean }[]>(statement);
    held = row?.held === true;
    return held;
  };
  const end = async (): Promise<void> => {
    ended = true;
    await sql.end({ timeout: 2 });
  };
  return { take, end };
}

function queryable(client: Pick<postgres.Sql, 'unsafe'>): Queryable {
  return {
    async query<R extends Row>(text: string, parameters: readonly Parameter[] = []): Promise<readonly R[]> {
      return await client.unsafe<R[]>(text, parameters.slice(), { prepare: true });
    },
  };
}

/**
 * Gives each statement to the first connection that is free, and to the pool where none is. PostgreSQL serves a
 * connection by a process of its own, which plans a statement for itself, and is slow where the others have driven what
 * it needs from the processor's cache. A pool of the driver uses the connection that has rested for longest: writes
 * through the API cost a quarter more then (`bench/api.ts`).
 */
function firstFree(ordered: readonly RenewedClient[], pool: RenewedClient): RenewedClient['query'] {
  const places = ordered.map((connection) => ({ connection, isBusy: false }));
  return async <R extends Row>(text: string, parameters?: readonly Parameter[], leftMs?: number): Promise<readonly R[]> => {
    const place = places.find(({ isBusy }) => !isBusy);
    if (place === undefined) return await pool.query<R>(text, parameters, leftMs);
    place.isBusy = true;
    try {
      return await place.connection.query<R>(text, parameters, leftMs);
    } finally {
      place.isBusy = false;
    }
  };
}

const socketPath = (dir: string, port: number): string => `${dir}/.s.PGSQL.${port}`;

/**
 * libpq writes a Unix socket as `postgres://user@localhost/database?host=/directory`; postgres.js would take the host
 * for a name. A setting of a connection that is ours (`application_name`, by which a process knows its own, and the
 * limits) is not taken from the URL, which postgres.js would prefer.
 */
function address<O extends { readonly connection: object }>(url: string, options: O): [string, O] {
  const servers = databaseServers(url).map((each) => new URL(each));
  const [parsed = new URL(url)] = servers;
  for (const name of Object.keys(options.connection)) parsed.searchParams.delete(name);
  const dir = servers.length > 1 ? undefined : parsed.searchParams.get('host');
  if (dir?.startsWith('/') !== true) return [parsed.href, { ...options, ...places(servers) }];
  parsed.searchParams.delete('host');
  return [parsed.href, { ...options, path: socketPath(dir, portOf(parsed)) }];
}

/**
 * The options of the driver that say where it connects to. It tries several servers one after the other, for each
 * connection, until one is the primary. The lists, which its types do not know, are for addresses of IPv6: it cuts the
 * host of a URL at the first colon.
 */
function places(servers: readonly URL[]): object {
  return {
    host: servers.map(({ hostname }) => hostname.replace(/^\[(.*)\]$/, '$1')),
    port: servers.map(portOf),
    ...(servers.length > 1 && { target_session_attrs: 'primary' }),
  };
}

const portOf = ({ port }: URL): number => (port === '' ? 5432 : Number(port));
