/**
 * An INVITE that came to us, from 100 to its ACK (RFC 3261 §13.3), with reliable provisional responses (RFC 3262):
 *
 *   proceeding --accept--> accepted --ACK--> confirmed
 *       |  18x, each reliable one until its PRACK
 *       \--refuse, CANCEL--> refused
 */
import { SIP_PROVISIONAL_REPEAT_MS, SIP_RELIABLE_QUEUE_MAX, SIP_T1_MS } from '../../limits.ts';
import { type AgentContext, contactFor } from '../agent-context.ts';
import type { Timed } from '../deadlines.ts';
import { ALLOWED, hasTag, supportedBy } from '../message/capability.ts';
import { NO_BODY, parseCSeq, type SipRequest, type SipResponse } from '../message/message.ts';
import type { ServerOwner, ServerTransaction } from '../transaction/server.ts';
import { answerTimer, type SessionTimer } from './session-timer.ts';
import { SuccessRetransmission } from './success-retransmission.ts';

/** The call is told each step of its INVITE. */
interface UasInviteOwner {
  onAccepted(timer: SessionTimer | undefined): void;
  /** The 2xx was acknowledged. */
  onConfirmed(): void;
  /** An ACK or PRACK brought the answer to an offer of ours. It comes before `onConfirmed`. */
  onAnswer(body: Uint8Array): void;
  /** No ACK of the 2xx within 64*T1. */
  onUnacknowledged(): void;
  /** No PRACK of a reliable response within 64*T1. The INVITE was refused for it. */
  onUnheard(): void;
}

interface Reliable {
  readonly response: SipResponse;
  readonly number: number;
  readonly bytes: Uint8Array;
  readonly until: number;
  readonly offered: boolean;
  interval: number;
}

export class UasInvite implements ServerOwner, Timed {
  place = -1;
  at = 0;
  state: 'proceeding' | 'accepted' | 'confirmed' | 'refused' = 'proceeding';
  readonly transaction: ServerTransaction;
  /** Whether the INVITE came without an offer, so that we make it (late offer, RFC 3261 §13.2.1). */
  readonly offerless: boolean;
  readonly #context: AgentContext;
  readonly #owner: UasInviteOwner;
  readonly #requires: boolean;
  readonly #supports: boolean;
  #number: number;
  #reliable: Reliable | undefined;
  /** The status of the last provisional response, if it was a reliable one. Else 0. */
  #reliableStatus = 0;
  #queue: { response: SipResponse; offered: boolean }[] = [];
  #waiting: { body: Uint8Array } | undefined;
  #unacknowledged: SuccessRetransmission | undefined;
  /**
   * Whether the 200 carries no description: offer and answer were exchanged in a reliable 18x and its PRACK, or changed
   * since.
   */
  #agreed = false;
  /** Whether our answer to the INVITE's offer went out in a reliable 18x that has its PRACK. */
  #answered = false;

  constructor(context: AgentContext, transaction: ServerTransaction, owner: UasInviteOwner) {
    this.#context = context;
    this.transaction = transaction;
    this.#owner = owner;
    const { request } = transaction;
    this.offerless = request.body.length === 0;
    this.#requires = hasTag(request.headers, 'require', '100rel');
    this.#supports = this.#requires || hasTag(request.headers, 'supported', '100rel');
    this.#number = 1 + Math.floor(context.entropy.fraction() * 0x3fff_ffff);
    transaction.owner = this;
  }

  /** Whether our description can go out in a provisional response: an offer only in a reliable one (RFC 3262 §5). */
  get canDescribeEarly(): boolean {
    return !this.offerless || this.#supports;
  }

