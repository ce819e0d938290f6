/** The story of a simulation: what happened, when. Its hash tells whether two runs were the same. */
import { createHash } from 'node:crypto';

export class Story {
  readonly #hash = createHash('sha256');
  readonly #start: number;
  readonly #now: () => number;
  readonly #lines: string[] | undefined;
  #digest: string | undefined;

  /** `isKept`: the lines are wanted, not only their hash. */
  constructor(now: () => number, isKept: boolean) {
    this.#now = now;
    this.#start = now();
    this.#lines = isKept ? [] : undefined;
  }

  tell(line: string): void {
    const text = `${((this.#now() - this.#start) / 1000).toFixed(3).padStart(9)} ${line}`;
    this.#hash.update(text);
    this.#lines?.push(text);
  }

  get lines(): readonly string[] {
    return this.#lines ?? [];
  }

  get hash(): string {
    this.#digest ??= this.#hash.digest('hex');
    return this.#digest;
  }
}
