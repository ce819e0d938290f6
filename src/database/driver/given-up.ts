/**
 * Statements that postgres.js has sent and that are not answered in time. They may still be on their way, for as long
 * as TCP sends them again, and their connection may be dead without a word, which TCP finds out after a quarter of an
 * hour. So all connections are made anew, and the server is told to end the processes of those.
 */
import type postgres from 'postgres';
import { GIVEN_UP_LOOK_MS, GIVEN_UP_LOOKS, GIVEN_UP_MS, QUERY_MAX_MS } from '../../limits.ts';
import { StoreUnavailable } from '../journal/journal.ts';
import type { Parameter, Queryable, Row } from './database.ts';
import { timeOfCaller } from './late.ts';

/** Ends those processes that serve connections of this one, and names those that are still there. */
const END = `SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid = ANY (ARRAY(SELECT json_array_elements_text($1::text::json)::int)) AND usename = current_user
    AND application_name = current_setting('application_name')`;

/** The processes of the server that have not answered in time. */
export class GivenUp {
  readonly #servers = new Set<number>();
  #ending: Promise<void> | undefined;

  get isEmpty(): boolean {
    return this.#servers.size === 0;
  }

  add(server: number): void {
    this.#servers.add(server);
  }

  /** Resolves when what they had is done, or never will be. Rejects while `ask` does. */
  async ended(ask: Queryable['query']): Promise<void> {
    while (this.#servers.size > 0) {
      this.#ending ??= this.#end([...this.#servers], ask).finally(() => {
        this.#ending = undefined;
      });
      await this.#ending;
    }
  }

  async #end(servers: readonly number[], ask: Queryable['query']): Promise<void> {
    for (let looks = 0; looks < GIVEN_UP_LOOKS; looks += 1) {
      if ((await ask(END, [JSON.stringify(servers)])).length === 0) {
        for (const server of servers) this.#servers.delete(server);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, GIVEN_UP_LOOK_MS));
    }
    throw new StoreUnavailable('a statement that was given up is still under way');
  }
}

/** A client of the driver, which can be replaced. */
export class RenewedClient {
  readonly #open: () => postgres.Sql;
  readonly #hangs: (server: number | undefined) => void;
  #client: postgres.Sql;

  /** `hangs` is called where a statement is not answered in time, with the process of the server that has it. */
  constructor(open: () => postgres.Sql, hangs: (server: number | undefined) => void) {
    this.#open = open;
    this.#hangs = hangs;
    this.#client = open();
  }

  get client(): postgres.Sql {
    return this.#client;
  }

  /** Sends a statement. Its caller is told `leftMs` milliseconds from now. */
  async query<R extends Row>(text: string, parameters: readonly Parameter[] = [], leftMs = GIVEN_UP_MS): Promise<readonly R[]> {
    return await this.#watched(this.#client.unsafe<R[]>(text, parameters.slice(), { prepare: true }), leftMs);
  }

  /**
   * Carries a transaction out. It is rolled back where its caller was told, which is `leftMs` milliseconds from now, or
   * never where that is undefined. The server ends one whose COMMIT is long on its way, by
   * `idle_in_transaction_session_timeout`.
   */
  async begin<T>(work: (within: postgres.TransactionSql) => Promise<T>, leftMs?: number): Promise<T> {
    const timer = leftMs === undefined ? undefined : setTimeout(() => this.#hangs(undefined), leftMs);
    let result: { readonly value: T } | undefined;
    try {
      await this.#client.begin(async (within) => {
        result = { value: await work(within) };
      });
    } finally {
      clearTimeout(timer);
    }
    if (result === undefined) throw new Error('the transaction did not run');
    return result.value;
  }

  /** The client as Drizzle uses it: for statements, and for transactions. */
  forDrizzle(): postgres.Sql {
    const unsafe = (...statement: Parameters<postgres.Sql['unsafe']>) =>
      this.#watched(this.#client.unsafe(...statement), GIVEN_UP_MS);
    const begin = (work: (within: postgres.TransactionSql) => Promise<unknown>) => {
      const check = timeOfCaller();
      return this.begin(async (within) => {
        const value = await work(within);
        check();
        return value;
      }, GIVEN_UP_MS);
    };
    return new Proxy(this.#client, {
      get: (target, name) => (name === 'unsafe' ? unsafe : name === 'begin' ? begin : Reflect.get(target, name)),
    });
  }

  /** Uses other connections from now on. What is under way has its time. */
  renew(): void {
    const old = this.#client;
    this.#client = this.#open();
    old.end({ timeout: QUERY_MAX_MS / 1000 }).catch(() => {});
  }

  async end(): Promise<void> {
    await this.#client.end({ timeout: 2 });
  }

  /**
   * A statement that is taken back where it still waits in the driver when its caller is told. One that was sent is not
   * cancelled, since the driver takes its rows for those of the next.
   */
  #watched<Q extends PromiseLike<unknown> & { cancel(): void }>(pending: Q, leftMs: number): Q {
    const timer = setTimeout(() => {
      if (isSent(pending)) this.#hangs(pidOf(pending));
      else pending.cancel();
    }, leftMs);
    const end = () => clearTimeout(timer);
    pending.then(end, end);
    return pending;
  }
}

/** The driver gives a statement the state of the connection on which it sends it. */
const stateOf = (pending: object): unknown => Reflect.get(pending, 'state');
const isSent = (pending: object): boolean => stateOf(pending) !== null;

/** The process of the server that was sent a statement. Undefined where a pooler has not told it. */
function pidOf(pending: object): number | undefined {
  const state = stateOf(pending);
  return typeof state === 'object' && state !== null && 'pid' in state && typeof state.pid === 'number' ? state.pid : undefined;
}
