/**
 * Writes outcomes back, many in one statement, one statement at a time. Those of SETTLE_GATHER_MS go together, since a
 * transaction costs the same for one as for twenty. A crash before that means a second delivery, never a lost one.
 */

import { type Clock, sleep } from '../clock.ts';
import type { OutboxStore, Settlement } from '../database/event/outbox.ts';
import { StoreUnavailable, warnUnlessAway } from '../database/journal/journal.ts';
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
  /** Outcomes that the database has refused by themselves. */
  readonly #refused: Settlement[] = [];
  /** So many go into a statement: half as many after each that was refused, twice as many after each that was taken. */
  #most = SETTLE_BATCH_MAX_EVENTS;
  #writing: Promise<void> | undefined;
  #over = false;
  #triesLeft = Number.POSITIVE_INFINITY;

  constructor(options: OutcomeWriterOptions) {
    this.#options = options;
  }

  /** Outcomes that are not written yet. */
  get waiting(): number {
    return this.#waiting.length + this.#refused.length;
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
    // So many of those that wait first may be written already: the answer to that did not come.
    let unsure = 0;
    while (this.waiting > 0 && !this.#over) {
      // What was refused by itself is tried again when there is nothing else.
      if (this.#waiting.length === 0) this.#waiting = this.#refused.splice(0);
      const batch = this.#waiting.slice(0, this.#most);
      try {
        if (!(await outbox.settle(holder, batch, unsure > 0))) {
          this.#over = true;
          this.#options.onLeaseLost();
          break;
        }
        unsure = Math.max(0, unsure - batch.length);
        this.#waiting = this.#waiting.slice(batch.length);
        // What was refused for a moment, as by a deadlock, must not leave every statement after it small.
        this.#most = Math.min(SETTLE_BATCH_MAX_EVENTS, 2 * this.#most);
        this.#options.onWritten();
      } catch (error) {
        warnUnlessAway(log, error, { waiting: this.waiting }, 'webhook outcomes wait for the database');
        if (error instanceof StoreUnavailable) unsure = Math.max(unsure, batch.length);
        else if (this.#setsAside(batch)) continue;
        this.#triesLeft -= 1;
        if (this.#triesLeft <= 0) break;
        await sleep(clock, SETTLE_RETRY_MS);
      }
    }
    this.#writing = undefined;
  }

  /**
   * Halves what the database has refused, until the one that it refuses stands by itself and holds up no other. True:
   * there are others to be written at once.
   */
  #setsAside(batch: readonly Settlement[]): boolean {
    this.#most = batch.length === 1 ? SETTLE_BATCH_MAX_EVENTS : Math.ceil(batch.length / 2);
    if (batch.length > 1) return true;
    this.#refused.push(...this.#waiting.splice(0, 1));
    return this.#waiting.length > 0;
  }
}
