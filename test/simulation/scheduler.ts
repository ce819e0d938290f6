/**
 * The one scheduler of a simulation. Whatever happens is an event at a virtual time. After each event every promise
 * that is ready has run, so that nothing depends on the machine: the same seed gives the same story.
 */
import { drainMicrotasks } from 'bun:jsc';
import type { Clock } from '../../src/clock.ts';

interface Due {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

/** Events at one moment, past which the product is taken to spin. */
const STANDING_MAX = 3_000;

const isBefore = (a: Due, b: Due): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

export class Scheduler {
  readonly #heap: Due[] = [];
  #now: number;
  #order = 0;
  #steps = 0;
  /** Events since the time moved on. */
  #standing = 0;

  constructor(start: number) {
    this.#now = start;
  }

  /** Virtual milliseconds since the epoch. */
  get now(): number {
    return this.#now;
  }

  get steps(): number {
    return this.#steps;
  }

  /** Runs `run` at that time, or now if it is past. Returns what cancels it. */
  at(time: number, run: () => void): () => void {
    if (Number.isNaN(time)) throw new Error('a time that is no number');
    const due: Due = { at: Math.max(time, this.#now), order: this.#order++, run, isCancelled: false };
    this.#push(due);
    return () => {
      due.isCancelled = true;
    };
  }

  after(ms: number, run: () => void): () => void {
    return this.at(this.#now + ms, run);
  }

  /** A clock whose timers fire only while `isAlive`, through `pass`: the timers of a process end with it. */
  clock(isAlive: () => boolean, skewMs = 0, pass = (run: () => void) => run()): Clock {
    return {
      now: () => this.#now + skewMs,
      wall: () => this.#now + skewMs,
      at: (deadline, fire) => {
        let isCancelled = false;
        const run = () => {
          if (isAlive() && !isCancelled) fire();
        };
        const cancel = this.at(deadline - skewMs, () => pass(run));
        return () => {
          isCancelled = true;
          cancel();
        };
      },
    };
  }

  /** Runs events until the time comes, or `isOver` says so after one. */
  runUntil(end: number, isOver: () => boolean): void {
    drainMicrotasks();
    for (let next = this.#heap[0]; next !== undefined && next.at <= end; next = this.#heap[0]) {
      this.#pop();
      if (next.isCancelled) continue;
      this.#standing = next.at > this.#now ? 0 : this.#standing + 1;
      if (this.#standing > STANDING_MAX) throw new Error('time stands still: something falls due again and again at once');
      this.#now = next.at;
      this.#steps += 1;
      next.run();
      drainMicrotasks();
      if (isOver()) return;
    }
    this.#now = Math.max(this.#now, end);
  }

  #push(due: Due): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(due);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(due, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = due;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = heap[at * 2 + 1];
      const right = heap[at * 2 + 2];
      if (left === undefined) break;
      const isRight = right !== undefined && isBefore(right, left);
      const least = isRight ? right : left;
      if (!isBefore(least, last)) break;
      heap[at] = least;
      at = at * 2 + (isRight ? 2 : 1);
    }
    heap[at] = last;
  }
}
