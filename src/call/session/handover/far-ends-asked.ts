/**
 * The calls that go from one node to another at a time, which bounds the far ends that are asked at once. One whose far
 * end has answered nothing for FAR_END_QUIET_MS is waited for beside the others: silent ones hold up nobody.
 */
import { type Clock, sleep } from '../../../clock.ts';
import { FAR_END_QUIET_MS } from '../../../limits.ts';

export class FarEndsAsked {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #asked = new Set<Promise<unknown>>();

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  /** How many more may go now. */
  get free(): number {
    return this.#most - this.#asked.size;
  }

  /** Adds a call that has begun to go. `gone` resolves, and never rejects, once it has gone or stays. */
  add(gone: Promise<void>): void {
    const asked = Promise.race([gone, sleep(this.#clock, FAR_END_QUIET_MS)]).finally(() => this.#asked.delete(asked));
    this.#asked.add(asked);
  }

  /** Resolves once half of the places are free. */
  async untilHalfFree(): Promise<void> {
    while (this.#asked.size > this.#most / 2) await Promise.race(this.#asked);
  }
}
