import type { Clock } from '../../src/clock.ts';

/** A clock that stands still until it is told: `advance` fires what falls due on the way, in order. */
export class VirtualClock implements Clock {
  #now: number;
  #timers: { at: number; order: number; fire: () => void }[] = [];
  #order = 0;

  constructor(start = Date.parse('2026-01-01T00:00:00Z')) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#now;
  }

  at(deadline: number, fire: () => void): () => void {
    const timer = { at: deadline, order: this.#order++, fire };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  get armed(): number {
    return this.#timers.length;
  }

  /** Moves on by `ms`, letting promises settle after each timer. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now = Math.max(this.#now, next.at);
      next.fire();
      await settle();
    }
    this.#now = end;
    await settle();
  }
}

/** Lets every promise that is ready run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}
