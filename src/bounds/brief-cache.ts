import { detached } from './detached.ts';

export interface BriefCacheOptions<V> {
  /**
   * Looks the answer up. Nothing is kept of undefined, so that what is not there is found once it is, nor of a
   * rejection, which goes to whoever waits.
   */
  readonly load: (key: string) => Promise<V>;
  /** How long an answer is kept, in milliseconds of `now`. */
  readonly keptMs: number;
  /** So many answers are kept; the next one begins anew. */
  readonly most: number;
  /** Milliseconds. */
  readonly now: () => number;
}

/**
 * Answers that are kept for a short time, so that what is asked again and again costs no query. Those who ask for one
 * key at the same time share one look-up. What is forgotten while it is looked up goes to those who wait for it, who
 * asked before the change, and is not kept.
 */
export class BriefCache<V> {
  readonly #options: BriefCacheOptions<V>;
  readonly #kept = new Map<string, { readonly answer: V; readonly until: number }>();
  readonly #looking = new Map<string, Promise<V>>();

  constructor(options: BriefCacheOptions<V>) {
    this.#options = options;
  }

  /** The answer that is kept, without waiting; undefined where it has to be looked up. */
  known(key: string): V | undefined {
    const found = this.#kept.get(key);
    return found !== undefined && found.until > this.#options.now() ? found.answer : undefined;
  }

  /** The answer that is kept, else the one that `load` gives. */
  async get(key: string): Promise<V> {
    return this.known(key) ?? (await (this.#looking.get(key) ?? this.#lookUp(key)));
  }

  forget(key: string): void {
    this.#kept.delete(key);
    this.#looking.delete(key);
  }

  forgetAll(): void {
    this.#kept.clear();
    this.#looking.clear();
  }

  #lookUp(key: string): Promise<V> {
    const { load, keptMs, most, now } = this.#options;
    const isLast = () => this.#looking.get(key) === answer;
    const answer: Promise<V> = load(key)
      .then((found) => {
        if (found !== undefined && isLast()) {
          if (this.#kept.size >= most) this.#kept.clear();
          // The key may be a part of something large, as of a message that came in.
          this.#kept.set(detached(key), { answer: found, until: now() + keptMs });
        }
        return found;
      })
      .finally(() => {
        if (isLast()) this.#looking.delete(key);
      });
    this.#looking.set(key, answer);
    return answer;
  }
}
