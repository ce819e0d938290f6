/** A semaphore: so many jobs run at once, a few more wait in the order in which they came, and the rest is refused. */
export class Semaphore {
  readonly #most: number;
  readonly #mostWaiting: number;
  #busy = 0;
  /** Each is told once: it is its turn. */
  readonly #waiting = new Set<() => void>();

  constructor(most: number, mostWaiting: number) {
    this.#most = most;
    this.#mostWaiting = mostWaiting;
  }

  /**
   * Runs the job when its turn comes. Undefined: too many wait, or it was aborted while it did. Rejects as the job
   * does.
   */
  async run<T>(signal: AbortSignal, job: () => Promise<T>): Promise<T | undefined> {
    if (!(await this.#turn(signal))) return undefined;
    try {
      return await job();
    } finally {
      const [next] = this.#waiting;
      // Handed on, so that nobody comes between.
      if (next === undefined) this.#busy--;
      else next();
    }
  }

  async #turn(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#busy < this.#most) {
      this.#busy++;
      return true;
    }
    if (this.#waiting.size >= this.#mostWaiting) return false;
    return new Promise((resolve) => {
      const settle = (turn: boolean) => {
        this.#waiting.delete(go);
        signal.removeEventListener('abort', give);
        resolve(turn);
      };
      const go = () => settle(true);
      const give = () => settle(false);
      this.#waiting.add(go);
      signal.addEventListener('abort', give);
    });
  }
}
