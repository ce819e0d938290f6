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

/** The channels of a trunk that the nodes of a cluster share. */
export interface SharedChannels {
  /**
   * Asks to hold so many of `max`. Returns how many this node may hold; at least `current` or `channels`, whichever is
   * less.
   */
  hold(trunk: string, max: number, channels: number, current: number): Promise<number>;
  /** Forgets trunks that no longer exist. */
  keep(names: ReadonlySet<string>): void;
}

export class Channels {
  /** What this node may use of a trunk with `max_channels` that other nodes use too. */
  readonly #granted = new Map<string, number>();
  /** Calls that have asked for a channel and not taken it yet. */
  readonly #expected = new Map<string, number>();
  readonly #shared: SharedChannels | undefined;
  readonly #used = new Map<string, number>();
  readonly #lastUsed = new Map<string, number>();
  /** The last 24 hours with calls, by trunk, the latest last. */
  readonly #hours = new Map<string, Hour[]>();
  readonly #now: () => number;

  constructor(now: () => number, shared?: SharedChannels) {
    this.#shared = shared;
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
    this.#shared?.keep(names);
  }

  /** What this node holds of a trunk, for the node that keeps the count. */
  held(name: string): number {
    return this.#granted.get(name) ?? 0;
  }

  /** The same of every trunk that is shared, by name. */
  allHeld(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#granted);
  }

  /**
   * Asks the other nodes for a channel where they share the trunk's, before it is taken. Call what it returns when it
   * was taken or is not wanted any more.
   */
  async expect(trunk: Trunk): Promise<() => void> {
    const { name, maxChannels } = trunk;
    if (this.#shared === undefined || maxChannels === undefined) return () => {};
    this.#expected.set(name, (this.#expected.get(name) ?? 0) + 1);
    const needed = this.#needed(name);
    if (needed > this.held(name)) {
      const granted = await this.#shared.hold(name, maxChannels, needed, this.held(name));
      this.#grant(name, Math.max(this.held(name), granted));
    }
    return () => {
      const left = (this.#expected.get(name) ?? 1) - 1;
      if (left > 0) this.#expected.set(name, left);
      else this.#expected.delete(name);
      this.#giveBack(name, maxChannels);
    };
  }

  #needed(name: string): number {
    return (this.#used.get(name) ?? 0) + (this.#expected.get(name) ?? 0);
  }

  /** Gives back what is held and not used: another node may need it. */
  #giveBack(name: string, max: number): void {
    const needed = this.#needed(name);
    if (this.#shared === undefined || needed >= this.held(name)) return;
    this.#grant(name, needed);
    void this.#shared.hold(name, max, needed, needed);
  }

  #grant(name: string, channels: number): void {
    if (channels > 0) this.#granted.set(name, channels);
    else this.#granted.delete(name);
  }

  #limit(trunk: Trunk): number {
    const { name, maxChannels } = trunk;
    return this.#shared === undefined || maxChannels === undefined
      ? trunkChannels(trunk)
      : Math.min(maxChannels, this.held(name));
  }

  hasFree(trunk: Trunk): boolean {
    return (this.#used.get(trunk.name) ?? 0) < this.#limit(trunk);
  }

  /** Takes a channel. The result gives it back, once. Undefined when the trunk has no free one. */
  take(trunk: Trunk): (() => void) | undefined {
    return this.hasFree(trunk) ? this.#use(trunk) : undefined;
  }

  #use(trunk: Trunk): () => void {
    const { name } = trunk;
    this.#used.set(name, (this.#used.get(name) ?? 0) + 1);
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
      if (trunk.maxChannels !== undefined) this.#giveBack(name, trunk.maxChannels);
    };
  }

  /**
   * Takes the channel of a call that goes on here and has had one at another node: the carrier counts it once, so no
   * limit refuses it. What is over the limit while both nodes count it keeps new calls out. The result gives it back.
   */
  carryOn(trunk: Trunk): () => void {
    const { name, maxChannels } = trunk;
    if (this.#shared !== undefined && maxChannels !== undefined) {
      const held = this.held(name) + 1;
      this.#grant(name, held);
      void this.#shared.hold(name, maxChannels, held, held);
    }
    return this.#use(trunk);
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
