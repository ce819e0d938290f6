/**
 * The turns of applications with an object store. Whoever asks for recordings again and again would otherwise have all
 * requests that this process may have under way (256 unless Bun is told otherwise, those of webhooks among them) wait
 * for a slow store.
 * Uploads have turns of their own (`upload-queue.ts`), and so has what is fetched to the disk (`object-cache.ts`).
 */
import { FairSemaphore } from '../../bounds/fair-semaphore.ts';
import type { Clock } from '../../clock.ts';
import { OBJECT_LOOK_SHARES, OBJECT_LOOK_WAIT_MS, OBJECT_STREAM_SHARES } from '../../limits.ts';
import { ObjectError } from './object-error.ts';

export class ObjectTurns {
  readonly #clock: Clock;
  readonly #looks = new FairSemaphore(OBJECT_LOOK_SHARES);
  readonly #streams = new FairSemaphore(OBJECT_STREAM_SHARES);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Looks for an object. Rejects where too many looks of the application wait, or its turn does not come in time. */
  async look<T>(appUuid: string, job: () => Promise<T>): Promise<T> {
    const late = new AbortController();
    const disarm = this.#clock.at(this.#clock.now() + OBJECT_LOOK_WAIT_MS, () => late.abort());
    try {
      return await inTurn(this.#looks, appUuid, late.signal, () => {
        disarm();
        return job();
      });
    } finally {
      disarm();
    }
  }

  /** Reads a slice of an object that is streamed. Rejects where it was aborted before its turn. */
  stream<T>(appUuid: string, signal: AbortSignal, job: () => Promise<T>): Promise<T> {
    return inTurn(this.#streams, appUuid, signal, job);
  }
}

async function inTurn<T>(turns: FairSemaphore, appUuid: string, signal: AbortSignal, job: () => Promise<T>): Promise<T> {
  const done = await turns.run(appUuid, signal, async () => ({ result: await job() }));
  if (done === undefined) throw new ObjectError('away', 'no turn');
  return done.result;
}
