/**
 * The count of the stream connections that others have opened to us. An address that is neither a trunk's nor a
 * registered device's may hold few of them.
 */
import {
  SIP_INBOUND_CONNECTIONS_MAX,
  SIP_INBOUND_CONNECTIONS_OF_STRANGERS,
  SIP_INBOUND_CONNECTIONS_PER_STRANGER,
  SIP_INBOUND_CONNECTIONS_PER_TRUNK_ADDRESS,
} from '../../limits.ts';

/** Counts inbound connections and decides which ones are taken. */
export class InboundConnections {
  readonly #byAddress = new Map<string, number>();
  #all = 0;
  #strangers = 0;

  /** Whether one more connection of that address may be taken. `isKnown`: it is a trunk's or a registered device's. */
  admits(address: string, isKnown: boolean): boolean {
    const own = this.#byAddress.get(address) ?? 0;
    if (this.#all >= SIP_INBOUND_CONNECTIONS_MAX) return false;
    if (isKnown) return own < SIP_INBOUND_CONNECTIONS_PER_TRUNK_ADDRESS;
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

  /** A connection that was a stranger's is a known one's from now on. */
  becameKnown(): void {
    this.#strangers--;
  }

  #count(address: string, isKnown: boolean, by: 1 | -1): void {
    const own = (this.#byAddress.get(address) ?? 0) + by;
    if (own > 0) this.#byAddress.set(address, own);
    else this.#byAddress.delete(address);
    this.#all += by;
    if (!isKnown) this.#strangers += by;
  }
}
