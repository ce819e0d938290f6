/** PostgreSQL at Neon, through its driver over WebSocket. */
import { Client, Pool } from '@neondatabase/serverless';
import { drizzle } from 'drizzle-orm/neon-serverless';
import { CONNECT_MAX_SEC, DATABASE_CONNECTIONS_MAX } from '../../limits.ts';
import type { Connection, Parameter, Queryable, Row } from './database.ts';

const RELISTEN_MS = 2_000;

/** Connects lazily. Behind Neon's pooler LISTEN hears nothing; the relay's slow poll stands in for it. */
export function openNeon(url: string): Connection {
  const pool = new Pool({
    connectionString: url,
    max: DATABASE_CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_MAX_SEC * 1000,
  });
  // A connection lost while idle is replaced at its next use; unheard, the error would end the process.
  pool.on('error', () => {});
  const locks: Client[] = [];
  const listener = new Listener(url);

  return {
    drizzle: drizzle(pool),
    query: (text, parameters) => ask(pool, text, parameters),
    transaction: (work) => transaction(pool, work),
    listen: (channel, notified) => listener.listen(channel, notified),
    async lock(key, shared) {
      const client = new Client(url);
      // Behind a pooler the lock goes with the connection. What fences writes is the row of the node, not this lock.
      client.on('error', () => {});
      await client.connect();
      const statement = `SELECT pg_try_advisory_lock${shared ? '_shared' : ''}(${key}) AS held`;
      const held = (await client.query<{ held: boolean }>(statement)).rows[0]?.held === true;
      if (held) locks.push(client);
      else await client.end();
      return held;
    },
    async close() {
      await listener.close();
      await Promise.all(locks.map((each) => each.end().catch(() => {})));
      await pool.end();
    },
  };
}

/** Runs `work` in a transaction on a connection of its own. One that cannot be rolled back is thrown away. */
async function transaction<T>(pool: Pool, work: (within: Queryable) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken = false;
  try {
    await client.query('BEGIN');
    const value = await work({ query: (text, parameters) => ask(client, text, parameters) });
    await client.query('COMMIT');
    return value;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {
      broken = true;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}

/** The connection that LISTENs, which the pool cannot lend. It is made anew `RELISTEN_MS` after it was lost. */
class Listener {
  readonly #url: string;
  #client: Client | undefined;
  #closed = false;

  constructor(url: string) {
    this.#url = url;
  }

  /** Calls back at each NOTIFY on the channel, and once whenever it listens (again). Rejects when it cannot connect. */
  async listen(channel: string, notified: () => void): Promise<void> {
    const client = new Client(this.#url);
    let lost = false;
    const again = () => {
      if (lost || this.#closed) return;
      lost = true;
      setTimeout(() => void this.listen(channel, notified).catch(() => {}), RELISTEN_MS);
    };
    client.on('error', again);
    client.on('end', again);
    client.on('notification', notified);
    this.#client = client;
    try {
      await client.connect();
      await client.query(`LISTEN "${channel.replaceAll('"', '""')}"`);
      notified();
    } catch (error) {
      again();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client?.end().catch(() => {});
  }
}

async function ask<R extends Row>(
  client: Pick<Pool, 'query'>,
  text: string,
  parameters: readonly Parameter[] = [],
): Promise<readonly R[]> {
  const values = parameters.map((each) => (each instanceof Uint8Array ? Buffer.from(each) : each));
  return (await client.query<R>(text, values)).rows;
}
