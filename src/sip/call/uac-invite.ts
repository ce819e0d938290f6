/**
 * An INVITE of ours, from the first packet to the last 2xx (RFC 3261 §13.2), with early dialogs, forking, CANCEL and
 * PRACK:
 *
 *   calling --1xx--> early --2xx--> answered       each 2xx of another fork: ACK, then BYE
 *      |               |---300..699--> refused
 *      \---cancel------\--> cancelling --487--> refused;  2xx: ACK, then BYE
 */
import { SIP_FORKS_MAX, SIP_RETRIES_MAX, SIP_T1_MS } from '../../limits.ts';
import type { AgentContext, Authentication, RequestOwner } from '../agent-context.ts';
import type { Timed } from '../deadlines.ts';
import type { Peer, Place } from '../flow.ts';
import { causeOf, hasTag } from '../message/capability.ts';
import type { Credentials } from '../message/digest.ts';
import {
  Headers,
  NO_BODY,
  parseCSeq,
  parseDecimal,
  parseDeltaSeconds,
  type SipRequest,
  type SipResponse,
} from '../message/message.ts';
import { tagOf } from '../message/uri.ts';
import { NO_OWNER, OutgoingRequest } from '../outgoing-request.ts';
import { type Acknowledgement, acknowledgement, sendAcknowledgement } from './acknowledge.ts';
import type { CallEnd } from './call-event.ts';
import { contactOf, type Dialog, dialogOfResponse, dialogRequest, nextHop, preferredContact } from './dialog.ts';
import { type SessionTimer, settledTimer } from './session-timer.ts';

interface UacInviteOwner {
  /** The first response came, perhaps only a 100. */
  onTrying(): void;
  /** The INVITE is sent anew, as the far end asked for. */
  onSentAnew(): void;
  /** A provisional response of an early dialog. */
  onProvisional(status: number, body: Uint8Array, fork: string): void;
  onEarlyDialog(dialog: Dialog): void;
  onAnswered(dialog: Dialog, response: SipResponse, timer: SessionTimer | undefined, fork: string): void;
  /**
   * The INVITE has no call any more; `end` says why. A 2xx that comes after is acknowledged and hung up. It follows
   * `onAnswered` where the far end has hung up before its 2xx came.
   */
  onFailed(end: CallEnd): void;
  /** The INVITE was answered 64*T1 ago: no other 2xx of it can come any more. */
  onSettled(): void;
}

interface Fork {
  dialog: Dialog;
  /** Whether a response of it has named its Contact, and with it the way of the dialog. */
  isPlaced: boolean;
  lastReliable: number | undefined;
  /** Whether a reliable response of this fork answered our offer. */
  answered: boolean;
  /** Whether an UPDATE has changed the session since. */
  changed: boolean;
  /** The BYE of the fork. It may overtake a 200 that was lost. */
  bye: CallEnd | undefined;
}

export class UacInvite implements RequestOwner, Timed {
  place = -1;
  at = 0;
  state: 'calling' | 'early' | 'answered' | 'over' = 'calling';
  readonly #context: AgentContext;
  readonly #owner: UacInviteOwner;
  readonly #authentication: Authentication;
  readonly #credentials: Credentials | undefined;
  readonly #outgoing: OutgoingRequest;
  readonly #forks = new Map<string, Fork>();
  readonly #acks = new Map<string, Acknowledgement>();
  #number = 1;
  #cancelled = false;
  /** Whether any response has come. */
  #tried = false;
  #cancelSent = false;
  #cancelReason = '';
  #retries = 0;

  constructor(
    context: AgentContext,
    request: SipRequest,
    peer: Peer,
    credentials: Credentials | undefined,
    owner: UacInviteOwner,
  ) {
    this.#context = context;
    this.#owner = owner;
    this.#credentials = credentials;
    this.#authentication = {
      credentials: () => (this.#cancelled ? undefined : credentials),
      nextNumber: () => {
        this.state = 'calling';
        // The early dialogs are over with the refusal, though the next ones may have the same tags (§12.3).
        this.#forks.clear();
        this.#owner.onSentAnew();
        return ++this.#number;
      },
    };
    this.#outgoing = new OutgoingRequest(context, request, peer, this, this.#authentication);
  }

  /** The peer that the INVITE is sent to. */
  get peer(): Peer {
    return this.#outgoing.peer;
  }

  start(): void {
    this.#outgoing.send();
  }

