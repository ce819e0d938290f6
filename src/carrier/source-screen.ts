/**
 * Decides whose SIP requests are worked on: those of trunks, of devices, and of our own loopback calls. Those of other
 * sources are refused with 403, a few a second, and told to the operator. A source that goes on is banned for a while.
 */
import type { Peer } from '../sip/flow.ts';
import type { SipRequest } from '../sip/message/message.ts';
import { RefusalLimit } from '../sip/refusal-limit.ts';
import type { Screened } from '../sip/user-agent.ts';
import { BanList, type BanTerms } from './ban-list.ts';
import type { Devices } from './device/devices.ts';
import { MALFORMED, Refusals, unknownSource } from './refusals.ts';
import type { Loopback } from './trunk/loopback.ts';
import type { TrunkAddresses } from './trunk/trunk-addresses.ts';
import type { TrunkCallers } from './trunk/trunk-callers.ts';

interface SourceScreenOptions {
  readonly ban: BanTerms;
  readonly addresses: Pick<TrunkAddresses, 'trunksOf' | 'has'>;
  readonly loopback: Pick<Loopback, 'trunkOf'>;
  /** The registrar of devices, which records its refusals here and so is made after this. */
  devices(): Pick<Devices, 'screen' | 'screenMoved' | 'isAt'>;
  /** Who calls over trunks, which records its refusals here as well. */
  callers(): Pick<TrunkCallers, 'screen'>;
  /** Whether a call with the far end at that address is up. */
  hasCallWith(address: string): boolean;
  now(): number;
}

export class SourceScreen {
  readonly #options: SourceScreenOptions;
  readonly #bans: BanList;
  readonly #limit = new RefusalLimit();
  /** The requests that were refused lately. Each that is recorded counts towards a ban of its source. */
  readonly refusals = new Refusals((request, source) => this.#onRefused(request, source));

  constructor(options: SourceScreenOptions) {
    this.#options = options;
    this.#bans = new BanList(options.ban);
  }

  /** Addresses that are banned now, and bans since the start. */
  get bans(): { readonly now: number; readonly total: number } {
    const now = this.#bans.count(this.#options.now(), (address) => this.isKnown(address));
    return { now, total: this.#bans.total };
  }

  /**
   * Decides about a request from outside of all calls. `status` is the one that it is refused with because it is
   * malformed, or undefined.
   */
  screen(request: SipRequest, source: Peer, status: number | undefined): Screened {
    const { addresses, loopback, devices, callers } = this.#options;
    const now = this.#options.now();
    if (loopback.trunkOf(request.headers) !== undefined) return 'accept';
    const ofDevice = status === undefined ? devices().screen(request, source) : undefined;
    if (ofDevice !== undefined) return ofDevice;
    if (addresses.trunksOf(source.host).length > 0) {
      if (status === undefined) return callers().screen(request, source);
      this.refusals.record(request, source, status, MALFORMED, now);
      return 'accept';
    }
    // A carrier that only takes our calls may ask whether we are there.
    if (status === undefined && request.method === 'OPTIONS' && addresses.has(source.host)) return 'accept';
    const ofMoved = status === undefined ? devices().screenMoved(request, source) : undefined;
    if (ofMoved !== undefined) return ofMoved;
    // It only acknowledges what was refused, and is never answered: it does not count a second time.
    if (request.method === 'ACK') return 'ignore';
    this.refusals.record(request, source, 403, unknownSource(source.host), now);
    return this.#limit.allow(source.host, now) ? 'refuse' : 'ignore';
  }

  /** Whether nothing is heard from an address: it was banned, and no trunk or device has come to be there since. */
  isBanned(address: string): boolean {
    return this.#bans.isBanned(address, this.#options.now()) && !this.isKnown(address);
  }

  /** Whether an address is that of a trunk or of a device. */
  isKnown(address: string): boolean {
    return this.#options.addresses.has(address) || this.#options.devices().isAt(address);
  }

  #onRefused(request: SipRequest, source: Peer): void {
    const now = this.#options.now();
    const mayBan = () => !this.isKnown(source.host) && !this.#options.hasCallWith(source.host);
    const sec = this.#bans.refused(source.host, source.transport === 'udp', now, mayBan);
    if (sec !== undefined) this.refusals.banned(request, source, sec, now);
  }
}
