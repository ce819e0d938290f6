/** A binary heap by time: what is due next, in O(log n). Pure. */
export class DueHeap<T> {
  readonly #entries: { readonly at: number; readonly item: T }[] = [];

  /** The earliest time, or undefined when empty. */
  get earliest(): number | undefined {
    return this.#entries[0]?.at;
  }

  push(at: number, item: T): void {
    const entries = this.#entries;
    const entry = { at, item };
    let index = entries.push(entry) - 1;
    while (index > 0) {
      const up = (index - 1) >> 1;
      const parent = entries[up];
      if (parent === undefined || parent.at <= at) break;
      entries[index] = parent;
      index = up;
    }
    entries[index] = entry;
  }

  /** Takes the earliest item if it is due at `now`. */
  takeDue(now: number): T | undefined {
    const entries = this.#entries;
    const top = entries[0];
    if (top === undefined || top.at > now) return undefined;
    const last = entries.pop();
    if (last !== undefined && entries.length > 0) this.#sink(last);
    return top.item;
  }

  #sink(entry: { readonly at: number; readonly item: T }): void {
    const entries = this.#entries;
    let index = 0;
    for (;;) {
      let down = 2 * index + 1;
      const right = entries[down + 1];
      let child = entries[down];
      if (child !== undefined && right !== undefined && right.at < child.at) {
        child = right;
        down += 1;
      }
      if (child === undefined || child.at >= entry.at) break;
      entries[index] = child;
      index = down;
    }
    entries[index] = entry;
  }
}
