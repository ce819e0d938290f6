/**
 * A semaphore that applications share: so many jobs run at once, a few more of applications that have next to none, and
 * those that wait have their turns round robin by application. One that has a thousand jobs holds up its own alone.
 */
import { RoundRobin } from './round-robin.ts';
import { type ShareLimits, Shares } from './shares.ts';

export interface FairSemaphoreLimits extends ShareLimits {
  /** The most jobs of one application that wait; the rest is refused. */
  readonly waitingOfApp: number;
}

export class FairSemaphore {
  readonly #places: Shares;
  readonly #waitingOfApp: number;
  /** Each is told once: it is its turn, and it has its place. */
  readonly #waiting = new RoundRobin<() => void>();

  constructor(limits: FairSemaphoreLimits) {
    this.#places = new Shares(limits);
    this.#waitingOfApp = limits.waitingOfApp;
  }

  /**
   * Runs a job of the application when its turn comes. Undefined: too many of them wait, or it was aborted while it
   * did. Rejects as the job does.
   */
  async run<T>(appUuid: string, signal: AbortSignal, job: () => Promise<T>): Promise<T | undefined> {
    if (!(await this.#turn(appUuid, signal))) return undefined;
    try {
      return await job();
    } finally {
      this.#places.give(appUuid);
      this.#callWaiting();
    }
  }

  /**
   * Calls those that have a place now. One that ends may make room for two: the application whose turn it is takes the
   * place, and the one that ended has so few left that it may take one of the reserve.
   */
  #callWaiting(): void {
    for (let go = this.#next(); go !== undefined; go = this.#next()) go();
  }

  #next(): (() => void) | undefined {
    return this.#waiting.take((each) => this.#places.take(each));
  }

  async #turn(appUuid: string, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    // Nobody waits who could have a place, so that nobody is overtaken.
    if (this.#places.take(appUuid)) return true;
    if (this.#waiting.of(appUuid) >= this.#waitingOfApp) return false;
    return new Promise((resolve) => {
      const settle = (turn: boolean) => {
        this.#waiting.delete(appUuid, go);
        signal.removeEventListener('abort', give);
        resolve(turn);
      };
      const go = () => settle(true);
      const give = () => settle(false);
      this.#waiting.add(appUuid, go);
      signal.addEventListener('abort', give);
    });
  }
}
