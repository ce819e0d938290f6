/** Work on the database that is a fact: it is tried again until the database takes it, with growing pauses. */
import { type Clock, sleep } from '../clock.ts';
import { StoreUnavailable } from '../database/journal/journal.ts';
import { STORE_RETRY_FIRST_MS, STORE_RETRY_LONGEST_MS } from '../limits.ts';

/** Decides whether work that has failed so is tried again. */
type GoOn = (error: StoreUnavailable) => boolean;

/**
 * Resolves with what `work` gives. While it fails as `StoreUnavailable`, `goOn` decides whether it is tried again;
 * undefined when it is not. Rejects with any other error.
 */
export function untilStored<T>(clock: Clock, work: () => Promise<T>): Promise<T>;
export function untilStored<T>(clock: Clock, work: () => Promise<T>, goOn: GoOn): Promise<T | undefined>;
export async function untilStored<T>(clock: Clock, work: () => Promise<T>, goOn: GoOn = () => true): Promise<T | undefined> {
  for (let waitMs = STORE_RETRY_FIRST_MS; ; waitMs = Math.min(waitMs * 2, STORE_RETRY_LONGEST_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      if (!goOn(error)) return undefined;
      await sleep(clock, waitMs);
    }
  }
}
