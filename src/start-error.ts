/** What keeps the platform from starting, said in one line that names the setting. */

/** `SETTING: what (CODE)`. The code is that of the system, or the message of an error without one. */
export function startError(setting: string, what: string, error: unknown): Error {
  const reason = !(error instanceof Error) ? String(error) : 'code' in error ? String(error.code) : error.message;
  return new Error(`${setting}: ${what} (${reason})`, { cause: error });
}
