/** A file of the system that is read again when it has changed, and looked at once in a while. */
import { readFileSync, statSync } from 'node:fs';
import { NAME_SERVERS_LOOK_MS } from '../../limits.ts';

export class FollowedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  /** Milliseconds of any clock that does not step. */
  readonly #now: () => number;
  #lookedAt = -Infinity;
  /** What tells one state of the file from another. */
  #state: string | undefined;
  #content: T;

  /** A file that is not there counts as an empty one. */
  constructor(path: string, parse: (text: string) => T, now: () => number = () => performance.now()) {
    this.#path = path;
    this.#parse = parse;
    this.#now = now;
    this.#content = parse('');
  }

  /** What is in it. While it is being written anew, or is gone, that is what was there before. */
  get content(): T {
    if (this.#now() - this.#lookedAt < NAME_SERVERS_LOOK_MS) return this.#content;
    this.#lookedAt = this.#now();
    const about = statSync(this.#path, { throwIfNoEntry: false });
    const state = about && `${about.ino} ${about.mtimeMs} ${about.size}`;
    if (state === undefined || state === this.#state) return this.#content;
    try {
      this.#content = this.#parse(readFileSync(this.#path, 'utf8'));
      this.#state = state;
    } catch {
      // It was there a moment ago, and is looked at again.
    }
    return this.#content;
  }
}
