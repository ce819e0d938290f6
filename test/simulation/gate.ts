/**
 * What a process does happens through its gate. While the machine stands still (a pause of its virtual machine, a disk
 * that hangs), the gate is shut: timers, answers and messages wait, and come in their order when it opens.
 */
import type { Scheduler } from './scheduler.ts';

/** The part of the scheduler that what runs in a process needs. */
export type Timers = Pick<Scheduler, 'now' | 'after'>;

export class Gate {
  readonly #scheduler: Scheduler;
  #waiting: (() => void)[] = [];
  #isShut = false;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  get isShut(): boolean {
    return this.#isShut;
  }

  readonly pass = (run: () => void): void => {
    if (this.#isShut) this.#waiting.push(run);
    else run();
  };

  shut(): void {
    this.#isShut = true;
  }

  open(): void {
    this.#isShut = false;
    // One after the other, each with the promises that it makes ready.
    for (const run of this.#waiting.splice(0)) this.#scheduler.after(0, () => this.pass(run));
  }

  /** Timers of the process, which fire only while the gate is open. */
  get timers(): Timers {
    const scheduler = this.#scheduler;
    return {
      get now() {
        return scheduler.now;
      },
      after: (ms, run) => scheduler.after(ms, () => this.pass(run)),
    };
  }
}
