/**
 * What comes of work whose caller was told after QUERY_MAX_MS that the database did not answer: nothing. It would write
 * after the caller has done the same again, and a short message would be sent twice. Only what was sent to the server
 * before is left to it: a statement, or a COMMIT.
 */
import type postgres from 'postgres';
import { QUERY_MAX_MS } from '../../limits.ts';
import { StoreUnavailable } from '../journal/journal.ts';
import type { Queryable } from './database.ts';

export const notInTime = (): StoreUnavailable => new StoreUnavailable('the database did not answer in time');

/** Returns what throws once a caller who asks now has been told. */
function timeOfCaller(): () => void {
  const until = performance.now() + QUERY_MAX_MS;
  return () => {
    if (performance.now() >= until) throw notInTime();
  };
}

/**
 * The work of a transaction, which is rolled back once its caller was told. It may have waited for a connection until
 * then, or for locks that others held.
 */
export function whileAwaited<T>(work: (within: Queryable) => Promise<T>): (within: Queryable) => Promise<T> {
  const check = timeOfCaller();
  return async (within) => {
    const result = await work({
      async query(text, parameters) {
        check();
        return await within.query(text, parameters);
      },
    });
    check();
    return result;
  };
}

/**
 * Takes a statement back that is queued behind a reconnect, or behind others. One that was sent is left to the server's
 * own limit: the driver takes the rows of a sent query that was cancelled for those of the next.
 */
export function takenBack<Q extends PromiseLike<unknown> & { cancel(): void }>(pending: Q): Q {
  const timer = setTimeout(() => {
    if (Reflect.get(pending, 'state') === null) pending.cancel();
  }, QUERY_MAX_MS);
  const end = () => clearTimeout(timer);
  pending.then(end, end);
  return pending;
}

/** The client as Drizzle uses it: for statements, and for transactions. */
export function takingBack(client: postgres.Sql): postgres.Sql {
  const unsafe = (text: string, parameters: postgres.ParameterOrJSON<never>[], options?: postgres.UnsafeQueryOptions) =>
    takenBack(client.unsafe(text, parameters, options));
  const begin = (work: (within: postgres.TransactionSql) => Promise<unknown>) => {
    const check = timeOfCaller();
    return client.begin(async (within) => {
      check();
      const result = await work(within);
      check();
      return result;
    });
  };
  return new Proxy(client, {
    get: (target, name) => (name === 'unsafe' ? unsafe : name === 'begin' ? begin : Reflect.get(target, name)),
  });
}
