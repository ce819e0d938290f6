/** A log that writes one line for one trouble: when it begins, again after a while if it lasts, and when it is over. */
import type { Clock } from '../clock.ts';
import type { Log, LogFields } from '../log.ts';

/** Reasons remembered at once; past it all are forgotten, and said again. */
const REASONS_MAX = 100;

export class ThrottledLog {
  readonly #log: Log;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #everyMs: number;
  readonly #said = new Map<string, number>();

  constructor(log: Log, clock: Pick<Clock, 'now'>, everyMs: number) {
    this.#log = log;
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  say(level: 'warn' | 'error', reason: string, fields: LogFields, message: string): void {
    const now = this.#clock.now();
    const last = this.#said.get(reason);
    if (last !== undefined && now - last < this.#everyMs) return;
    if (this.#said.size >= REASONS_MAX) this.#said.clear();
    this.#said.set(reason, now);
    this.#log[level](fields, message);
  }

  /** Everything works again; said only if there was a complaint. */
  settled(fields: LogFields, message: string): void {
    if (this.#said.size === 0) return;
    this.#said.clear();
    this.#log.info(fields, message);
  }
}
