import { LIST_TURN_ITEMS } from '../limits.ts';

/** Resolves one turn of the event loop later. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Makes something of each item of a list, LIST_TURN_ITEMS of them in one turn of the event loop: 50,000 in one would
 * hold up everybody else for a tenth of a second. A short list is made at once.
 */
export async function inTurns<T, U>(items: readonly T[], make: (item: T) => U): Promise<U[]> {
  const made: U[] = [];
  for (const item of items) {
    if (made.length > 0 && made.length % LIST_TURN_ITEMS === 0) await nextTurn();
    made.push(make(item));
  }
  return made;
}
