/**
 * What comes of work whose caller was told after QUERY_MAX_MS that the database did not answer: nothing. It would write
 * after the caller has done the same again and gone on: a short message would be sent twice, an answered call would
 * ring again.
 *
 *   waits in the driver            → it is taken back
 *   a transaction under way        → it is rolled back
 *   was sent, and is not answered  → its process at the server is ended before anything else is asked (given-up.ts)
 */
import { GIVEN_UP_MS } from '../../limits.ts';
import { StoreUnavailable } from '../journal/journal.ts';
import type { Queryable } from './database.ts';

export const notInTime = (): StoreUnavailable => new StoreUnavailable('the database did not answer in time');

/** Returns what throws when a caller who asks now is about to be told. */
export function timeOfCaller(): () => void {
  const until = performance.now() + GIVEN_UP_MS;
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
