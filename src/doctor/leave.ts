/** How a program of the doctor ends. */

/**
 * Ends the process once stdout has taken what was written: what a pipe has no room for, from 64 kB on, would be lost
 * with the process. A reader that has read enough gets no more.
 */
export async function leave(code: number): Promise<never> {
  process.stdout.on('error', () => {});
  await new Promise<void>((resolve) => process.stdout.end(() => resolve()));
  process.exit(code);
}
