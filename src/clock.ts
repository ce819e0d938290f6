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

/**
 * The machine's clock: wall time at start, advanced by the monotonic clock, so that a stepped wall clock ends no call.
 */
export function systemClock(): Clock {
  const now = () => performance.timeOrigin + performance.now();
  return {
    now,
    wall: () => Date.now(),
    at(deadline, fire) {
      const wait = Math.min(Math.max(0, Math.ceil(deadline - now())), LONGEST_TIMER_MS);
      const timer = setTimeout(fire, wait);
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
