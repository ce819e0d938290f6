/** The addresses of trunks: the ranges that their calls come from, and what the names in their URIs resolve to. */
import { nextHopOf, type Trunk, TrunkRanges } from './trunk.ts';

export class TrunkAddresses {
  #ranges: TrunkRanges;
  /** The hosts that requests over the trunks go to. */
  #hosts: ReadonlySet<string | undefined>;
  /** The addresses that the host of each trunk's URI was last resolved to. */
  readonly #resolved = new Map<string, ReadonlySet<string>>();

  constructor(trunks: readonly Trunk[]) {
    this.#ranges = new TrunkRanges(trunks);
    this.#hosts = hostsOf(trunks);
  }

  /** Takes the trunks as they are after a change. */
  update(trunks: readonly Trunk[]): void {
    this.#ranges = new TrunkRanges(trunks);
    this.#hosts = hostsOf(trunks);
    for (const host of this.#resolved.keys()) if (!this.#hosts.has(host)) this.#resolved.delete(host);
  }

  /**
   * Remembers what the host of a trunk's URI was resolved to. None means that it could not be: what it was before
   * counts. The trunk may have been deleted since it was asked for.
   */
  learn(host: string, addresses: readonly string[]): void {
    if (addresses.length > 0 && this.#hosts.has(host)) this.#resolved.set(host, new Set(addresses));
  }

  /** The names of the trunks that calls from an address come from, the first one first. Empty where no range has it. */
  trunksOf(address: string): readonly string[] {
    return this.#ranges.trunksOf(address);
  }

  /** Whether an address is in the ranges of a trunk, or is one that the URI of a trunk names. */
  has(address: string): boolean {
    if (this.trunksOf(address).length > 0) return true;
    for (const resolved of this.#resolved.values()) if (resolved.has(address)) return true;
    return false;
  }
}

const hostsOf = (trunks: readonly Trunk[]): ReadonlySet<string | undefined> =>
  new Set(trunks.map((trunk) => nextHopOf(trunk)?.host));
