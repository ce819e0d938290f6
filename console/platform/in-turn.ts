/** Requests that are made again and again, as news come: one at a time of each. */

/**
 * Asks for something by its key. Whatever is asked for while its answer is awaited is asked for once more after that:
 * slow answers do not pile up, and none comes in after a later one.
 */
export function oneAtATime(load: (key: string) => Promise<void>): (key: string) => Promise<void> {
  /** What is asked for, and whether it was asked for again meanwhile. */
  const asked = new Map<string, boolean>();
  const turn = async (key: string): Promise<void> => {
    do {
      asked.set(key, false);
      await load(key);
    } while (asked.get(key) === true);
  };
  return async (key) => {
    if (asked.has(key)) {
      asked.set(key, true);
      return;
    }
    await turn(key).finally(() => asked.delete(key));
  };
}
