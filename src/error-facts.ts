/** What is told of anything that was thrown: its code, its message, its stack. */

/** The code of an error of the system or of a library, such as `ENOENT`. Undefined where there is none. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The text with its stack, where it has one. */
export const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));
