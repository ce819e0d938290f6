/**
 * What the parts of one user agent share: the transaction layer, randomness, hashes and the addresses we write into
 * messages.
 */
import { defaultPort, type Entropy, type Peer } from './flow.ts';
import type { Credentials, Hash } from './message/digest.ts';
import type { SipResponse } from './message/message.ts';
import { escapeUser, formatHostPort } from './message/uri.ts';
import type { TransactionLayer } from './transaction/layer.ts';
import type { WithoutTcp } from './without-tcp.ts';

export interface AgentContext {
  readonly layer: TransactionLayer;
  readonly entropy: Entropy;
  readonly hash: Hash;
  /** The peers that took no TCP connection lately. */
  readonly withoutTcp: WithoutTcp;
  /** The value of User-Agent and Server. */
  readonly product: string;
  /** The address to write into Via and Contact of messages for that peer. */
  local(peer: Peer): { readonly host: string; readonly port: number };
}

/** Our Contact towards a peer. */
export function contactFor(context: AgentContext, peer: Peer, name = peer.profile?.contactUser ?? 'sidetone'): string {
  const { host, port } = context.local(peer);
  const user = escapeUser(name);
  // `transport=tls` is not said in a sips: URI (RFC 5630 §3.1.3).
  if (peer.profile?.isSips === true && peer.transport === 'tls') return `<sips:${user}@${formatHostPort(host, port)}>`;
  const transport = peer.transport === 'udp' ? '' : `;transport=${peer.transport}`;
  return `<sip:${user}@${formatHostPort(host, port)}${transport}>`;
}

/** Our place as that peer dials it: host, the port that is not the usual one, and the transport that is not UDP. */
export function domainFor(context: AgentContext, { transport, ...peer }: Peer): string {
  const { host, port } = context.local({ transport, ...peer });
  const place = formatHostPort(host, port === defaultPort(transport) ? undefined : port);
  return transport === 'udp' ? place : `${place};transport=${transport}`;
}

/** How a request is sent again with credentials when a server asks for them. */
export interface Authentication {
  /** Our credentials. Undefined makes a challenge a refusal. */
  credentials(): Credentials | undefined;
  /** The CSeq number of the repeated request (RFC 3261 §22.2). */
  nextNumber(): number;
}

/** The owner of a request: it is told the outcome. */
export interface RequestOwner {
  /** A provisional or final response. Challenges that were answered with credentials are not passed on. */
  onResponse(response: SipResponse): void;
  /** No response came, or the request could not be sent. */
  onFailure(why: 'timeout' | 'unreachable'): void;
}
