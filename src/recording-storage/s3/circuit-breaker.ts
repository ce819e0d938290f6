/**
 * Whether the object store is worth a request. While it is away, or refuses us, everything waits: one upload asks now and then, twice as long
 * after each failure; the first that gets through opens the door to all. What failed beside others in the same moment counts once.
 */
import type { Clock } from '../../clock.ts';

export interface OutageLimits {
  readonly retryMinMs: number;
  readonly retryMaxMs: number;
}

export class Outage {
  readonly #clock: Clock;
  readonly #limits: OutageLimits;
  readonly #onTry: () => void;
  #failures = 0;
  #cancel: (() => void) | undefined;

  /** `onTry` is called when the next attempt is due. */
  constructor(clock: Clock, limits: OutageLimits, onTry: () => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#onTry = onTry;
  }

  /** Which spell this is: given back with the outcome of what began in it. */
  get spell(): number {
    return this.#failures;
  }

  /** How many may be under way at once, of so many. */
  atOnce(most: number): number {
    if (this.#cancel !== undefined) return 0;
    return this.#failures > 0 ? 1 : most;
  }

  /** `longer`: nothing will change by itself soon. */
  failed(spell: number, longer: boolean): void {
    if (spell !== this.#failures || this.#cancel !== undefined) return;
    const { retryMinMs, retryMaxMs } = this.#limits;
    const wait = longer ? retryMaxMs : Math.min(retryMaxMs, retryMinMs * 2 ** Math.min(this.#failures, 20));
    this.#failures++;
    // Spread, so that several nodes do not come back in one moment.
    this.#cancel = this.#clock.at(this.#clock.now() + wait * (0.75 + Math.random() / 4), () => {
      this.#cancel = undefined;
      this.#onTry();
    });
  }

  succeeded(): void {
    this.#failures = 0;
    this.stop();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
