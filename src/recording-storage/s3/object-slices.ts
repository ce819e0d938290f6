/**
 * An object as slices: ranged GETs one after another, the next one under way while the last is taken. A whole-object
 * GET would be one request less, but what its reader does not take would pile up here, and a pause would cost its
 * connection.
 */
import { type Clock, sleep } from '../../clock.ts';
import { OBJECT_READ_MAX_BYTES, OBJECT_READ_MIN_BYTES, OBJECT_TRIES_MAX, OBJECT_TRY_PAUSE_MS } from '../../limits.ts';
import type { Slices } from '../slices.ts';
import { ObjectError } from './object-error.ts';
import type { ObjectStore } from './object-store.ts';

/** Waits for the turn of a request, and carries it out. */
type InTurn = <T>(signal: AbortSignal, job: () => Promise<T>) => Promise<T>;

/** Bytes `start` to `end` of an object: at most two slices in memory. */
export function objectSlices(
  store: Pick<ObjectStore, 'get'>,
  clock: Clock,
  name: string,
  start: number,
  end: number,
  inTurn: InTurn = (_signal, job) => job(),
): Slices {
  const abort = new AbortController();
  let at = start;
  let size = OBJECT_READ_MIN_BYTES;
  let ahead: Promise<Uint8Array> | undefined;

  const fetchNext = (): Promise<Uint8Array> | undefined => {
    if (at >= end || abort.signal.aborted) return undefined;
    const from = at;
    at = Math.min(end, at + size);
    size = Math.min(OBJECT_READ_MAX_BYTES, size * 2);
    const to = at;
    const get = () => store.get(name, from, to, { signal: abort.signal });
    const slice = inTurn(abort.signal, () => tried(clock, get, abort.signal));
    slice.catch(() => {}); // whoever asks next is told; nobody may ask
    return slice;
  };

  return {
    async next() {
      const slice = await (ahead ?? fetchNext());
      ahead = fetchNext();
      return slice;
    },
    async close() {
      abort.abort();
    },
  };
}

/** Tries a few times, while the store is away, what someone waits for. */
export async function tried<T>(clock: Clock, attempt: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      const again = error instanceof ObjectError && error.fault === 'away' && error.code !== 'timeout';
      if (!again || tries === OBJECT_TRIES_MAX || signal?.aborted) throw error;
    }
    await sleep(clock, OBJECT_TRY_PAUSE_MS * tries);
  }
}
