/**
 * Keeps the way to devices behind NAT open: a router forgets a mapping of UDP after some 30 s without a packet, and the
 * device could not be called any more. What is sent is the double CRLF of RFC 5626 §3.5.1, which no device answers over
 * UDP.
 */
import type { Clock } from '../../clock.ts';
import { DEVICE_KEEPALIVE_MS, DEVICE_KEEPALIVES_A_TURN } from '../../limits.ts';
import type { Peer } from '../../sip/flow.ts';
import { parseUri, plainHost } from '../../sip/message/uri.ts';
import type { Binding } from '../../sip/registrar.ts';
import { peerOf } from './device-trunk.ts';

const PING = new TextEncoder().encode('\r\n\r\n');

interface Kept {
  readonly peer: Peer;
  readonly until: number;
}

export class KeepAlive {
  readonly #clock: Clock;
  readonly #send: (bytes: Uint8Array, peer: Peer) => void;
  readonly #kept = new Map<string, Kept>();
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, send: (bytes: Uint8Array, peer: Peer) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  /** Keeps a contact while it is bound, where it is behind NAT: its packets come from another address than it names. */
  keep(username: string, binding: Binding): void {
    const key = nameOf(username, binding.key);
    this.#kept.delete(key);
    if (binding.transport !== 'udp' || plainHost(parseUri(binding.uri)?.host ?? '') === binding.host) return;
    this.#kept.set(key, { peer: peerOf(binding), until: binding.expiresAt });
    this.#cancel ??= this.#clock.at(this.#clock.now() + DEVICE_KEEPALIVE_MS, () => this.#round([...this.#kept]));
  }

  forget(username: string, key: string): void {
    this.#kept.delete(nameOf(username, key));
  }

  close(): void {
    this.#cancel?.();
    this.#kept.clear();
  }

  /** Sends to a part of them, and the rest in the next turns of the event loop. */
  #round(left: [string, Kept][]): void {
    const now = this.#clock.now();
    for (const [key, kept] of left.splice(0, DEVICE_KEEPALIVES_A_TURN)) {
      if (kept.until <= now) this.#kept.delete(key);
      else if (this.#kept.get(key) === kept) this.#send(PING, kept.peer);
    }
    const wait = left.length > 0 ? 1 : DEVICE_KEEPALIVE_MS;
    this.#cancel =
      this.#kept.size === 0 ? undefined : this.#clock.at(now + wait, () => this.#round(left.length > 0 ? left : [...this.#kept]));
  }
}

const nameOf = (username: string, key: string): string => `${username} ${key}`;
