/**
 * Says that the database does not answer, and that it does again: one line for each outage and each minute of it,
 * whoever asked. A statement that is late on a busy machine, while others are answered, is a short outage.
 *
 *   up ─a question fails→ away ─one is answered, and none has failed for a while→ up
 */
import { OUTAGE_OVER_MS, OUTAGE_SAID_EVERY_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';

export class OutageLog {
  readonly #log: Log;
  /** When the outage began. Undefined while there is none. Milliseconds of a monotonic clock, as the other times. */
  #since: number | undefined;
  #failedAt = 0;
  /** When a question was first answered after the last one that has failed. Undefined before that. */
  #answeredAt: number | undefined;
  #saidAt = 0;
  #isClosed = false;

  constructor(log: Log) {
    this.#log = log;
  }

  failed(error: Error, now: number): void {
    if (this.#isClosed) return;
    this.#failedAt = now;
    this.#answeredAt = undefined;
    const isNew = this.#since === undefined;
    this.#since ??= now;
    if (!isNew && now - this.#saidAt < OUTAGE_SAID_EVERY_MS) return;
    this.#saidAt = now;
    const lasts = isNew ? {} : { away_ms: Math.round(now - this.#since) };
    this.#log.warn(
      { error: error.message, ...lasts },
      'the database does not answer: calls go on, commands and new calls are refused, webhooks wait',
    );
  }

  /** How long the database has been away, in milliseconds. 0 while it answers. */
  awayMs(now: number): number {
    return this.#since === undefined ? 0 : now - this.#since;
  }

  /** The connections are closed by ourselves: what fails from here on is no outage. */
  close(): void {
    this.#isClosed = true;
  }

  answered(now: number): void {
    if (this.#since === undefined) return;
    this.#answeredAt ??= now;
    if (now - this.#failedAt < OUTAGE_OVER_MS) return;
    this.#log.info({ away_ms: Math.round(this.#answeredAt - this.#since) }, 'the database answers again');
    this.#since = undefined;
  }
}
