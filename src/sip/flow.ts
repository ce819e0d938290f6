/** Where messages come from and go to. */
import type { TransportName } from './message/via.ts';

/** A far end of the transport. */
export interface Peer {
  readonly transport: TransportName;
  /** An IP address, or a name that the transport resolves before it sends. */
  readonly host: string;
  readonly port: number;
  /** The socket or connection to use, as the transport numbered it; 0: whichever fits, or a new one. */
  readonly flow: number;
  /** The name `host` was resolved from: what a TLS certificate must be for. */
  readonly name?: string;
}

/** Randomness, given from outside: each token has at least 64 bits and only characters of RFC 3261 `token`. */
export interface Entropy {
  token(): string;
  /** Uniform in [0, 1). */
  fraction(): number;
}

export const isReliable = (transport: TransportName): boolean => transport !== 'udp';

export const defaultPort = (transport: TransportName): number => (transport === 'tls' ? 5061 : 5060);
