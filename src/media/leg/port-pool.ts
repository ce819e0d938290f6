/**
 * The RTP port pairs of a node: even ports, each with the odd one above it. A pair given back rests before it is used again, so that
 * stragglers of the old call never reach a new one. Pure: `now` is an argument, in milliseconds.
 */
export class PortPool {
  /** Free pairs, longest free first; a ring over `free`. */
  readonly #free: number[] = [];
  #head = 0;
  readonly #resting: { readonly port: number; readonly until: number }[] = [];
  readonly #restMs: number;

  /** Pairs within `firstPort` to `lastPort`, both ends included. */
  constructor(firstPort: number, lastPort: number, restMs: number) {
    for (let port = firstPort + (firstPort & 1); port + 1 <= lastPort; port += 2) this.#free.push(port);
    this.#restMs = restMs;
  }

  /** The even port of a pair, or undefined when all are in use or resting. */
  take(now: number): number | undefined {
    this.#wake(now);
    const port = this.#free[this.#head];
    if (port === undefined) return undefined;
    this.#head++;
    if (this.#head > 4096 && this.#head * 2 > this.#free.length) {
      this.#free.splice(0, this.#head);
      this.#head = 0;
    }
    return port;
  }

  /** The pair rests from now on; so does one that another process was found to hold. */
  release(port: number, now: number): void {
    this.#resting.push({ port, until: now + this.#restMs });
  }

  free(now: number): number {
    this.#wake(now);
    return this.#free.length - this.#head;
  }

  #wake(now: number): void {
    let rested = 0;
    for (const pair of this.#resting) {
      if (pair.until > now) break; // released in order of time, so in order of deadline
      this.#free.push(pair.port);
      rested++;
    }
    if (rested > 0) this.#resting.splice(0, rested);
  }
}
