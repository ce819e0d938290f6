/**
 * Requests of the far end that change the session of a call: re-INVITE (RFC 3261 §14.2), UPDATE (RFC 3311 §5.2), and
 * PRACK with an offer (RFC 3262 §5). One is under way at a time.
 *
 *   idle --offer--> offered --answer--> idle, or of a re-INVITE: unacknowledged --ACK--> idle
 *                      \-----refuse---> idle
 */
import { type AgentContext, contactFor } from '../agent-context.ts';
import { ALLOWED, supportedBy } from '../message/capability.ts';
import { NO_BODY, parseCSeq, type SipRequest } from '../message/message.ts';
import type { ServerTransaction } from '../transaction/server.ts';
import { contactOf, type Dialog } from './dialog.ts';
import { answerTimer, isTooSmall, refuseInterval, type SessionTimer } from './session-timer.ts';
import { SuccessRetransmission } from './success-retransmission.ts';

/** What the call gives and is told. */
interface ChangedCall {
  isEstablished(): boolean;
  /** Whose offer has no answer yet, other than those that are taken here. */
  openOffer(request: SipRequest): 'ours' | 'theirs' | undefined;
  /** An offer came, which is for `answer` or `refuse`. An empty body asks for an offer of ours. */
  onOffer(body: Uint8Array): void;
  /** The ACK of a re-INVITE has brought the answer to our offer. */
  onAnswer(body: Uint8Array): void;
  /** A request was accepted: the session timer starts anew. */
  onAccepted(timer: SessionTimer | undefined): void;
  /** The 2xx of a re-INVITE has no ACK, which ends the session (§14.2): `stop` follows. */
  onUnacknowledged(): void;
}

export class FarChanges {
  readonly #context: AgentContext;
  readonly #call: ChangedCall;
  /** The request whose offer has no answer yet. */
  #offer: ServerTransaction | undefined;
  #unacknowledged: SuccessRetransmission | undefined;

  constructor(context: AgentContext, call: ChangedCall) {
    this.#context = context;
    this.#call = call;
  }

  /** Whether a request waits for its answer, or a 2xx for its ACK. */
  get pending(): boolean {
    return this.#offer !== undefined || this.#unacknowledged !== undefined;
  }

  /** Takes a re-INVITE or UPDATE within `dialog`, whose target follows it. */
  take(transaction: ServerTransaction, dialog: Dialog | undefined): void {
    const { request } = transaction;
    const isInvite = request.method === 'INVITE';
    const describes = isInvite || request.body.length > 0;
    // One exchange at a time: theirs unanswered is their haste, ours in flight is glare.
    const open = describes ? this.#call.openOffer(request) : undefined;
    if (this.pending || open === 'theirs' || (isInvite && !this.#call.isEstablished())) {
      refuseForNow(transaction, this.#context.entropy.fraction());
      return;
    }
    if (open === 'ours') {
      transaction.respond(491);
      return;
    }
    if (isTooSmall(request.headers, transaction.source)) {
      refuseInterval(transaction);
      return;
    }
    if (dialog !== undefined) dialog.target = contactOf(request.headers) ?? dialog.target;
    if (!describes) {
      this.#accept(transaction, NO_BODY);
      return;
    }
    if (isInvite) transaction.respond(100);
    this.takeOffer(transaction);
  }

  /** Takes the offer of a request. False when another has no answer yet: then this one is refused. */
  takeOffer(transaction: ServerTransaction): boolean {
    if (this.#offer !== undefined) {
      transaction.respond(500);
      return false;
    }
    this.#offer = transaction;
    this.#call.onOffer(transaction.request.body);
    return true;
  }

  /** Answers the offer. Returns the request that brought it, or undefined when there is none. */
  answer(body: Uint8Array): SipRequest | undefined {
    const transaction = this.#offer;
    if (transaction === undefined) return undefined;
    this.#offer = undefined;
    this.#accept(transaction, body);
    return transaction.request;
  }

  /** Refuses the offer. The session goes on as before (§14.2). */
  refuse(status: number): void {
    const transaction = this.#offer;
    this.#offer = undefined;
    transaction?.respond(status);
  }

  /** Takes an ACK, which is without effect unless it is that of our 2xx. */
  onAck(ack: SipRequest): void {
    const waiting = this.#unacknowledged;
    if (waiting === undefined || parseCSeq(ack.headers.get('cseq'))?.number !== waiting.number) return;
    waiting.stop();
    this.#unacknowledged = undefined;
    if (waiting.offered && ack.body.length > 0) this.#call.onAnswer(ack.body);
  }

  /** Takes the next INVITE for the ACK of our 2xx, as `UasInvite` does. */
  assumeAck(): void {
    if (this.#unacknowledged?.offered === false) this.#repeatNoMore();
  }

  /** Ends what is under way: the call is over. A request that waits for its answer is refused with 487 (§15.1.2). */
  stop(): void {
    this.#repeatNoMore();
    this.refuse(487);
  }

  /**
   * Another node has the call now. The ACK of a 2xx goes there, and so does a request that waits for its answer, when
   * the far end makes it again.
   */
  abandon(): void {
    this.#repeatNoMore();
    const transaction = this.#offer;
    this.#offer = undefined;
    if (transaction !== undefined) refuseForNow(transaction, this.#context.entropy.fraction());
  }

  #repeatNoMore(): void {
    this.#unacknowledged?.stop();
    this.#unacknowledged = undefined;
  }

  /** Sends 200, and renews the session timer. */
  #accept(transaction: ServerTransaction, body: Uint8Array): void {
    const { request } = transaction;
    const { response, timer } = acceptance(this.#context, transaction, body);
    if (!transaction.send(response)) return;
    this.#call.onAccepted(timer);
    if (request.method !== 'INVITE') return;
    this.#unacknowledged = new SuccessRetransmission(this.#context, transaction, request.body.length === 0, () =>
      this.#call.onUnacknowledged(),
    );
  }
}

/** The 200 to a re-INVITE or UPDATE, and the session timer that it sets up. */
function acceptance(context: AgentContext, transaction: ServerTransaction, body: Uint8Array) {
  const response = transaction.make(200, body);
  response.headers
    .add('contact', contactFor(context, transaction.source))
    .add('allow', ALLOWED)
    .add('supported', supportedBy(transaction.source));
  const timer = answerTimer(transaction.request.headers, transaction.source);
  if (timer !== undefined) {
    response.headers.add('session-expires', timer.value);
    if (timer.require) response.headers.add('require', 'timer');
  }
  if (body.length > 0) response.headers.add('content-type', 'application/sdp');
  return { response, timer: timer?.timer };
}

/** Answers 500 with a Retry-After of 0 to 10 s: another change is under way. `fraction` is random in [0, 1). */
function refuseForNow(transaction: ServerTransaction, fraction: number): void {
  const response = transaction.make(500);
  response.headers.add('retry-after', String(Math.floor(fraction * 10)));
  transaction.send(response);
}
