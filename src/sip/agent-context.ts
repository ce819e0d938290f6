/** What the parts of one user agent share, and what comes out of it. */
import type { Call } from './call/call.ts';
import type { Entropy, Peer } from './flow.ts';
import type { Credentials, Hash } from './message/digest.ts';
import type { SipRequest, SipResponse } from './message/message.ts';
import { formatHostPort } from './message/uri.ts';
import type { TransactionLayer } from './transaction/layer.ts';

/** Why a call is over. */
export type CallEnd =
  /** We hung up, rejected or cancelled. */
  | { readonly why: 'local' }
  /** The far end sent BYE. */
  | { readonly why: 'bye'; readonly q850: number | undefined }
  /** The far end cancelled before we answered. */
  | { readonly why: 'cancelled'; readonly q850: number | undefined }
  /** The far end answered our INVITE with a failure. */
  | { readonly why: 'refused'; readonly status: number; readonly q850: number | undefined; readonly retryAfter: boolean }
  /** Nothing came back (timer B): as a 408. */
  | { readonly why: 'no_response' }
  /** The transport failed: no address, refused, reset. */
  | { readonly why: 'unreachable' }
  /** Our 200 was never acknowledged. */
  | { readonly why: 'unacknowledged' }
  /** Nobody refreshed the session (RFC 4028 §10). */
  | { readonly why: 'session_expired' }
  /** The far end no longer knows the dialog, or is gone: 481 or no answer to a request within it. */
  | { readonly why: 'gone' };

export type CallEvent =
  /** Outbound: 180, or 183 without a body. */
  | { readonly type: 'ringing' }
  /** Outbound: an 18x with a session description. `fork` tells the early dialogs of one INVITE apart. */
  | { readonly type: 'progress'; readonly body: Uint8Array; readonly fork: string }
  /** Outbound: 200; its ACK is on the way. */
  | { readonly type: 'answered'; readonly body: Uint8Array; readonly fork: string }
  /** Inbound: our 200 went out, which a reliable provisional response may have held up. */
  | { readonly type: 'accepted' }
  /** Inbound: the ACK of our 200. */
  | { readonly type: 'confirmed' }
  /** The answer to an offer of ours that went out in a response (late offer), or in our re-INVITE. */
  | { readonly type: 'answer'; readonly body: Uint8Array }
  /**
   * A re-INVITE or UPDATE: to be answered with `answerOffer` or `refuseOffer`. An empty body: an offer is asked for, and its answer will
   * come as `answer`.
   */
  | { readonly type: 'offer'; readonly body: Uint8Array }
  | { readonly type: 'info'; readonly contentType: string; readonly body: Uint8Array }
  /** The last event of a call, exactly once. */
  | { readonly type: 'ended'; readonly end: CallEnd };

export type RegistrationState = 'registered' | 'refused' | 'unreachable' | 'unregistered';

export type UserAgentOutput =
  /** Bytes for a peer. `ticket` (unless `""`) is given to `sendFailed` when they cannot be delivered. */
  | { readonly type: 'send'; readonly bytes: Uint8Array; readonly peer: Peer; readonly ticket: string }
  /** A new call; 100 has been sent. */
  | { readonly type: 'invite'; readonly call: Call; readonly request: SipRequest; readonly source: Peer }
  | { readonly type: 'call'; readonly call: Call; readonly event: CallEvent }
  | { readonly type: 'registration'; readonly name: string; readonly state: RegistrationState; readonly status: number }
  /** The answer to `probe`; status 0: none came. */
  | { readonly type: 'probed'; readonly name: string; readonly status: number };

export interface AgentContext {
  readonly layer: TransactionLayer;
  readonly entropy: Entropy;
  readonly hash: Hash;
  readonly product: string;
  /** The address to write into Via and Contact of what goes to that peer. */
  local(peer: Peer): { readonly host: string; readonly port: number };
  emit(output: UserAgentOutput): void;
  /** Makes a dialog findable; false when that dialog exists already. */
  enter(key: string, call: Call): void;
  leave(key: string): void;
  /** Called once a call holds nothing any more. */
  closed(call: Call): void;
}

/** Our Contact towards a peer. */
export function contactFor(context: AgentContext, peer: Peer, user = 'sidetone'): string {
  const { host, port } = context.local(peer);
  const transport = peer.transport === 'udp' ? '' : `;transport=${peer.transport}`;
  return `<sip:${user}@${formatHostPort(host, port)}${transport}>`;
}

/** What is sent again with credentials when a server asks for them. */
export interface Authentication {
  /** Undefined: a challenge is a refusal. */
  credentials(): Credentials | undefined;
  /** The CSeq number of the repeated request (§22.2). */
  nextNumber(): number;
}

/** Who hears of a request sent outside the INVITE's own logic. */
export interface RequestOwner {
  /** Provisional and final responses, challenges that were answered excepted. */
  onResponse(response: SipResponse): void;
  /** No response, or none could be had. */
  onFailure(why: 'timeout' | 'unreachable'): void;
}
