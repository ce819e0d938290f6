/**
 * A circuit breaker for the object store. After a failure it is open: everything waits, and one attempt is made after a
 * time that doubles with each failure. The first attempt that succeeds closes it for all. Attempts that fail at the
 * same time count as one failure.
 */
import type { Clock } from '../../clock.ts';

interface CircuitBreakerLimits {
  readonly retryMinMs: number;
  readonly retryMaxMs: number;
}

export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #limits: CircuitBreakerLimits;
  readonly #onTry: () => void;
  #failures = 0;
  #cancel: (() => void) | undefined;

  /** Makes a breaker that is closed. `onTry` is called when the next attempt is due. */
  constructor(clock: Clock, limits: CircuitBreakerLimits, onTry: () => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#onTry = onTry;
  }

  /** Failures in a row. An attempt notes the count at which it begins, and `failed` is told it. */
  get failures(): number {
    return this.#failures;
  }

  /** Returns how many attempts may be under way at once, of `most`: none while it is open, one after a failure. */
  atOnce(most: number): number {
    if (this.#cancel !== undefined) return 0;
    return this.#failures > 0 ? 1 : most;
  }

  /**
   * An attempt failed that began after so many `failures`. `longer`: nothing will change by itself soon, so the longest
   * wait is due at once.
   */
  failed(failures: number, longer: boolean): void {
    if (failures !== this.#failures || this.#cancel !== undefined) return;
    const { retryMinMs, retryMaxMs } = this.#limits;
    const wait = longer ? retryMaxMs : Math.min(retryMaxMs, retryMinMs * 2 ** Math.min(this.#failures, 20));
    this.#failures++;
    // Spread, so that several nodes do not come back in one moment.
    this.#cancel = this.#clock.at(this.#clock.now() + wait * (0.75 + Math.random() / 4), () => {
      this.#cancel = undefined;
      this.#onTry();
    });
  }

  /** An attempt succeeded: the breaker is closed. */
  succeeded(): void {
    this.#failures = 0;
    this.stop();
  }

  /** Makes no further attempt. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
