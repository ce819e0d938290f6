/** Counts the calls of each trunk, in both directions. */
import { type Trunk, trunkChannels } from './trunk.ts';

export class Channels {
  readonly #used = new Map<string, number>();
  readonly #lastUsed = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The time at which the trunk last began or ended a call, in milliseconds. Now while it carries one, 0 when it never did. */
  lastUsed({ name }: Trunk): number {
    return this.#used.has(name) ? this.#now() : (this.#lastUsed.get(name) ?? 0);
  }

  /** Forgets trunks that no longer exist. */
  keep(trunks: readonly Trunk[]): void {
    for (const name of this.#lastUsed.keys()) if (!trunks.some((trunk) => trunk.name === name)) this.#lastUsed.delete(name);
  }

  /** Takes a channel. The result gives it back, once. Undefined when the trunk has no free one. */
  take(trunk: Trunk): (() => void) | undefined {
    const { name } = trunk;
    const used = this.#used.get(name) ?? 0;
    if (used >= trunkChannels(trunk)) return undefined;
    this.#used.set(name, used + 1);
    this.#lastUsed.set(name, this.#now());
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#lastUsed.set(name, this.#now());
      const left = (this.#used.get(name) ?? 1) - 1;
      if (left > 0) this.#used.set(name, left);
      else this.#used.delete(name);
    };
  }
}
