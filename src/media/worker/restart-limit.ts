/**
 * Decides how soon a lost worker may be replaced, so that a fault that comes back at once does not become a storm of
 * threads. Pure; times are in milliseconds.
 */
import { MEDIA_RESTART_LEAST_MS, MEDIA_RESTARTS_A_MINUTE_MAX } from '../../limits.ts';

const MINUTE_MS = 60_000;

export class RestartLimit {
  /** When the last starts happened, the newest last. */
  #starts: number[] = [];

  /** Milliseconds until a start is permitted; 0: now. */
  waitMs(now: number): number {
    this.#starts = this.#starts.filter((at) => now - at < MINUTE_MS);
    const last = this.#starts.at(-1);
    const sinceLast = last === undefined ? 0 : last + MEDIA_RESTART_LEAST_MS - now;
    const [oldest = now] = this.#starts;
    const sinceOldest = this.#starts.length < MEDIA_RESTARTS_A_MINUTE_MAX ? 0 : oldest + MINUTE_MS - now;
    return Math.max(0, sinceLast, sinceOldest);
  }

  /** A worker is started. */
  started(now: number): void {
    this.#starts.push(now);
  }
}
