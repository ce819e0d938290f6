/**
 * Timers, sorted by their time: a binary heap whose items know their place, so that a timer that is moved or cancelled
 * leaves nothing behind.
 */

export interface Timed {
  /** The place in the heap, -1 outside it. `Deadlines` sets it. */
  place: number;
  /** The time at which `due` is called, in milliseconds. `Deadlines` sets it. */
  at: number;
  due(now: number): void;
}

export class Deadlines {
  readonly #heap: Timed[] = [];

  /** The time of the next item, in milliseconds. Infinity when there is none. */
  next(): number {
    return this.#heap[0]?.at ?? Infinity;
  }

  /** Sets, moves or (Infinity) cancels an item's deadline. */
  set(item: Timed, at: number): void {
    if (item.place < 0) {
      if (at === Infinity) return;
      item.at = at;
      item.place = this.#heap.length;
      this.#heap.push(item);
      this.#up(item);
      return;
    }
    if (at === Infinity) {
      this.#remove(item);
      return;
    }
    const earlier = at < item.at;
    item.at = at;
    if (earlier) this.#up(item);
    else this.#down(item);
  }

  /** Calls every item that is due. An item that does not set its next deadline itself leaves the heap. */
  advance(now: number): void {
    for (let first = this.#heap[0]; first !== undefined && first.at <= now; first = this.#heap[0]) {
      this.#remove(first);
      first.due(now);
    }
  }

  get size(): number {
    return this.#heap.length;
  }

  #remove(item: Timed): void {
    const place = item.place;
    const last = this.#heap.pop();
    item.place = -1;
    if (last === undefined || last === item) return;
    this.#heap[place] = last;
    last.place = place;
    this.#up(last);
    this.#down(last);
  }

  #up(item: Timed): void {
    let place = item.place;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above];
      if (parent === undefined || parent.at <= item.at) break;
      this.#heap[place] = parent;
      parent.place = place;
      place = above;
    }
    this.#heap[place] = item;
    item.place = place;
  }

  #down(item: Timed): void {
    let place = item.place;
    for (;;) {
      let below = place * 2 + 1;
      let child = this.#heap[below];
      if (child === undefined) break;
      const other = this.#heap[below + 1];
      if (other !== undefined && other.at < child.at) {
        child = other;
        below++;
      }
      if (child.at >= item.at) break;
      this.#heap[place] = child;
      child.place = place;
      place = below;
    }
    this.#heap[place] = item;
    item.place = place;
  }
}
