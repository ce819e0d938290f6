/**
 * Our request that keeps or changes a session: an UPDATE without a description where that is enough (RFC 4028 §7.4),
 * else a re-INVITE with our description (RFC 3261 §14.1).
 */
import { SIP_MIN_SE_SEC, SIP_RETRIES_MAX, SIP_RETRY_AFTER_SEC } from '../../limits.ts';
import { type AgentContext, contactFor, type RequestOwner } from '../agent-context.ts';
import { isAt } from '../flow.ts';
import { ALLOWED } from '../message/capability.ts';
import type { Credentials } from '../message/digest.ts';
import { parseDeltaSeconds, type SipResponse } from '../message/message.ts';
import { OutgoingRequest } from '../outgoing-request.ts';
import { type Acknowledgement, acknowledgement, sendAcknowledgement } from './acknowledge.ts';
import { contactOf, type Dialog, dialogRequest, mayComeBack, nextHop } from './dialog.ts';
import { type SessionTimer, settledTimer } from './session-timer.ts';

export interface RefreshOptions {
  readonly credentials: Credentials | undefined;
  readonly update: boolean;
  readonly description: Uint8Array;
  /** Whether we made the Call-ID. Then we wait longer after glare (RFC 3261 §14.1). */
  readonly ownsCallId: boolean;
  onRefreshed(timer: SessionTimer | undefined, response: SipResponse): void;
  /** The far end refused a changed session, which stays as it was. Without this function a refusal is tried again. */
  onRefused?(status: number): void;
  /**
   * The request was refused with that status and is to be tried again at that time, in milliseconds. The status is 0
   * where nobody has heard it, as the far end is elsewhere, or has yet to come back.
   */
  onRetry(at: number, status: number): void;
  /** The far end has forgotten the dialog (481), or is gone (408, and where no response came: RFC 3261 §12.2.1.2). */
  onGone(status: 481 | 408): void;
}

export class Refresh implements RequestOwner {
  pending = true;
  readonly #context: AgentContext;
  readonly #dialog: Dialog;
  readonly #options: RefreshOptions;
  readonly #outgoing: OutgoingRequest;
  readonly #refresher: 'refresher=uac' | 'refresher=uas';
  #ack: Acknowledgement | undefined;
  #tooSmall = 0;
  /** Whether any response has come. */
  #isHeard = false;

  /** `timer` is the session timer to renew. Undefined when the call has none. */
  constructor(context: AgentContext, dialog: Dialog, timer: SessionTimer | undefined, options: RefreshOptions) {
    this.#context = context;
    this.#dialog = dialog;
    this.#options = options;
    const peer = nextHop(dialog);
    const base = dialogRequest(dialog, options.update ? 'UPDATE' : 'INVITE');
    base.headers.add('contact', contactFor(context, peer)).add('allow', ALLOWED);
    // Without 100rel no 18x comes that waits for a PRACK (RFC 3262 §3): this request rings nobody.
    if (peer.profile?.sessionTimer !== false) base.headers.add('supported', 'timer');
    // The one that refreshes goes on to do so, whoever changes the session (RFC 4028 §7.4).
    this.#refresher = timer?.ours === false ? 'refresher=uas' : 'refresher=uac';
    if (timer !== undefined)
      base.headers.add('session-expires', `${timer.intervalSec};${this.#refresher}`).add('min-se', String(SIP_MIN_SE_SEC));
    const repeats = !options.update && options.description.length > 0;
    if (repeats) base.headers.add('content-type', 'application/sdp');
    const request = repeats ? { ...base, body: options.description } : base;
    const authentication = { credentials: () => options.credentials, nextNumber: () => ++dialog.localNumber };
    this.#outgoing = new OutgoingRequest(context, request, peer, this, authentication);
  }

  start(): void {
    this.#outgoing.send();
  }

  /**
   * The far end is at another place. What it has not been heard to answer is tried again there; a 2xx that comes all
   * the same is acknowledged.
   */
  moved(): void {
    if (this.#isHeard || !this.#isElsewhere) return;
    this.#outgoing.abandon();
    this.onFailure('timeout');
  }

  /** Whether the far end is not where the request was sent to any more. */
  get #isElsewhere(): boolean {
    return !isAt(nextHop(this.#dialog), this.#outgoing.peer);
  }

  onResponse(response: SipResponse): void {
    const { status } = response;
    this.#isHeard = true;
    if (status < 200) return;
    if (status < 300) {
      // §12.2.1.2: the ACK already goes to where the far end now is.
      if (this.pending) this.#dialog.target = contactOf(response.headers) ?? this.#dialog.target;
      if (this.#outgoing.request.method === 'INVITE') {
        this.#ack ??= acknowledgement(this.#context, this.#dialog, this.#outgoing.request);
        sendAcknowledgement(this.#context, this.#ack);
      }
      if (!this.pending) return;
      this.pending = false;
      this.#options.onRefreshed(settledTimer(response.headers), response);
      return;
    }
    if (!this.pending) return;
    if (status === 422 && this.#tooSmall++ < SIP_RETRIES_MAX) {
      const least = parseDeltaSeconds(response.headers.get('min-se'));
      if (least !== undefined && least <= 86_400) {
        this.#outgoing.sendWith((headers) =>
          headers.set('session-expires', `${least};${this.#refresher}`).set('min-se', String(least)),
        );
        return;
      }
    }
    this.pending = false;
    if (status === 481 || status === 408) this.#options.onGone(status);
    else if (status === 491)
      this.#options.onRetry(
        this.#context.layer.now + glareWaitMs(this.#options.ownsCallId, this.#context.entropy.fraction()),
        status,
      );
    else if (this.#options.onRefused !== undefined) this.#options.onRefused(status);
    else {
      const wait = parseDeltaSeconds(response.headers.get('retry-after')) ?? SIP_RETRY_AFTER_SEC;
      this.#options.onRetry(this.#context.layer.now + Math.max(1, wait) * 1000, status);
    }
  }

  onFailure(why: 'timeout' | 'unreachable'): void {
    if (!this.pending) return;
    this.pending = false;
    const { now } = this.#context.layer;
    if (this.#isElsewhere) this.#options.onRetry(now, 0);
    else if (mayComeBack(this.#dialog, why)) this.#options.onRetry(now + SIP_RETRY_AFTER_SEC * 1000, 0);
    else this.#options.onGone(408);
  }
}

/**
 * The wait after glare, in milliseconds (RFC 3261 §14.1): 2.1 to 4 s for the owner of the Call-ID, 0 to 2 s for the
 * other, in steps of 10 ms.
 */
export const glareWaitMs = (ownsCallId: boolean, fraction: number): number =>
  ownsCallId ? 2_100 + Math.floor(fraction * 191) * 10 : Math.floor(fraction * 201) * 10;
