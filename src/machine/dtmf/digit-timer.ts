/**
 * The timer of the next key of a collection. It stands still while a key is down, because a key counts at its release:
 *
 *   not begun ─start→ runs ─hold→ stands still ─resume→ runs, with what was left
 */
export interface DigitTimer {
  /** When the next key is too late, ms since the epoch; undefined while the timer stands still or has not begun. */
  readonly digitDue: number | undefined;
  /**
   * A key is down, and so much is left of the timer, in milliseconds; `leftMs` is undefined where it has not begun.
   * It is undefined as a whole while no key is down.
   */
  readonly held: { readonly leftMs: number | undefined } | undefined;
}

/** A timer that has not begun. */
export const NO_TIMER: DigitTimer = { digitDue: undefined, held: undefined };

/** Begins anew. While a key is down, the whole of it is left. */
export const startTimer = ({ held }: DigitTimer, ms: number, now: number): DigitTimer =>
  held === undefined ? { digitDue: now + ms, held } : { digitDue: undefined, held: { leftMs: ms } };

/** Takes it back to where it has not begun. */
export const clearTimer = ({ held }: DigitTimer): DigitTimer => ({
  digitDue: undefined,
  held: held && { leftMs: undefined },
});

/** A key went down. */
export const holdTimer = ({ digitDue, held }: DigitTimer, now: number): DigitTimer =>
  held === undefined
    ? { digitDue: undefined, held: { leftMs: digitDue === undefined ? undefined : Math.max(0, digitDue - now) } }
    : { digitDue, held };

/** No key is down any more. */
export const resumeTimer = ({ digitDue, held }: DigitTimer, now: number): DigitTimer =>
  held === undefined
    ? { digitDue, held }
    : { digitDue: held.leftMs === undefined ? undefined : now + held.leftMs, held: undefined };
