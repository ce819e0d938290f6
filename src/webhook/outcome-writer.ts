/**
 * Writes outcomes back, many in one statement, one statement at a time. Those of SETTLE_GATHER_MS go together, since a
 * transaction costs the same for one as for twenty. A crash before that means a second delivery, never a lost one.
 */

import { type Clock, sleep } from '../clock.ts';
import type { OutboxStore, Settlement } from '../database/event/outbox.ts';
import { warnUnlessAway } from '../database/journal/journal.ts';
import { SETTLE_BATCH_MAX_EVENTS, SETTLE_GATHER_MS, SETTLE_LAST_TRIES, SETTLE_RETRY_MS } from '../limits.ts';
import type { Log } from '../log.ts';

export interface OutcomeWriterOptions {
  readonly outbox: Pick<OutboxStore, 'settle'>;
  /** The name under which the lease is held. */
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  /** A batch has been written. */
  onWritten(): void;
  /** The database refused the outcomes, because another relay holds the lease. */
  onLeaseLost(): void;
}

export class OutcomeWriter {
  readonly #options: OutcomeWriterOptions;
  #waiting: Settlement[] = [];
  #writing: Promise<void> | undefined;
  #over = false;
  #triesLeft = Number.POSITIVE_INFINITY;

  constructor(options: OutcomeWriterOptions) {
    this.#options = options;
  }

  /** Outcomes that are not written yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  add(settlement: Settlement): void {
    if (this.#over) return;
    this.#waiting.push(settlement);
    this.#writing ??= this.#write();
  }

  /**
   * Resolves when everything added is written, or given up: the lease is lost, or the database stays away. What is
   * unwritten is sent again.
   */
  async drain(): Promise<void> {
    this.#triesLeft = SETTLE_LAST_TRIES;
    while (this.#writing !== undefined) await this.#writing;
  }

  async #write(): Promise<void> {
    const { outbox, holder, clock, log } = this.#options;
    await sleep(clock, SETTLE_GATHER_MS);
    let isAgain = false;
    while (this.#waiting.length > 0 && !this.#over) {
      const batch = this.#waiting.slice(0, SETTLE_BATCH_MAX_EVENTS);
      try {
        if (!(await outbox.settle(holder, batch, isAgain))) {
          this.#over = true;
          this.#options.onLeaseLost();
          break;
        }
        isAgain = false;
        this.#waiting = this.#waiting.slice(batch.length);
        this.#options.onWritten();
      } catch (error) {
        warnUnlessAway(log, error, { waiting: this.#waiting.length }, 'webhook outcomes wait for the database');
        isAgain = true;
        this.#triesLeft -= 1;
        if (this.#triesLeft <= 0) break;
        await sleep(clock, SETTLE_RETRY_MS);
      }
    }
    this.#writing = undefined;
  }
}
