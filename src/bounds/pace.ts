/** Turns that follow each other evenly, so many a second of each name (`max_cps` of a trunk). */
export class Pace {
  /** The time of the last turn that was given away, by name, in milliseconds. */
  readonly #last = new Map<string, number>();
  readonly #waitMaxMs: number;

  constructor(waitMaxMs: number) {
    this.#waitMaxMs = waitMaxMs;
  }

  /**
   * Takes the next turn, at most `perSec` of which come in a second. The result is the wait until then, in
   * milliseconds: undefined when the turn is more than the longest wait away. Then none is taken.
   */
  take(name: string, perSec: number, now: number): number | undefined {
    const at = Math.max(now, (this.#last.get(name) ?? -Infinity) + 1000 / perSec);
    if (at - now > this.#waitMaxMs) return undefined;
    this.#last.set(name, at);
    return at - now;
  }

  /** How far ahead the last turn lies, in milliseconds: negative when it is over, undefined when there was none. */
  ahead(name: string, now: number): number | undefined {
    const last = this.#last.get(name);
    return last === undefined ? undefined : last - now;
  }

  /** A turn at that time was given away elsewhere: those to come follow it. */
  follow(name: string, at: number): void {
    this.#last.set(name, Math.max(at, this.#last.get(name) ?? -Infinity));
  }

  /** Forgets names that no longer exist. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.#last.keys()) if (!names.has(name)) this.#last.delete(name);
  }
}
