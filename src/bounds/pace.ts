import { PACE_ASKED_LATELY_MS } from '../limits.ts';

/**
 * Turns that follow each other evenly, so many a second of each name (`max_cps` of a trunk), and are given away a while
 * ahead.
 *
 * Whoever asks without a pause would have all that lie ahead, and a refused ask costs nothing. So each of several who
 * asked lately has no more than its share of them. One who asks alone may have all.
 */
export class Pace {
  /** The time of the last turn that was given away, by name, in milliseconds. */
  readonly #last = new Map<string, number>();
  /** The askers of each name, in the order in which they asked last. */
  readonly #askers = new Map<string, Map<string, Asker>>();
  readonly #waitMaxMs: number;

  constructor(waitMaxMs: number) {
    this.#waitMaxMs = waitMaxMs;
  }

  /**
   * Takes the next turn for `who`, at most `perSec` of which come in a second. The result is the wait until then, in
   * milliseconds: undefined when the turn is more than the longest wait away, or `who` has its share of the turns that
   * lie ahead. Then none is taken.
   */
  take(name: string, who: string, perSec: number, now: number): number | undefined {
    const askers = this.#lately(name, who, now);
    const turns = askers.get(who)?.turns ?? [];
    while ((turns[0] ?? Infinity) <= now) turns.shift();
    const ahead = Math.floor((this.#waitMaxMs / 1000) * perSec) + 1;
    if (askers.size > 1 && turns.length >= Math.ceil(ahead / askers.size)) return undefined;
    const at = Math.max(now, (this.#last.get(name) ?? -Infinity) + 1000 / perSec);
    if (at - now > this.#waitMaxMs) return undefined;
    this.#last.set(name, at);
    turns.push(at);
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
    for (const each of [this.#last, this.#askers]) for (const name of each.keys()) if (!names.has(name)) each.delete(name);
  }

  /** Returns those who asked lately, `who` with them from now on. */
  #lately(name: string, who: string, now: number): ReadonlyMap<string, Asker> {
    const askers = this.#askers.get(name) ?? new Map<string, Asker>();
    this.#askers.set(name, askers);
    const turns = askers.get(who)?.turns ?? [];
    askers.delete(who);
    askers.set(who, { at: now, turns });
    for (const [other, { at }] of askers) {
      if (now - at < PACE_ASKED_LATELY_MS) break;
      askers.delete(other);
    }
    return askers;
  }
}

interface Asker {
  /** When it asked last. */
  readonly at: number;
  /** The times of the turns that it has ahead. */
  readonly turns: number[];
}
