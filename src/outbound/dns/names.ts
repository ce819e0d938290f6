/** The addresses of names, as `/etc/hosts` and the name servers tell them. */
import { isIP } from 'node:net';
import { NAME_ADDRESSES_MAX } from '../../limits.ts';
import { addressesOf, type Family, isServerFailure } from './addresses.ts';
import { FollowedFile } from './followed-file.ts';
import { LookUpRests } from './look-up-rests.ts';
import { NameServers } from './name-servers.ts';

export interface FoundAddress {
  readonly address: string;
  readonly family: Family;
}

interface NamesOptions {
  readonly hosts: string;
  readonly resolvConf: Pick<NameServers, 'follow'>;
  readonly rests: LookUpRests;
}

export class Names {
  readonly #hosts: FollowedFile<ReadonlyMap<string, readonly FoundAddress[]>>;
  readonly #resolvConf: NamesOptions['resolvConf'];
  readonly #rests: LookUpRests;

  constructor({ hosts = '/etc/hosts', resolvConf = new NameServers(), rests = new LookUpRests() }: Partial<NamesOptions> = {}) {
    this.#hosts = new FollowedFile(hosts, hostsIn);
    this.#resolvConf = resolvConf;
    this.#rests = rests;
  }

  /**
   * Addresses of a name, NAME_ADDRESSES_MAX of each IP version at most, IPv4 first. `owner` is whoever gave it. Rejects
   * when there are none, and where the owner has asked for too many names with thousands of addresses.
   */
  async find(name: string, families: readonly Family[], owner: string): Promise<readonly FoundAddress[]> {
    const here = this.#withoutAsking(name).filter(({ family }) => families.includes(family));
    if (here.length > 0) return here;
    let failure: unknown;
    for (const candidate of this.#candidates(name)) {
      const found = await this.#ask(candidate, families, owner).catch((error: unknown) => {
        // A suffix whose zone is broken says nothing of the name without it; libraries of C go on as well.
        if (!isServerFailure(error)) throw error;
        failure ??= error;
        return [];
      });
      if (found.length > 0) return found;
    }
    throw failure ?? new Error(`${name} has no address`);
  }

  /** The addresses of what is an address itself, of a name in `/etc/hosts`, and of this machine (RFC 6761 §6.3). */
  #withoutAsking(name: string): readonly FoundAddress[] {
    if (isIP(name) !== 0) return [foundAt(name)];
    const plain = name.toLowerCase().replace(/\.$/, '');
    const found = this.#hosts.content.get(plain) ?? [];
    return found.length === 0 && /(^|\.)localhost$/.test(plain) ? [foundAt('127.0.0.1'), foundAt('::1')] : found;
  }

  /** The whole names that a name may stand for, in the order in which they are tried (resolv.conf(5)). */
  #candidates(name: string): readonly string[] {
    const { suffixes, dots } = this.#resolvConf.follow();
    if (name.endsWith('.')) return [name.slice(0, -1)];
    const longer = suffixes.map((suffix) => `${name}.${suffix}`);
    return name.split('.').length > dots ? [name, ...longer] : [...longer, name];
  }

  /** The addresses of a whole name. Empty where it has none; rejects where one of them may have been missed. */
  async #ask(name: string, families: readonly Family[], owner: string): Promise<readonly FoundAddress[]> {
    const outcomes = await this.#rests.run(
      owner,
      () => Promise.allSettled(families.map((family) => addressesOf(name, family))),
      (all) => all.reduce((sum, each) => sum + (each.status === 'fulfilled' ? each.value.length : 0), 0),
    );
    const found = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value.slice(0, NAME_ADDRESSES_MAX).map(foundAt) : [],
    );
    const missed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (found.length === 0 && missed !== undefined) throw missed.reason;
    return found;
  }
}

export const foundAt = (address: string): FoundAddress => ({ address, family: isIP(address) === 6 ? 6 : 4 });

/** The addresses of each name, in lower case (hosts(5)). Those with a zone are left out. */
function hostsIn(text: string): ReadonlyMap<string, readonly FoundAddress[]> {
  const found = new Map<string, FoundAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (isIP(address) === 0 || address.includes('%')) continue;
    for (const name of names) found.set(name.toLowerCase(), [...(found.get(name.toLowerCase()) ?? []), foundAt(address)]);
  }
  for (const addresses of found.values()) addresses.sort((a, b) => a.family - b.family);
  return found;
}
