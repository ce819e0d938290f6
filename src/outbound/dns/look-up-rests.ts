/**
 * Rests between look-ups for one owner, where names have thousands of addresses. Reading such an answer takes 16 ms of
 * the main thread, and an application may ask for a hundred names with one command. An owner is what an application
 * does, or a far end: names that somebody has an application play hold up none of its webhooks.
 */
import { type Clock, systemClock } from '../../clock.ts';
import { LOOK_UP_REST_MAX_MS, LOOK_UP_REST_OF_ADDRESS_MS, NAME_ADDRESSES_MAX } from '../../limits.ts';

interface Resting {
  /** When the next look-up may begin. */
  until: number;
  /** The longest rest that one answer has cost. It is reserved for each look-up that waits. */
  eachMs: number;
}

export class LookUpRests {
  /** The owners that rest, or have rested lately: nobody else is in it. */
  readonly #owners = new Map<string, Resting>();
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock()) {
    this.#clock = clock;
  }

  /**
   * Looks a name up for an owner: at once, or when those before it have rested. `count` tells the addresses that
   * were read. Rejects where that would be in more than LOOK_UP_REST_MAX_MS, and as the look-up does.
   */
  async run<T>(owner: string, lookUp: () => Promise<T>, count: (found: T) => number): Promise<T> {
    const reservedMs = await this.#turn(owner);
    const found = await lookUp();
    this.#charge(owner, count(found), reservedMs);
    return found;
  }

  /** Waits for the turn of the owner. Returns the milliseconds of rest that are reserved for this look-up. */
  async #turn(owner: string): Promise<number> {
    const resting = this.#owners.get(owner);
    if (resting === undefined) return 0;
    const waitMs = resting.until - this.#clock.now();
    if (waitMs <= 0) {
      this.#owners.delete(owner);
      return 0;
    }
    if (waitMs > LOOK_UP_REST_MAX_MS) throw new Error('too many names with thousands of addresses were asked for');
    const { until, eachMs } = resting;
    resting.until += eachMs;
    await new Promise<void>((resolve) => void this.#clock.at(until, resolve));
    return eachMs;
  }

  #charge(owner: string, addresses: number, reservedMs: number): void {
    const restMs = Math.max(0, addresses - NAME_ADDRESSES_MAX) * LOOK_UP_REST_OF_ADDRESS_MS;
    if (restMs <= reservedMs) return;
    const now = this.#clock.now();
    for (const [each, { until }] of this.#owners) if (until <= now) this.#owners.delete(each);
    const { until, eachMs } = this.#owners.get(owner) ?? { until: now, eachMs: 0 };
    this.#owners.set(owner, { until: until + restMs - reservedMs, eachMs: Math.max(eachMs, restMs) });
  }
}
