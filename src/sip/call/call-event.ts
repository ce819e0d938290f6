/** What a call tells its owner: its progress, the offers it receives, and its one end. */
import type { Headers } from '../message/message.ts';
import type { Replaces } from '../message/replaces.ts';
import type { ReferOutcome } from './refer.ts';

/** Why a call is over. */
export type CallEnd =
  /** We hung up, rejected or cancelled. */
  | { readonly why: 'local' }
  /** The far end sent BYE. */
  | { readonly why: 'bye'; readonly q850: number | undefined; readonly reason?: string }
  /** The far end cancelled before we answered. */
  | { readonly why: 'cancelled'; readonly q850: number | undefined; readonly reason?: string }
  /** The far end answered our INVITE with a failure. */
  | {
      readonly why: 'refused';
      readonly status: number;
      readonly q850: number | undefined;
      readonly retryAfter: boolean;
      /** The text of Reason, else the reason phrase. */
      readonly reason?: string;
      /** The preferred Contact of a redirection (3xx). */
      readonly contact?: string;
    }
  /** No response came before timer B ran out. RFC 3261 §8.1.3.1 treats it as a 408. */
  | { readonly why: 'no_response' }
  /** The transport failed: no address, refused, reset. */
  | { readonly why: 'unreachable' }
  /** Our 200 was never acknowledged. */
  | { readonly why: 'unacknowledged' }
  /** Nobody refreshed the session (RFC 4028 §10). */
  | { readonly why: 'session_expired' }
  /**
   * The far end no longer knows the dialog: it answered a request within it with 481 or 408, or did not answer a
   * session refresh.
   */
  | { readonly why: 'gone' }
  /** The far end did not answer our probe. */
  | { readonly why: 'unresponsive' }
  /** The INVITE that came in was not answered within its Expires. */
  | { readonly why: 'expired' };

export type CallEvent =
  /** Outbound: the far end sent its first response, perhaps only a 100. */
  | { readonly type: 'trying' }
  /** Outbound: the INVITE was sent anew as the far end asked for, with credentials or another session interval. */
  | { readonly type: 'sent_anew' }
  /** Outbound: the call is forwarded (181), queued (182), or under way in another way that rings nobody yet. */
  | { readonly type: 'underway' }
  /** Outbound: the far end sent 180, or 183 without a body. */
  | { readonly type: 'ringing' }
  /**
   * Outbound: the far end sent an 18x with a session description. `fork` tells the early dialogs apart, also from those
   * of the INVITE before it, where it was refused and sent again.
   */
  | { readonly type: 'progress'; readonly body: Uint8Array; readonly fork: string }
  /** Outbound: the far end answered with 200. Its ACK is on the way. */
  | {
      readonly type: 'answered';
      readonly body: Uint8Array;
      /** The session of that fork was changed since it was described. */
      readonly isChanged: boolean;
      readonly fork: string;
      readonly headers: Headers;
    }
  /** Inbound: our 200 was sent. A reliable provisional response may have held it up. */
  | { readonly type: 'accepted' }
  /** Inbound: the ACK of our 200 arrived. */
  | { readonly type: 'confirmed' }
  /** The far end answered an offer that we sent in a response (late offer) or in a re-INVITE. */
  | { readonly type: 'answer'; readonly body: Uint8Array }
  /**
   * A re-INVITE or UPDATE arrived. The owner calls `answerOffer` or `refuseOffer`. An empty body asks for our offer;
   * the far end's answer to it then comes as `answer`.
   */
  | { readonly type: 'offer'; readonly body: Uint8Array }
  | { readonly type: 'info'; readonly contentType: string; readonly body: Uint8Array }
  /** The far end refused the session that `offer` asked for. It stays as it was. */
  | { readonly type: 'offer_refused'; readonly status: number }
  /** What came of our REFER. */
  | { readonly type: 'refer'; readonly outcome: ReferOutcome }
  /**
   * The far end asks to be transferred to a URI, which may name a dialog to be replaced. It was answered 202; the owner
   * does what it likes.
   */
  | { readonly type: 'refer_requested'; readonly target: string; readonly replaces?: Replaces }
  /** The far end may have started anew: it has registered with another Call-ID. */
  | { readonly type: 'doubted' }
  /** The far end, a device, is at another place, or has another connection. */
  | { readonly type: 'moved' }
  /** The far end answered our probe. */
  | { readonly type: 'alive' }
  /** The last event of a call, exactly once. */
  | { readonly type: 'ended'; readonly end: CallEnd };