  /** Sends 180 or 183. A body is our session description. */
  provisional(status: number, body: Uint8Array): void {
    if (this.state !== 'proceeding' || this.#waiting !== undefined) return;
    const response = this.transaction.make(status, body);
    response.headers.add('contact', contactFor(this.#context, this.transaction.source)).add('allow', ALLOWED);
    if (body.length > 0) response.headers.add('content-type', 'application/sdp');
    const offered = this.offerless && body.length > 0;
    if (!this.#requires && !offered) {
      this.transaction.send(response);
      this.#reliableStatus = 0;
      this.#repeatLater();
      return;
    }
    if (this.#reliable !== undefined) {
      if (this.#queue.length < SIP_RELIABLE_QUEUE_MAX) this.#queue.push({ response, offered });
      return;
    }
    this.#sendReliable(response, offered);
  }

  /** Sends the 200. It is held back while a reliable 18x waits for its PRACK (RFC 3262 §3). */
  accept(body: Uint8Array): void {
    if (this.state !== 'proceeding') return;
    if (this.#reliable !== undefined) {
      this.#waiting = { body };
      return;
    }
    const { request } = this.transaction;
    const described = this.#agreed ? NO_BODY : body;
    const response = this.transaction.make(200, described);
    const timer = answerTimer(request.headers, this.transaction.source);
    response.headers
      .add('contact', contactFor(this.#context, this.transaction.source))
      .add('allow', ALLOWED)
      .add('supported', supportedBy(this.transaction.source));
    if (timer !== undefined) {
      response.headers.add('session-expires', timer.value);
      if (timer.require) response.headers.add('require', 'timer');
    }
    if (described.length > 0) response.headers.add('content-type', 'application/sdp');
    if (!this.transaction.send(response)) return;
    this.state = 'accepted';
    this.#context.layer.deadlines.set(this, Infinity);
    this.#unacknowledged = new SuccessRetransmission(this.#context, this.transaction, this.offerless && !this.#agreed, () => {
      this.state = 'confirmed';
      this.#owner.onUnacknowledged();
    });
    this.#owner.onAccepted(timer?.timer);
  }

  /** Sends a final failure response. */
  refuse(status: number, fields: readonly (readonly [string, string])[] = []): void {
    if (this.state !== 'proceeding') return;
    this.state = 'refused';
    this.#reliable = undefined;
    this.#context.layer.deadlines.set(this, Infinity);
    const response = this.transaction.make(status);
    for (const [name, value] of fields) response.headers.add(name, value);
    this.transaction.send(response);
  }

  /** Whether the offer and answer of the INVITE itself are exchanged, so that a new offer may come (RFC 3311 §5.1). */
  get isSettled(): boolean {
    return this.state === 'confirmed' || this.#answered || this.#agreed;
  }

  /** The session was changed before the answer. The 200 then says nothing of it (RFC 3261 §13.2.1). */
  changed(): void {
    if (this.state === 'proceeding') this.#agreed = true;
  }

  /**
   * Takes a PRACK (RFC 3262 §3). `offer` means that it carries a new offer: the caller answers it, then calls `goOn`.
   */
  onPrack(prack: ServerTransaction): 'done' | 'offer' {
    const waiting = this.#reliable;
    const parts = /^\s*([0-9]{1,10})\s+([0-9]{1,10})\s+([A-Z]+)\s*$/.exec(prack.request.headers.get('rack') ?? '');
    const invite = parseCSeq(this.transaction.request.headers.get('cseq'));
    if (
      waiting === undefined ||
      Number(parts?.[1]) !== waiting.number ||
      Number(parts?.[2]) !== invite?.number ||
      parts?.[3] !== 'INVITE'
    ) {
      prack.respond(481);
      return 'done';
    }
    const { body } = prack.request;
    const described = waiting.response.body.length > 0;
    // A PRACK may make an offer only once the INVITE's own is answered (RFC 3262 §5).
    if (body.length > 0 && !waiting.offered && !described && !this.isSettled) {
      prack.respond(488);
      return 'done';
    }
    this.#reliable = undefined;
    this.#repeatLater();
    if (described && !waiting.offered) this.#answered = true;
    if (body.length > 0 && !waiting.offered) return 'offer';
    prack.respond(200);
    if (waiting.offered && body.length > 0) {
      this.#agreed = true;
      this.#owner.onAnswer(body);
    }
    this.goOn();
    return 'done';
  }

  /** Sends what a reliable provisional response has held up: the next one, or the 200. */
  goOn(): void {
    if (this.state !== 'proceeding' || this.#reliable !== undefined) return;
    const next = this.#queue.shift();
    if (next !== undefined) this.#sendReliable(next.response, next.offered);
    else if (this.#waiting !== undefined) {
      const { body: held } = this.#waiting;
      this.#waiting = undefined;
      this.accept(held);
    }
  }

  /** Takes an ACK of this dialog. True when it acknowledged our 2xx. */
  takeAck(ack: SipRequest): boolean {
    const waiting = this.#unacknowledged;
    if (waiting === undefined || parseCSeq(ack.headers.get('cseq'))?.number !== waiting.number) return false;
    if (this.state === 'accepted') this.#confirm(waiting, ack.body);
    return true;
  }

  /**
   * Takes the next INVITE of the caller for the ACK of our 2xx, which was lost or is late: it has the 2xx (RFC 3261
   * §14.1). Where the ACK would bring the answer to our offer, it is waited for.
   */
  assumeAck(): void {
    const waiting = this.#unacknowledged;
    if (this.state === 'accepted' && waiting?.offered === false) this.#confirm(waiting, NO_BODY);
  }

  #confirm(waiting: SuccessRetransmission, answer: Uint8Array): void {
    waiting.stop();
    this.state = 'confirmed';
    // An ACK without a body leaves the offer without an answer, which is for the owner to know.
    if (waiting.offered) this.#owner.onAnswer(answer);
    this.#owner.onConfirmed();
  }

  onAck(ack: SipRequest): void {
    this.takeAck(ack);
  }

  onUnacknowledged(): void {
    // Timer H of a failure response ran out. The call is over already.
  }

  /** Repeats the 2xx no more: the far end hung up without acknowledging it, or its ACK goes to another node. */
  stop(): void {
    this.#unacknowledged?.stop();
  }

  due(now: number): void {
    const waiting = this.#reliable;
    if (waiting === undefined) {
      this.#repeat();
      return;
    }
    if (now >= waiting.until) {
      this.refuse(504);
      this.#owner.onUnheard();
      return;
    }
    this.transaction.sendAgain(waiting.bytes);
    waiting.interval *= 2;
    this.#context.layer.deadlines.set(this, Math.min(now + waiting.interval, waiting.until));
  }

  /**
   * Tells the caller again that its call is not answered yet. A reliable response is not repeated once it has its PRACK
   * (RFC 3262 §3): another one is sent.
   */
  #repeat(): void {
    if (this.#reliableStatus > 0) {
      this.provisional(this.#reliableStatus, NO_BODY);
      return;
    }
    this.transaction.sendAgain(this.transaction.lastBytes ?? NO_BODY);
    this.#repeatLater();
  }

  #repeatLater(): void {
    if (this.#reliable === undefined)
      this.#context.layer.deadlines.set(this, this.#context.layer.now + SIP_PROVISIONAL_REPEAT_MS);
  }

  #sendReliable(response: SipResponse, offered: boolean): void {
    const number = this.#number++;
    response.headers.add('require', '100rel').add('rseq', String(number));
    if (!this.transaction.send(response)) return;
    this.#reliableStatus = response.status;
    const { now } = this.#context.layer;
    const bytes = this.transaction.lastBytes ?? NO_BODY;
    this.#reliable = { response, number, bytes, until: now + 64 * SIP_T1_MS, offered, interval: SIP_T1_MS };
    this.#context.layer.deadlines.set(this, now + SIP_T1_MS);
  }
}
