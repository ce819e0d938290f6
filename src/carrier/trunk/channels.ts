/** Counts the calls of each trunk, in both directions: those that are up, and those of the last day. */
import { type Trunk, trunkChannels } from './trunk.ts';

const HOUR_MS = 3_600_000;
const HOURS = 24;

interface Hour {
  /** Hours since the epoch. */
  readonly hour: number;
  calls: number;
  failures: number;
}

export class Channels {
  readonly #used = new Map<string, number>();
  readonly #lastUsed = new Map<string, number>();
  /** The last 24 hours with calls, by trunk, the latest last. */
  readonly #hours = new Map<string, Hour[]>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * The time at which the trunk last began or ended a call, in milliseconds. Now while it carries one, 0 when it never
   * did.
   */
  lastUsed({ name }: Trunk): number {
    return this.#used.has(name) ? this.#now() : (this.#lastUsed.get(name) ?? 0);
  }

  /** Channels in use, and calls and failures of the last 24 hours. */
  counts(name: string): { readonly channelsInUse: number; readonly calls24h: number; readonly failures24h: number } {
    const since = Math.floor(this.#now() / HOUR_MS) - HOURS;
    const hours = (this.#hours.get(name) ?? []).filter(({ hour }) => hour > since);
    return {
      channelsInUse: this.#used.get(name) ?? 0,
      calls24h: hours.reduce((sum, { calls }) => sum + calls, 0),
      failures24h: hours.reduce((sum, { failures }) => sum + failures, 0),
    };
  }

  /** A call failed because of the trunk. */
  failed(name: string): void {
    this.#hour(name).failures++;
  }

  /** Forgets trunks that no longer exist. */
  keep(names: ReadonlySet<string>): void {
    for (const each of [this.#lastUsed, this.#hours]) for (const name of each.keys()) if (!names.has(name)) each.delete(name);
  }

  /** Takes a channel. The result gives it back, once. Undefined when the trunk has no free one. */
  take(trunk: Trunk): (() => void) | undefined {
    const { name } = trunk;
    const used = this.#used.get(name) ?? 0;
    if (used >= trunkChannels(trunk)) return undefined;
    this.#used.set(name, used + 1);
    this.#lastUsed.set(name, this.#now());
    this.#hour(name).calls++;
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

  #hour(name: string): Hour {
    const now = Math.floor(this.#now() / HOUR_MS);
    const hours = this.#hours.get(name) ?? [];
    const last = hours.at(-1);
    if (last?.hour === now) return last;
    const hour: Hour = { hour: now, calls: 0, failures: 0 };
    this.#hours.set(name, [...hours, hour].slice(-HOURS));
    return hour;
  }
}
