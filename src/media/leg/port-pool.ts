/**
 * The RTP port pairs of a node: even ports, each with the odd one above it (RFC 3550 §11).
 *
 * - A pair is drawn at random among the free ones, so that nobody can guess where the next call will listen.
 * - A pair given back rests before it is free again, so that stragglers of the old call never reach a new one.
 * - When no pair is free, the one that rested longest is taken, but never before it has rested for a short while.
 *
 * Pure: `now` is an argument, in milliseconds, and so is the source of randomness.
 */
interface PortPoolOptions {
  /** The pairs lie within `firstPort` to `lastPort`, both ends included. */
  readonly firstPort: number;
  readonly lastPort: number;
  /** The rest of a pair, in milliseconds. */
  readonly restMs: number;
  /** The shortest rest of a pair, in milliseconds, when the range runs short. */
  readonly leastRestMs: number;
  /** A uniform integer from 0 to `below` - 1. It must be unpredictable. */
  random(below: number): number;
}

export class PortPool {
  /** All pairs of the range. */
  readonly size: number;
  readonly #options: PortPoolOptions;
  /** Pairs that may be drawn, in no command. */
  readonly #free: number[] = [];
  /** Pairs that rest, the one that was given back first at `#head`. */
  #resting: { readonly port: number; readonly since: number }[] = [];
  #head = 0;

  constructor(options: PortPoolOptions) {
    this.#options = options;
    const { firstPort, lastPort } = options;
    for (let port = firstPort + (firstPort & 1); port + 1 <= lastPort; port += 2) this.#free.push(port);
    this.size = this.#free.length;
  }

  /** The even port of a pair. Undefined when all pairs are in use or have not rested long enough. */
  take(now: number): number | undefined {
    this.#wake(now);
    if (this.#free.length === 0) return this.#longestRested(now);
    const at = this.#options.random(this.#free.length);
    const port = this.#free[at];
    const last = this.#free.pop();
    if (last !== undefined && at < this.#free.length) this.#free[at] = last;
    return port;
  }

  /** Gives a pair back. It rests from now on. So does a pair that another process was found to hold. */
  release(port: number, now: number): void {
    this.#resting.push({ port, since: now });
  }

  /** The number of pairs that could be taken now, one after another. */
  free(now: number): number {
    this.#wake(now);
    let [low, high] = [this.#head, this.#resting.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#hasRested(middle, this.#options.leastRestMs, now)) low = middle + 1;
      else high = middle;
    }
    return this.#free.length + low - this.#head;
  }

  /** Pairs are given back in order of time, so those that rested long enough are the first ones. */
  #wake(now: number): void {
    while (this.#hasRested(this.#head, this.#options.restMs, now)) {
      const port = this.#leave();
      if (port !== undefined) this.#free.push(port);
    }
  }

  #longestRested(now: number): number | undefined {
    return this.#hasRested(this.#head, this.#options.leastRestMs, now) ? this.#leave() : undefined;
  }

  #hasRested(index: number, ms: number, now: number): boolean {
    const pair = this.#resting[index];
    return pair !== undefined && now - pair.since >= ms;
  }

  /** Takes the first pair out of its rest. The array is cut only now and then, so that a long queue costs nothing. */
  #leave(): number | undefined {
    const port = this.#resting[this.#head++]?.port;
    if (this.#head > 1024 && this.#head * 2 > this.#resting.length) {
      this.#resting = this.#resting.slice(this.#head);
      this.#head = 0;
    }
    return port;
  }
}
