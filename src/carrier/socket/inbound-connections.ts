/**
 * The count of the stream connections that others have opened to us. A source (an IPv4 address or an IPv6 /64) may hold
 * few of them, unless the address is a trunk's or a registered device's. These count apart, since the phones of one
 * office have addresses of one /64.
 */

import {
  SIP_INBOUND_CONNECTIONS_MAX,
  SIP_INBOUND_CONNECTIONS_OF_STRANGERS,
  SIP_INBOUND_CONNECTIONS_PER_STRANGER,
  SIP_INBOUND_CONNECTIONS_PER_TRUNK_ADDRESS,
} from '../../limits.ts';
import { sourceOf } from '../../sip/source.ts';

/** Counts inbound connections and decides which ones are taken. */
export class InboundConnections {
  /** The connections of each known address. */
  readonly #ofKnown = new Map<string, number>();
  /** The connections of strangers, by their sources. */
  readonly #ofStrangers = new Map<string, number>();
  #all = 0;
  #strangers = 0;

  /** Whether one more connection of that address may be taken. `isKnown`: it is a trunk's or a registered device's. */
  admits(address: string, isKnown: boolean): boolean {
    if (this.#all >= SIP_INBOUND_CONNECTIONS_MAX) return false;
    if (isKnown) return (this.#ofKnown.get(address) ?? 0) < SIP_INBOUND_CONNECTIONS_PER_TRUNK_ADDRESS;
    const own = this.#ofStrangers.get(sourceOf(address)) ?? 0;
    return own < SIP_INBOUND_CONNECTIONS_PER_STRANGER && this.#strangers < SIP_INBOUND_CONNECTIONS_OF_STRANGERS;
  }

  /** Counts a connection that was taken. */
  opened(address: string, isKnown: boolean): void {
    this.#count(address, isKnown, 1);
  }

  /** Counts it no longer. `isKnown` tells what it was in the end. */
  closed(address: string, isKnown: boolean): void {
    this.#count(address, isKnown, -1);
  }

  /** A connection of that address, which was a stranger's, is a known one's from now on. */
  becameKnown(address: string): void {
    this.#count(address, false, -1);
    this.#count(address, true, 1);
  }

  #count(address: string, isKnown: boolean, by: 1 | -1): void {
    const [counts, key] = isKnown ? [this.#ofKnown, address] : [this.#ofStrangers, sourceOf(address)];
    const own = (counts.get(key) ?? 0) + by;
    if (own > 0) counts.set(key, own);
    else counts.delete(key);
    this.#all += by;
    if (!isKnown) this.#strangers += by;
  }
}
