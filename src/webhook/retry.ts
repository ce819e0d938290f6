/** When a failed delivery is tried again (contract §9). Pure. */
import type { Attempt } from '../database/event/attempt.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const FIRST_DELAYS_MS = [1, 2, 5, 10, 30].map((s) => s * SECOND).concat([1, 2, 5, 15, 30].map((min) => min * MINUTE));
const DAY = 24 * HOUR;
/** Hourly, as long as the attempt is still within 24 h of the first. */
const HOURLY = Math.floor((DAY - FIRST_DELAYS_MS.reduce((sum, delay) => sum + delay, 0)) / HOUR);

/** Every delay of the schedule, in milliseconds, before scale and jitter. */
export const RETRY_DELAYS_MS: readonly number[] = [...FIRST_DELAYS_MS, ...new Array<number>(HOURLY).fill(HOUR)];

/** The time for which an event is tried, from its first attempt, before scale and jitter; milliseconds. */
export const RETRY_SPAN_MS = RETRY_DELAYS_MS.reduce((sum, delay) => sum + delay, 0);

const JITTER = 0.1;
/** A receiver may ask for a longer wait, but not for one that outlives the schedule's longest step. */
const RETRY_AFTER_MAX_MS = HOUR;

/**
 * Milliseconds until the next attempt after `failures` failed ones (1 or more), or undefined when the event is to be
 * set aside.
 * `random` is in [0, 1); `retryAfterMs` is what the receiver asked for, taken where it is the longer.
 */
export function retryDelayMs(failures: number, scale: number, random: number, retryAfterMs = 0): number | undefined {
  const delay = RETRY_DELAYS_MS[failures - 1];
  if (delay === undefined) return undefined;
  const jittered = delay * scale * (1 - JITTER + 2 * JITTER * random);
  return Math.max(jittered, Math.min(retryAfterMs, RETRY_AFTER_MAX_MS));
}

/**
 * Whether the next attempt, in `waitMs`, would come later than 24 h (scaled) after the first one, because the receiver
 * has asked for longer waits or nobody was there to deliver. `elapsedMs`: since the first of `failures` failed
 * attempts, each of which may have taken `attemptMs`.
 */
export function isPastDay(failures: number, elapsedMs: number, waitMs: number, attemptMs: number, scale: number): boolean {
  const planned = RETRY_DELAYS_MS.slice(0, failures - 1).reduce((sum, delay) => sum + delay, 0) * scale;
  const isProlonged = elapsedMs > planned * (1 + JITTER) + failures * attemptMs;
  return isProlonged && elapsedMs + waitMs > DAY * scale;
}

/**
 * A `Retry-After` value (RFC 9110 §10.2.3), in milliseconds from `now`; 0 when absent, past or malformed. The caller
 * bounds it: a number has as many digits as the receiver likes.
 */
export function retryAfterMs(header: string | null, now: number): number {
  const text = header?.trim() ?? '';
  if (/^[0-9]+$/.test(text)) return Number(text) * SECOND;
  // An HTTP-date always names its day and ends in GMT; Date.parse alone would take "5" or "1e3" for one.
  const at = /^[A-Za-z]{3}.*GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}

/**
 * When the attempt after `last` is made, in milliseconds since the epoch; at once where there was none. An attempt that
 * lies ahead of `now` was made under another clock, of a node that runs ahead or before the machine's was set back: its
 * pause is kept, not its time.
 */
export function nextAttemptAt(last: Pick<Attempt, 'at' | 'retry_at'> | undefined, now: number): number {
  if (last === undefined || last.retry_at === null) return 0;
  return Math.min(last.retry_at, now + (last.retry_at - last.at));
}
