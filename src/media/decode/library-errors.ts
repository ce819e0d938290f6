/**
 * The decoder libraries tell every error on the console, which is no line of our log. mpg123-decoder then reads on,
 * without end where the error stays: counting them there is also the way out.
 */

const ERRORS_A_CALL_MAX = 16;
let errors = 0;

/** Runs a synchronous call of a library. Throws once it tells more errors than `ERRORS_A_CALL_MAX`. */
export function withBoundedErrors<T>(call: () => T): T {
  errors = 0;
  return call();
}

/** Takes the console away from the libraries of this thread. */
export function muteConsole(): void {
  console.error = () => {
    if (++errors > ERRORS_A_CALL_MAX) throw new Error('damaged beyond what can be decoded');
  };
}
