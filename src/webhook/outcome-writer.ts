/** Writes outcomes back, many in one statement, one statement at a time. A crash before that means a second delivery, never a lost one. */

import type { OutboxStore, Settlement } from '../database/outbox.ts';
import { SETTLE_BATCH_MAX_EVENTS, SETTLE_LAST_TRIES, SETTLE_RETRY_MS } from '../limits.ts';
import type { Log } from '../log.ts';

export interface Settler {
  add(settlement: Settlement): void;
  readonly waiting: number;
  /** Resolves when everything added is written, or given up: the lease is lost, or the database stays away. Unwritten means sent again. */
  drain(): Promise<void>;
}

/** `lost` is called when the database took the settlements from us no longer: another relay holds the lease. `written` after each write. */
export function settler(outbox: OutboxStore, holder: string, log: Log, written: () => void, lost: () => void): Settler {
  let waiting: Settlement[] = [];
  let writing: Promise<void> | undefined;
  let over = false;
  let triesLeft = Number.POSITIVE_INFINITY;

  const write = async (): Promise<void> => {
    await Promise.resolve();
    while (waiting.length > 0 && !over) {
      const batch = waiting.slice(0, SETTLE_BATCH_MAX_EVENTS);
      try {
        if (!(await outbox.settle(holder, batch))) {
          over = true;
          lost();
          break;
        }
        waiting = waiting.slice(batch.length);
        written();
      } catch (error) {
        log.warn({ error: String(error), waiting: waiting.length }, 'webhook outcomes wait for the database');
        triesLeft -= 1;
        if (triesLeft <= 0) {
          over = true;
          break;
        }
        await new Promise((wake) => setTimeout(wake, SETTLE_RETRY_MS));
      }
    }
    writing = undefined;
  };

  return {
    add(settlement) {
      if (over) return;
      waiting.push(settlement);
      writing ??= write();
    },
    get waiting() {
      return waiting.length;
    },
    async drain() {
      triesLeft = SETTLE_LAST_TRIES;
      while (writing !== undefined) await writing;
    },
  };
}
