/**
 * Slows down who guesses the operator token: after ten wrong ones from an address within a minute, further wrong ones
 * are 429. A right token always passes, so that nobody can lock the operator out. Addresses of one IPv6 /64 count as
 * one.
 */

import { OPERATOR_GUESS_ADDRESSES_MAX, OPERATOR_GUESS_WINDOW_MS, OPERATOR_GUESSES_MAX } from '../limits.ts';
import { sourceOf } from '../sip/source.ts';

interface Window {
  readonly since: number;
  count: number;
}

export class WrongTokens {
  /** Windows in the order in which they began. */
  readonly #windows = new Map<string, Window>();

  /**
   * Counts a wrong token at `now` (ms). Returns the seconds to wait when the address has had its guesses, or undefined.
   */
  count(address: string, now: number): number | undefined {
    const source = sourceOf(address);
    const known = this.#windows.get(source);
    const window = known !== undefined && now - known.since < OPERATOR_GUESS_WINDOW_MS ? known : { since: now, count: 0 };
    window.count += 1;
    if (window !== known) {
      this.#windows.delete(source);
      const oldest = this.#windows.keys().next();
      if (this.#windows.size >= OPERATOR_GUESS_ADDRESSES_MAX && oldest.done !== true) this.#windows.delete(oldest.value);
      this.#windows.set(source, window);
    }
    if (window.count <= OPERATOR_GUESSES_MAX) return undefined;
    return Math.max(1, Math.ceil((window.since + OPERATOR_GUESS_WINDOW_MS - now) / 1000));
  }
}
