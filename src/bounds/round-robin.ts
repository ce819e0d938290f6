/** A round-robin queue: whoever has things that wait has its turn with the first of them, and is then the last. */
export class RoundRobin<T> {
  /** What waits, in order, by whose it is. The order of the owners is that of their turns. */
  readonly #waiting = new Map<string, Set<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  of(owner: string): number {
    return this.#waiting.get(owner)?.size ?? 0;
  }

  /** Puts a thing behind the others of its owner. One that waits already keeps its place. */
  add(owner: string, thing: T): void {
    const own = this.#waiting.get(owner) ?? new Set<T>();
    if (own.has(thing)) return;
    own.add(thing);
    this.#waiting.set(owner, own);
    this.#size += 1;
  }

  has(owner: string, thing: T): boolean {
    return this.#waiting.get(owner)?.has(thing) ?? false;
  }

  /** Takes a thing out, wherever it is. No error where it does not wait. */
  delete(owner: string, thing: T): void {
    const own = this.#waiting.get(owner);
    if (own === undefined || !own.delete(thing)) return;
    this.#size -= 1;
    if (own.size === 0) this.#waiting.delete(owner);
  }

  /** Takes the next thing, passing over owners that may not have a turn now. Undefined: there is none. */
  take(may: (owner: string) => boolean = () => true): T | undefined {
    for (const [owner, own] of this.#waiting) {
      if (!may(owner)) continue;
      const [thing] = own;
      if (thing === undefined) continue;
      this.delete(owner, thing);
      if (own.size > 0) {
        this.#waiting.delete(owner);
        this.#waiting.set(owner, own);
      }
      return thing;
    }
    return undefined;
  }
}
