/** Peers: the far ends that messages come from and go to. */
import type { TransportName } from './message/via.ts';

/** What is done differently with the peers of one trunk. */
export interface PeerProfile {
  /** The addresses and CIDRs of the trunk. Requests within a call may come from any of them. */
  readonly ranges?: readonly string[];
  /** Our host in Via and Contact towards them. */
  readonly advertise?: string;
  /** The user part of our Contact. */
  readonly contactUser?: string;
  /** Whether we take part in session timers (RFC 4028). We do where it is absent. */
  readonly sessionTimer?: boolean;
  /** Requests that are too long for UDP go over TCP (RFC 3261 §18.1.1). */
  readonly tcp?: boolean;
  /** What is said over TLS stays there, also where a Contact or Record-Route names another transport. */
  readonly staysOnTls?: boolean;
  /**
   * What is sent to them goes where their messages come from, as a device behind NAT asks for: over the connection that
   * they opened (RFC 5626), and over no other, or to the address and port that their datagrams have. It is false for a
   * device that takes connections for the time being.
   */
  readonly staysOnFlow?: boolean;
  /** They are spoken to by `sips:` URIs, so that our Contact is one as well (RFC 3261 §8.1.1.8, §12.1.1). */
  readonly isSips?: boolean;
  /** Names the TLS certificate, key and authorities for connections to them; others have another name. */
  readonly tls?: string;
}

/** One far end of the transport. */
export interface Peer {
  readonly transport: TransportName;
  /** An IP address, or a name that the transport resolves before it sends. */
  readonly host: string;
  readonly port: number;
  /** The number of the socket or connection to use. 0 lets the transport pick one that fits, or open a new one. */
  readonly flow: number;
  /** The node of the cluster that received the message, and sends what answers it. Absent: this one. */
  readonly via?: string;
  /** The host came without a port: where it is a name, its SRV records are asked first (RFC 3263 §4.2). */
  readonly isPortless?: boolean;
  /** The name that `host` was resolved from. A TLS certificate must be valid for it. */
  readonly name?: string;
  readonly profile?: PeerProfile;
  /** How long a connection that is opened to it may take to come up, in milliseconds. Absent: the usual limit. */
  readonly connectMs?: number;
  /** The peer to try when this one cannot be reached. */
  readonly fallback?: Peer;
}

/** The place that a peer is reached at. */
export type Place = Pick<Peer, 'transport' | 'host' | 'port'>;

/** Whether a place is that one: the same transport, address and port. */
export const isAt = ({ transport, host, port }: Place, place: Place): boolean =>
  transport === place.transport && host === place.host && port === place.port;

/**
 * Why a message was not delivered. `refused`: nothing can have arrived. `lost`: its connection closed before anything
 * came back on it, so that the message may have arrived or not.
 */
export type SendFailure = 'refused' | 'lost';

/** A source of randomness. Each token has at least 64 bits and only characters of RFC 3261 `token`. */
export interface Entropy {
  token(): string;
  /** Uniform in [0, 1). */
  fraction(): number;
}

/** Whether the transport delivers by itself, so that nothing is sent again (RFC 3261 §17). */
export const isReliable = (transport: TransportName): boolean => transport !== 'udp';

/** The port of a SIP URI that names none (RFC 3261 §19.1.2). */
export const defaultPort = (transport: TransportName): number => (transport === 'tls' ? 5061 : 5060);