  /**
   * Gives up. Before any response nothing may be cancelled (§9.1): the CANCEL waits for the first one. Returns whether
   * a final response is to be expected, so that the caller may wait for it.
   */
  cancel(reason: string): boolean {
    if (this.#cancelled || this.state === 'answered' || this.state === 'over') return false;
    this.#cancelled = true;
    this.#cancelReason = reason;
    this.#outgoing.abandon();
    if (this.state !== 'early') return false;
    this.#sendCancel();
    return true;
  }

  onResponse(response: SipResponse): void {
    const { status } = response;
    if (status < 200) this.#onProvisional(response);
    else if (status < 300) this.#onSuccess(response);
    else this.#onRefused(response);
  }

  onFailure(why: 'timeout' | 'unreachable'): void {
    this.#over(this.#cancelled ? { why: 'local' } : { why: why === 'timeout' ? 'no_response' : 'unreachable' });
  }

  /** The INVITE was answered 64*T1 ago, or was cancelled and counts as failed (RFC 3261 §9.1). */
  due(): void {
    if (this.state === 'answered') {
      this.#owner.onSettled();
      return;
    }
    const { transaction } = this.#outgoing;
    if (transaction !== undefined) this.#context.layer.forget(transaction);
    this.#over({ why: 'local' });
  }

  /** The far end, which was reached at one place, is at another one. */
  moved(from: Place, to: Peer): void {
    if (!this.#outgoing.moved(from, to)) return;
    for (const { dialog } of this.#forks.values()) dialog.peer = to;
  }

  /** The early dialog that a fork's To tag names. Undefined when no provisional response of that fork came. */
  dialogOf(fork: string): Dialog | undefined {
    return this.#forks.get(fork)?.dialog;
  }

  /** Whether that fork has answered our offer reliably, so that it may make one of its own (RFC 3311 §5.2). */
  isSettled(fork: string): boolean {
    return this.#forks.get(fork)?.answered === true;
  }

  /** An UPDATE has changed the session of that fork. */
  changed(fork: string): void {
    const known = this.#forks.get(fork);
    if (known !== undefined) known.changed = true;
  }

  /** A fork has hung up (§15). The INVITE still gets its final response; a 200 of that fork is over at once. */
  hungUp(fork: string, end: CallEnd): void {
    const known = this.#forks.get(fork);
    if (known !== undefined) known.bye = end;
  }

  hasChanged(fork: string): boolean {
    return this.#forks.get(fork)?.changed === true;
  }

  #onProvisional(response: SipResponse): void {
    if (this.state === 'calling') this.state = 'early';
    if (this.state !== 'early') return;
    if (!this.#tried) {
      this.#tried = true;
      this.#owner.onTrying();
    }
    if (this.#cancelled) {
      this.#sendCancel();
      return;
    }
    const tag = tagOf(response.headers.get('to'));
    if (response.status === 100) return;
    if (tag === undefined) {
      this.#owner.onProvisional(response.status, response.body, this.#nameOf(''));
      return;
    }
    const fork = this.#forkOf(tag, response);
    if (fork === undefined) return;
    if (hasTag(response.headers, 'require', '100rel') && !this.#acknowledgeProvisional(response, fork)) return;
    this.#owner.onProvisional(response.status, response.body, this.#nameOf(tag));
  }

  /**
   * The fork that a provisional response is of, which may be a new one. The first response of it that names a Contact
   * tells the way of its dialog.
   */
  #forkOf(tag: string, response: SipResponse): Fork | undefined {
    const known = this.#forks.get(tag);
    const isPlaced = contactOf(response.headers) !== undefined;
    if (known !== undefined && (known.isPlaced || !isPlaced)) return known;
    if (known === undefined && this.#forks.size >= SIP_FORKS_MAX) return undefined;
    const dialog = dialogOfResponse(this.#outgoing.request, response, this.#outgoing.peer);
    if (dialog === undefined) return known;
    if (known !== undefined) {
      known.dialog = goneOn(dialog, known.dialog);
      known.isPlaced = true;
      return known;
    }
    const fork = { dialog, isPlaced, lastReliable: undefined, answered: false, changed: false, bye: undefined };
    this.#forks.set(tag, fork);
    this.#owner.onEarlyDialog(dialog);
    return fork;
  }

  /** The name of a fork, which is another one where the INVITE was sent again: its number is another. */
  #nameOf(tag: string): string {
    return `${this.#number} ${tag}`;
  }

  /** Sends PRACK (RFC 3262 §4); false when the response is a repetition or came ahead of one that is missing. */
  #acknowledgeProvisional(response: SipResponse, fork: Fork): boolean {
    const number = parseDecimal(response.headers.get('rseq') ?? '', 0xffff_ffff);
    if (number === undefined || (fork.lastReliable !== undefined && number !== fork.lastReliable + 1)) return false;
    fork.lastReliable = number;
    if (response.body.length > 0) fork.answered = true;
    const cseq = parseCSeq(response.headers.get('cseq'))?.number ?? 0;
    const prack = dialogRequest(fork.dialog, 'PRACK');
    prack.headers.add('rack', `${number} ${cseq} INVITE`);
    new OutgoingRequest(this.#context, prack, nextHop(fork.dialog), NO_OWNER, this.#authenticationIn(fork)).send();
    return true;
  }

  #onSuccess(response: SipResponse): void {
    const tag = tagOf(response.headers.get('to')) ?? '';
    const known = this.#acks.get(tag);
    if (known !== undefined) {
      sendAcknowledgement(this.#context, known);
      return;
    }
    if (this.#acks.size >= SIP_FORKS_MAX) return;
    const dialog = dialogOfResponse(this.#outgoing.request, response, this.#outgoing.peer);
    if (dialog === undefined) return;
    const fork = this.#forks.get(tag);
    // A PRACK that is challenged only now takes the next number of the same ones.
    if (fork !== undefined) fork.dialog = goneOn(dialog, fork.dialog);
    const ack = acknowledgement(this.#context, dialog, this.#outgoing.request);
    this.#acks.set(tag, ack);
    sendAcknowledgement(this.#context, ack);
    if (this.#cancelled || this.state === 'answered' || this.state === 'over') {
      this.#hangUp(dialog);
      this.#over({ why: 'local' });
      return;
    }
    this.state = 'answered';
    this.#context.layer.deadlines.set(this, this.#context.layer.now + 64 * SIP_T1_MS);
    this.#owner.onAnswered(dialog, response, settledTimer(response.headers), this.#nameOf(tag));
    const bye = this.#forks.get(tag)?.bye;
    if (bye !== undefined) this.#owner.onFailed(bye);
  }

  #onRefused(response: SipResponse): void {
    if (this.state === 'answered' || this.state === 'over') return;
    if (!this.#cancelled && response.status === 422 && this.#retries++ < SIP_RETRIES_MAX) {
      // RFC 4028 §7.3: the same INVITE with what the far end can accept.
      const least = parseDeltaSeconds(response.headers.get('min-se'));
      if (least !== undefined && least <= 86_400) {
        this.#outgoing.sendWith((headers) => headers.set('session-expires', String(least)).set('min-se', String(least)));
        return;
      }
    }
    const retryAfter = response.headers.has('retry-after');
    const contact = response.status < 400 ? preferredContact(response.headers) : undefined;
    this.#over(
      this.#cancelled
        ? { why: 'local' }
        : {
            why: 'refused',
            status: response.status,
            reason: response.reason,
            ...causeOf(response.headers),
            retryAfter,
            ...(contact === undefined ? {} : { contact }),
          },
    );
  }

  #sendCancel(): void {
    if (this.#cancelSent) return;
    this.#cancelSent = true;
    const { request, sentTo } = this.#outgoing;
    const branch = this.#outgoing.transaction?.key.split(' ', 1)[0] ?? '';
    const headers = new Headers().add('via', request.headers.get('via') ?? '');
    for (const route of request.headers.fields('route')) headers.add('route', route);
    headers
      .add('max-forwards', '70')
      .add('from', request.headers.get('from') ?? '')
      .add('to', request.headers.get('to') ?? '');
    headers.add('call-id', request.headers.get('call-id') ?? '').add('cseq', `${this.#number} CANCEL`);
    if (this.#cancelReason !== '') headers.add('reason', this.#cancelReason);
    const cancel: SipRequest = { kind: 'request', method: 'CANCEL', uri: request.uri, headers, body: NO_BODY };
    this.#context.layer.request(cancel, branch, sentTo, { onResponse() {}, onTimeout() {}, onUnreachable() {} });
    this.#context.layer.deadlines.set(this, this.#context.layer.now + 64 * SIP_T1_MS);
  }

  #hangUp(dialog: Dialog): void {
    const bye = dialogRequest(dialog, 'BYE');
    new OutgoingRequest(this.#context, bye, nextHop(dialog), NO_OWNER, this.#authenticationIn({ dialog })).send();
  }

  /**
   * Credentials are given also after a CANCEL, which forbids a second INVITE only: without its BYE the far end stays
   * connected.
   */
  #authenticationIn(fork: Pick<Fork, 'dialog'>): Authentication {
    return { credentials: () => this.#credentials, nextNumber: () => ++fork.dialog.localNumber };
  }

  #over(end: CallEnd): void {
    if (this.state === 'over' || this.state === 'answered') return;
    this.state = 'over';
    this.#context.layer.deadlines.set(this, Infinity);
    this.#owner.onFailed(end);
  }
}

/** A dialog that takes the place of its early one, of which PRACKs have used numbers. */
function goneOn(dialog: Dialog, early: Dialog): Dialog {
  dialog.localNumber = Math.max(dialog.localNumber, early.localNumber);
  dialog.remoteNumber = early.remoteNumber;
  return dialog;
}
