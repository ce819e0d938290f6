/**
 * Addresses that are not listened to for a while, because too many of their requests were refused: scanners. A ban that
 * datagrams led to is short, since anyone can write any address into a datagram.
 */
import { SIP_BAN_UDP_MAX_SEC, SIP_BANS_MAX, SIP_REFUSED_SOURCES_MAX } from '../limits.ts';

interface Refused {
  count: number;
  /** When the minute is over, in milliseconds. */
  until: number;
}

export interface BanTerms {
  /** Refusals a minute that lead to a ban; 0 switches bans off. */
  readonly after: number;
  /** How long a ban lasts, in seconds. */
  readonly sec: number;
}

export class BanList {
  readonly #terms: BanTerms;
  /** The sources that were refused lately, the one that began longest ago first. */
  readonly #refused = new Map<string, Refused>();
  /** When each ban is over, in milliseconds. */
  readonly #bans = new Map<string, number>();
  #total = 0;

  constructor(terms: BanTerms) {
    this.#terms = terms;
  }

  /** Bans since the start. */
  get total(): number {
    return this.#total;
  }

  /** The addresses that are banned. One that `isKnown` is heard all the same. */
  count(now: number, isKnown: (address: string) => boolean): number {
    let count = 0;
    for (const [address, until] of this.#bans) if (until > now && !isKnown(address)) count++;
    return count;
  }

  /** Whether nothing is heard from an address now. */
  isBanned(address: string, now: number): boolean {
    if (this.#bans.size === 0) return false;
    const until = this.#bans.get(address);
    if (until === undefined) return false;
    if (until > now) return true;
    this.#bans.delete(address);
    return false;
  }

  /**
   * Counts a refused request. Returns the seconds of the ban that it leads to, or undefined. `mayBan` is asked only
   * then: it tells whether the address is nobody that we know.
   */
  refused(address: string, isDatagram: boolean, now: number, mayBan: () => boolean): number | undefined {
    const { after, sec } = this.#terms;
    if (after === 0 || sec === 0) return undefined;
    const before = this.#refused.get(address);
    const refused = before !== undefined && before.until > now ? before : { count: 0, until: now + 60_000 };
    refused.count++;
    this.#refused.delete(address);
    this.#refused.set(address, refused);
    dropOldest(this.#refused, SIP_REFUSED_SOURCES_MAX);
    if (refused.count < after) return undefined;
    this.#refused.delete(address);
    if (!mayBan()) return undefined;
    const lasts = isDatagram ? Math.min(sec, SIP_BAN_UDP_MAX_SEC) : sec;
    this.#bans.delete(address);
    this.#bans.set(address, now + lasts * 1000);
    dropOldest(this.#bans, SIP_BANS_MAX);
    this.#total++;
    return lasts;
  }
}

function dropOldest(map: Map<string, unknown>, most: number): void {
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}
