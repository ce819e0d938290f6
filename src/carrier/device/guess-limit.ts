/** Slows the guessing of passwords: a source that was wrong too often in a minute is not listened to for a while. */
import { SIP_GUESSES_A_MINUTE } from '../../limits.ts';

interface Guesses {
  count: number;
  /** When the minute is over, in milliseconds. */
  until: number;
}

export class GuessLimit {
  /** The sources that were wrong lately, the one that began longest ago first. */
  readonly #sources = new Map<string, Guesses>();
  readonly #most: number;

  /** Remembers so many sources. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Counts a wrong password. */
  count(source: string, now: number): void {
    const before = this.#sources.get(source);
    if (before !== undefined && before.until > now) {
      before.count++;
      return;
    }
    this.#sources.delete(source);
    this.#sources.set(source, { count: 1, until: now + 60_000 });
    const [oldest] = this.#sources.keys();
    if (this.#sources.size > this.#most && oldest !== undefined) this.#sources.delete(oldest);
  }

  /** Whether a source has used up its guesses of this minute. */
  isOver(source: string, now: number): boolean {
    const guesses = this.#sources.get(source);
    return guesses !== undefined && guesses.until > now && guesses.count >= SIP_GUESSES_A_MINUTE;
  }
}
