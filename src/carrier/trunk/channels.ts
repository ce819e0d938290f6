/** Counts the calls of each trunk, in both directions: those that are up, and those of the last day. */
import { CHANNEL_ASKED_MAX } from '../../limits.ts';
import { type Trunk, trunkChannels } from './trunk.ts';

const HOUR_MS = 3_600_000;
const HOURS = 24;

interface Hour {
  /** Hours since the epoch. */
  readonly hour: number;
  calls: number;
  failures: number;
}

/** One trunk's calls at this node. */
interface Use {
  /** Calls that are up. */
  used: number;
  /** Calls that have asked for a channel and not taken it yet. */
  expected: number;
  /** The channels that this node may use of a trunk with `max_channels` that other nodes use too. */
  granted: number;
  /** How often the other nodes were told of channels that this one has given back, or has brought with a call. */
  told: number;
  /** When a call last ended, in milliseconds. */
  lastUsed: number;
  /** The last 24 hours with calls, the latest last. */
  hours: readonly Hour[];
}

const UNUSED: Readonly<Use> = { used: 0, expected: 0, granted: 0, told: 0, lastUsed: 0, hours: [] };

/** Gives a channel back. `wasCall` is false where no call was made over it, so that it counts as none. */
type GiveBack = (wasCall?: boolean) => void;

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
  readonly #trunks = new Map<string, Use>();
  readonly #shared: SharedChannels | undefined;
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
    const { used, lastUsed } = this.#trunks.get(name) ?? UNUSED;
    return used > 0 ? this.#now() : lastUsed;
  }

  /** Channels in use, and calls and failures of the last 24 hours. */
  counts(name: string): { readonly channelsInUse: number; readonly calls24h: number; readonly failures24h: number } {
    const since = Math.floor(this.#now() / HOUR_MS) - HOURS;
    const { used, hours: kept } = this.#trunks.get(name) ?? UNUSED;
    const hours = kept.filter(({ hour }) => hour > since);
    return {
      channelsInUse: used,
      calls24h: hours.reduce((sum, { calls }) => sum + calls, 0),
      failures24h: hours.reduce((sum, { failures }) => sum + failures, 0),
    };
  }

  /** A call failed because of the trunk. */
  failed(name: string): void {
    this.#hour(name).failures++;
  }

  /** Forgets trunks that no longer exist, once their last call is over. */
  keep(names: ReadonlySet<string>): void {
    for (const [name, { used, expected, granted }] of this.#trunks)
      if (!names.has(name) && used + expected + granted === 0) this.#trunks.delete(name);
    this.#shared?.keep(names);
  }

  /** What this node holds of a trunk, for the node that keeps the count. */
  held(name: string): number {
    const use = this.#trunks.get(name);
    return use === undefined ? 0 : this.#heldBy(use);
  }

  /** Calls that began before the trunk had `max_channels` hold their channels too, and give them back as they end. */
  #heldBy(use: Use): number {
    use.granted = Math.max(use.granted, use.used);
    return use.granted;
  }

  /** The same of every trunk that is shared, by name. */
  allHeld(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#trunks].flatMap(([name, { granted }]) => (granted > 0 ? [[name, granted]] : [])));
  }

  /**
   * Asks the other nodes for a channel where they share the trunk's, before it is taken. Call what it returns when it
   * was taken or is not wanted any more.
   */
  async expect(trunk: Trunk): Promise<() => void> {
    const { name, maxChannels } = trunk;
    if (this.#shared === undefined || maxChannels === undefined) return () => {};
    const use = this.#use(name);
    use.expected++;
    for (let asked = 0; asked < CHANNEL_ASKED_MAX && use.used + use.expected > use.granted; asked++) {
      const { told } = use;
      const granted = await this.#shared.hold(name, maxChannels, use.used + use.expected, this.#heldBy(use));
      // An answer is out of date where they were told of other channels meanwhile: what it grants is not known to them.
      if (told !== use.told) continue;
      use.granted = Math.max(use.granted, granted);
      break;
    }
    return () => {
      use.expected--;
      this.#giveBack(trunk, use);
    };
  }

  /** Gives back what is held and not used: another node may need it. */
  #giveBack({ name, maxChannels }: Trunk, use: Use): void {
    const needed = use.used + use.expected;
    if (this.#shared === undefined || needed >= use.granted) return;
    use.granted = needed;
    use.told++;
    void this.#shared.hold(name, maxChannels ?? needed, needed, needed);
  }

  hasFree(trunk: Trunk): boolean {
    const { name, maxChannels } = trunk;
    const { used, granted } = this.#trunks.get(name) ?? UNUSED;
    return (
      used < (this.#shared === undefined || maxChannels === undefined ? trunkChannels(trunk) : Math.min(maxChannels, granted))
    );
  }

  /** Takes a channel. The result gives it back, once. Undefined when the trunk has no free one. */
  take(trunk: Trunk): GiveBack | undefined {
    return this.hasFree(trunk) ? this.#begin(trunk) : undefined;
  }

  #begin(trunk: Trunk): GiveBack {
    const use = this.#use(trunk.name);
    use.used++;
    const hour = this.#hour(trunk.name);
    hour.calls++;
    let given = false;
    return (wasCall = true) => {
      if (given) return;
      given = true;
      if (!wasCall) hour.calls--;
      use.used--;
      use.lastUsed = this.#now();
      this.#giveBack(trunk, use);
    };
  }

  /**
   * Takes the channel of a call that goes on here and has had one at another node: the carrier counts it once, so no
   * limit refuses it. What is over the limit while both nodes count it keeps new calls out. The result gives it back.
   */
  carryOn(trunk: Trunk): () => void {
    const { name, maxChannels } = trunk;
    if (this.#shared !== undefined && maxChannels !== undefined) {
      const use = this.#use(name);
      const held = this.#heldBy(use) + 1;
      use.granted = held;
      use.told++;
      void this.#shared.hold(name, maxChannels, held, held);
    }
    return this.#begin(trunk);
  }

  #use(name: string): Use {
    let use = this.#trunks.get(name);
    if (use === undefined) {
      use = { ...UNUSED };
      this.#trunks.set(name, use);
    }
    return use;
  }

  #hour(name: string): Hour {
    const use = this.#use(name);
    const now = Math.floor(this.#now() / HOUR_MS);
    const last = use.hours.at(-1);
    if (last?.hour === now) return last;
    const hour: Hour = { hour: now, calls: 0, failures: 0 };
    use.hours = [...use.hours, hour].slice(-HOURS);
    return hour;
  }
}
