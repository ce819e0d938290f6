/**
 * The jobs that applications have for one thread. Each that has some is given the same time: next is the first job of
 * the application that has had the least, whoever asked first. One that comes anew begins with the time of the one
 * whose turn it is, so that nobody saves time up (start-time fair queueing). Pure.
 */
export class TimeShares<T> {
  /** What waits, in order, by whose it is. */
  readonly #waiting = new Map<string, Set<T>>();
  /** The time that each has had, in ms, for as long as anybody waits. */
  readonly #had = new Map<string, number>();
  /** The time that the one had whose job was taken last. */
  #now = 0;

  /** Tells whether nothing waits. */
  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Puts a job behind the others of its owner. */
  add(owner: string, job: T): void {
    const own = this.#waiting.get(owner) ?? new Set<T>();
    if (own.size === 0) this.#had.set(owner, Math.max(this.#now, this.#had.get(owner) ?? 0));
    own.add(job);
    this.#waiting.set(owner, own);
  }

  /** Takes the next job. Undefined: nothing waits. */
  take(): T | undefined {
    let next: string | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const owner of this.#waiting.keys()) {
      const had = this.#had.get(owner) ?? 0;
      if (had < least) [next, least] = [owner, had];
    }
    const own = next === undefined ? undefined : this.#waiting.get(next);
    const [job] = own ?? [];
    if (next === undefined || own === undefined || job === undefined) return undefined;
    own.delete(job);
    if (own.size === 0) this.#waiting.delete(next);
    this.#now = least;
    return job;
  }

  /** Notes how long a job of the owner took, in ms. What each has had is forgotten when nobody waits. */
  spend(owner: string, ms: number): void {
    if (this.isEmpty) {
      this.#had.clear();
      this.#now = 0;
    } else this.#had.set(owner, (this.#had.get(owner) ?? this.#now) + ms);
  }
}
