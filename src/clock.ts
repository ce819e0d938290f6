/**
 * Time for everything at the edge. Pure code never imports this: it is handed `now`, in milliseconds since the epoch.
 */
export interface Clock {
  /** Milliseconds since the epoch. Never steps backwards. */
  now(): number;
  /**
   * Milliseconds since the epoch by the clock of the machine, which may be set at any time. It is for what another
   * machine compares with its own clock, and for nothing that is waited for.
   */
  wall(): number;
  /** Calls `fire` once, at `deadline` (ms since the epoch) or as soon after it as can be. Returns what cancels it. */
  at(deadline: number, fire: () => void): () => void;
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** How fast the time may be brought nearer to the machine's: half a millisecond a second, as by adjtime(3). */
const SLEW_MAX = 0.0005;

/**
 * A time that runs with the monotonic clock and drifts towards the wall clock. So a wall clock that is set ends no
 * call, and timestamps come right all the same: by 1.8 s an hour. Pure; all times are in milliseconds.
 */
export class SlewedTime {
  readonly #monotonicAtStart: number;
  readonly #wallAtStart: number;
  #passed = 0;
  /** The lead of the time over the monotonic clock. It is kept by itself, because it grows by nanoseconds. */
  #slewed = 0;

  constructor(monotonic: number, wall: number) {
    this.#monotonicAtStart = monotonic;
    this.#wallAtStart = wall;
  }

  /** The time, which never steps backwards, when the two clocks show this. */
  at(monotonic: number, wall: number): number {
    const passed = Math.max(this.#passed, monotonic - this.#monotonicAtStart);
    const most = (passed - this.#passed) * SLEW_MAX;
    this.#passed = passed;
    this.#slewed += Math.max(-most, Math.min(most, wall - this.#wallAtStart - passed - this.#slewed));
    return this.#wallAtStart + (passed + this.#slewed);
  }
}

/** The machine's clock: the wall time at start, advanced by the monotonic clock and slewed towards the wall time. */
export function systemClock(): Clock {
  const time = new SlewedTime(performance.now(), performance.timeOrigin + performance.now());
  const now = () => time.at(performance.now(), Date.now());
  return {
    now,
    wall: () => Date.now(),
    at(deadline, fire) {
      const arm = () => setTimeout(due, Math.min(Math.max(0, Math.ceil(deadline - now())), LONGEST_TIMER_MS));
      // The time may run slower than the timer.
      const due = () => {
        if (now() < deadline) timer = arm();
        else fire();
      };
      let timer = arm();
      return () => clearTimeout(timer);
    },
  };
}

/** Resolves `ms` milliseconds from now, by the clock. */
export const sleep = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => {
    clock.at(clock.now() + ms, resolve);
  });

/** RFC 3339 UTC with three digits and `Z`, as every timestamp of the interface. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}

/** Formats like `timestamp`, at one-second resolution: `created_at` of a Session (interface, Resources). */
export function timestampSeconds(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString();
}
