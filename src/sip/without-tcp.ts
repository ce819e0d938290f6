/** Remembers for a while which peers take no TCP connection, so that a long request to them does not wait for one. */
import { SIP_NO_TCP_MAX, SIP_NO_TCP_MS } from '../limits.ts';
import type { Peer } from './flow.ts';

export class WithoutTcp {
  /** When each peer ceases to count as one without TCP, in milliseconds. The one found longest ago comes first. */
  readonly #until = new Map<string, number>();

  /** A peer has taken no connection. */
  add(peer: Peer, now: number): void {
    const key = keyOf(peer);
    this.#until.delete(key);
    this.#until.set(key, now + SIP_NO_TCP_MS);
    const [oldest] = this.#until.keys();
    if (this.#until.size > SIP_NO_TCP_MAX && oldest !== undefined) this.#until.delete(oldest);
  }

  /** Whether a peer took no connection lately. */
  has(peer: Peer, now: number): boolean {
    const key = keyOf(peer);
    const until = this.#until.get(key);
    if (until === undefined) return false;
    if (until > now) return true;
    this.#until.delete(key);
    return false;
  }
}

const keyOf = ({ host, port }: Peer): string => `${host} ${port}`;
