/**
 * A call: one INVITE, the dialog it makes, and the requests within it until its end. Orders are methods that take the
 * time. Events come out as `CallEvent`s; `ended` comes exactly once. A closed call is one that nothing may arrive for.
 */
import type { Timed } from '../deadlines.ts';
import type { Peer } from '../flow.ts';
import { answerInfo } from '../info.ts';
import { ALLOWED, allows, causeOf, contentType } from '../message/capability.ts';
import type { Credentials } from '../message/digest.ts';
import { NO_BODY, parseCSeq, parseDeltaSeconds, type SipRequest } from '../message/message.ts';
import { tagOf } from '../message/uri.ts';
import type { ServerTransaction } from '../transaction/server.ts';
import type { CallContext } from './call-context.ts';
import type { CallEnd, CallEvent } from './call-event.ts';
import { contactOf, type Dialog, dialogKey, dialogOfRequest, type FarEnd, replacing } from './dialog.ts';
import { acceptance, refuseForNow, refuseType } from './modification.ts';
import { sendBye, sendProbe } from './probe.ts';
import { SessionChanges } from './session-changes.ts';
import { isTooSmall, refuseInterval } from './session-timer.ts';
import { type CallSnapshot, dialogOfSnapshot, snapshotOf } from './snapshot.ts';
import { SuccessRetransmission } from './success-retransmission.ts';
import { Transfers } from './transfers.ts';
import { UacInvite } from './uac-invite.ts';
import { UasInvite } from './uas-invite.ts';

/** The longest time between our CANCEL and `ended`, in milliseconds. The far end's 487 ends the call sooner. */
const CANCEL_PATIENCE_MS = 5_000;

export class Call implements Timed {
  place = -1;
  at = 0;
  readonly id: number;
  readonly direction: 'inbound' | 'outbound';
  readonly #context: CallContext<Call>;
  readonly #credentials: Credentials | undefined;
  readonly #changes: SessionChanges;
  readonly #transfers: Transfers;
  readonly #keys = new Set<string>();
  #dialog: Dialog | undefined;
  #uas: UasInvite | undefined;
  #uac: UacInvite | undefined;
  #established = false;
  #ended = false;
  #closed = false;
  #byeAfterAck = false;
  /** Our session description as the far end last accepted it. A refreshing re-INVITE repeats it. */
  #description: Uint8Array = NO_BODY;
  /** A re-INVITE or UPDATE that the owner has not answered yet. */
  #offer: ServerTransaction | undefined;
  #unacknowledged: SuccessRetransmission | undefined;
  #farAllowsUpdate = false;
  #cancelledAt = Infinity;
  /** The time at which an INVITE that came in expires unanswered, by its Expires (RFC 3261 §13.3.1). */
  #inviteExpiresAt = Infinity;
  #probing = false;

  constructor(context: CallContext<Call>, id: number, direction: 'inbound' | 'outbound', credentials: Credentials | undefined) {
    this.#context = context;
    this.id = id;
    this.direction = direction;
    this.#credentials = credentials;
    this.#changes = new SessionChanges(context, {
      credentials,
      ownsCallId: direction === 'outbound',
      dialog: () => this.#whileUp,
      isBusy: () => this.#offer !== undefined || this.#unacknowledged !== undefined || this.#uas?.state === 'accepted',
      farAllowsUpdate: () => this.#farAllowsUpdate,
      description: () => this.#description,
      accepted: (description) => {
        this.#description = description;
      },
      emit: (event) => this.#emit(event),
      schedule: () => this.#schedule(),
      onLost: (why) => {
        this.#sendBye();
        this.#end({ why });
      },
    });
    this.#transfers = new Transfers(context, { credentials, dialog: () => this.#whileUp, emit: (event) => this.#emit(event) });
  }

  /** The dialog of the call while it is up. */
  get #whileUp(): Dialog | undefined {
    return this.#established && !this.#ended ? this.#dialog : undefined;
  }

  /** Inbound: sends 180 or 183. A body is our session description. It has no effect after the answer or the end. */
  provisional(status: 180 | 183, body: Uint8Array, now: number): void {
    this.#context.layer.now = now;
    if (!this.#ended) this.#uas?.provisional(status, body);
  }

  /** Inbound: whether our session description can go out before the answer. */
  get canDescribeEarly(): boolean {
    return this.#uas?.canDescribeEarly === true;
  }

  /** Inbound: sends 200 with our session description, which is the answer, or the offer when the INVITE had none. */
  accept(body: Uint8Array, now: number): void {
    this.#context.layer.now = now;
    if (this.#ended || this.#uas === undefined) return;
    this.#description = body;
    this.#uas.accept(body);
  }

  /** Inbound, before the answer: sends a final failure response. `ended` follows. */
  refuse(status: number, fields: readonly (readonly [string, string])[], now: number): void {
    this.#context.layer.now = now;
    if (this.#ended || this.#uas?.state !== 'proceeding') return;
    this.#uas.refuse(status, fields);
    this.#end({ why: 'local' });
    this.#close();
  }

  /** Ends the call, at any time: by CANCEL (`reason` is its Reason, RFC 3326), a final response or BYE. */
  hangUp(now: number, reason = ''): void {
    this.#context.layer.now = now;
    if (this.#ended) return;
    if (this.#uac !== undefined && !this.#established) {
      if (this.#cancelledAt !== Infinity) return;
      if (this.#uac.cancel(reason)) {
        this.#cancelledAt = now + CANCEL_PATIENCE_MS;
        this.#schedule();
      } else this.#end({ why: 'local' });
      return;
    }
    if (this.#uas?.state === 'proceeding') {
      this.#uas.refuse(480);
      this.#end({ why: 'local' });
      this.#close();
      return;
    }
    // §15: the callee's BYE waits for the ACK of its 2xx.
    if (this.#uas?.state === 'accepted') this.#byeAfterAck = true;
    else this.#sendBye();
    this.#end({ why: 'local' });
  }

  /** Answers an `offer` event with our answer, or with our offer when the event had an empty body. */
  answerOffer(body: Uint8Array, now: number): void {
    this.#context.layer.now = now;
    const transaction = this.#offer;
    if (transaction === undefined || this.#ended) return;
    this.#offer = undefined;
    this.#description = body;
    this.#acceptModification(transaction, body);
    if (!this.#established) {
      this.#uac?.changed(tagOf(transaction.request.headers.get('from')) ?? '');
      this.#uas?.changed();
      this.#uas?.goOn();
    }
  }

  /**
   * Offers a changed session by re-INVITE, once nothing else is under way. `describe` is asked for the session as it is
   * then. `answer` or `offer_refused` follows.
   */
  offer(describe: () => Uint8Array, now: number): void {
    this.#context.layer.now = now;
    if (!this.#established || this.#ended) return;
    this.#changes.offer(describe);
  }

  /** Asks the far end to call `referTo` in our place (RFC 3515, Transfers). `refer` events follow, of the last one. */
  refer(referTo: (ownDomain: string) => string, now: number): void {
    this.#context.layer.now = now;
    this.#transfers.refer(referTo);
  }

  /** The Refer-To that puts another call in the place of this one (RFC 3891 §3). Undefined while it is not up. */
  get replacement(): string | undefined {
    return this.#whileUp && replacing(this.#whileUp);
  }

  /** Refuses an `offer` event. The session goes on as before (RFC 3261 §14.2). */
  refuseOffer(status: number, now: number): void {
    this.#context.layer.now = now;
    const transaction = this.#offer;
    this.#offer = undefined;
    transaction?.respond(status);
    this.#uas?.goOn();
  }

  /** Asks the far end whether it is still there, by OPTIONS within the dialog. `alive` or `ended` follows. */
  probe(now: number): void {
    this.#context.layer.now = now;
    const dialog = this.#dialog;
    if (dialog === undefined || !this.#established || this.#ended || this.#probing) return;
    this.#probing = true;
    sendProbe(this.#context, dialog, this.#credentials, (outcome) => {
      this.#probing = false;
      if (this.#ended) return;
      if (outcome === 'alive') {
        this.#emit({ type: 'alive' });
        return;
      }
      this.#sendBye();
      this.#end({ why: outcome });
    });
  }

  /** Takes an INVITE that came in. False when the INVITE cannot open a dialog. */
  begin(transaction: ServerTransaction): boolean {
    const { request } = transaction;
    const dialog = dialogOfRequest(request, transaction.tag, transaction.source);
    if (dialog === undefined) return false;
    this.#farAllowsUpdate = allows(request.headers, 'UPDATE');
    this.#enter(dialog);
    this.#dialog = dialog;
    this.#uas = new UasInvite(this.#context, transaction, {
      onAccepted: (timer) => {
        this.#established = true;
        this.#inviteExpiresAt = Infinity;
        this.#changes.startTimer(timer);
        this.#emit({ type: 'accepted' });
      },
      onConfirmed: () => {
        if (this.#byeAfterAck) this.#sendBye();
        else this.#emit({ type: 'confirmed' });
      },
      onAnswer: (body) => this.#emit({ type: 'answer', body }),
      onUnacknowledged: () => {
        if (this.#established) this.#sendBye();
        else this.#close();
        this.#end({ why: 'unacknowledged' });
      },
    });
    transaction.respond(100);
    const expires = parseDeltaSeconds(request.headers.get('expires')) ?? 0;
    if (expires > 0) this.#inviteExpiresAt = this.#context.layer.now + expires * 1000;
    this.#schedule();
    return true;
  }

  /** Sends an INVITE of ours. */
  dial(request: SipRequest, peer: Peer): void {
    this.#description = request.body;
    this.#uac = new UacInvite(this.#context, request, peer, this.#credentials, {
      onTrying: () => this.#emit({ type: 'trying' }),
      onEarlyDialog: (dialog) => this.#enter(dialog),
      onProvisional: (status, body, fork) => {
        // A 180 with a session description is both: it rings, and there is something to hear.
        if (status === 180 || (status === 183 && body.length === 0)) this.#emit({ type: 'ringing' });
        else if (body.length === 0) this.#emit({ type: 'underway' });
        if (body.length > 0) this.#emit({ type: 'progress', body, fork });
      },
      onAnswered: (dialog, { headers, body }, timer) => {
        this.#established = true;
        this.#farAllowsUpdate = allows(headers, 'UPDATE');
        this.#enter(dialog);
        this.#dialog = dialog;
        this.#changes.startTimer(timer);
        // A session that an UPDATE has changed since is not changed back by the description of the 200.
        const isChanged = this.#uac?.hasChanged(dialog.remoteTag) === true;
        this.#emit({ type: 'answered', body: isChanged ? NO_BODY : body, isChanged, fork: dialog.remoteTag, headers });
      },
      onFailed: (end) => {
        this.#end(end);
        this.#close();
      },
    });
    this.#uac.start();
  }

  /** What another node needs to go on. Undefined: the call is not up, or, when `settled`, an exchange is under way. */
  snapshot(settled: boolean): CallSnapshot | undefined {
    const isBusy = this.#changes.pending || this.#offer || this.#unacknowledged || this.#uas?.state === 'accepted';
    if (this.#dialog === undefined || !this.#established || this.#ended || (settled && isBusy)) return undefined;
    return snapshotOf(this.#dialog, this.direction, this.#farAllowsUpdate);
  }

  /** Goes on with the call of another node. Nothing is sent; `offer` makes the far end follow. */
  resume(snapshot: CallSnapshot, ahead: number): void {
    this.#dialog = dialogOfSnapshot(snapshot, ahead);
    this.#established = true;
    this.#farAllowsUpdate = snapshot.farAllowsUpdate;
    this.#enter(this.#dialog);
  }

  /** Our numbers go on so much higher: another node has used those between. */
  skip(numbers: number): void {
    if (this.#dialog !== undefined) this.#dialog.localNumber += numbers;
  }

  /** Forgets the call, with which another node goes on. The far end hears nothing of it. */
  abandon(): void {
    this.#ended = true;
    this.#changes.stop();
    this.#close();
  }

  get farEnd(): FarEnd {
    return { peer: this.#uac?.peer ?? this.#dialog?.peer, dialog: this.#dialog };
  }

  /** Takes the CANCEL of our INVITE transaction. Its 200 has been sent. */
  onCancel(cancel: SipRequest): void {
    if (this.#uas?.state !== 'proceeding') return;
    this.#uas.refuse(487);
    this.#end({ why: 'cancelled', ...causeOf(cancel.headers) });
    this.#close();
  }

  onAck(ack: SipRequest): void {
    if (this.#uas?.takeAck(ack) === true) return;
    const waiting = this.#unacknowledged;
    if (waiting === undefined || parseCSeq(ack.headers.get('cseq'))?.number !== waiting.number) return;
    waiting.stop();
    this.#unacknowledged = undefined;
    if (waiting.offered && ack.body.length > 0) this.#emit({ type: 'answer', body: ack.body });
  }

  /** Takes a request within one of its dialogs. */
  onRequest(transaction: ServerTransaction): void {
    const { request } = transaction;
    if (this.#isOfOtherFork(request)) {
      transaction.respond(request.method === 'BYE' ? 200 : 481);
      return;
    }
    const dialog = this.#dialogOf(request) ?? this.#dialog;
    const number = parseCSeq(request.headers.get('cseq'))?.number ?? 0;
    if (dialog !== undefined) {
      if (dialog.remoteNumber !== undefined && number <= dialog.remoteNumber) {
        transaction.respond(500); // §12.2.2: out of order
        return;
      }
      dialog.remoteNumber = number;
    }
    if (request.method === 'BYE') this.#onBye(transaction);
    else if (this.#ended) transaction.respond(481);
    else if (request.method === 'PRACK') {
      if (this.#uas === undefined) transaction.respond(481);
      else if (this.#uas.onPrack(transaction) === 'offer') this.#takeOffer(transaction);
    } else if (request.method === 'REFER') this.#transfers.onRefer(transaction);
    else if (request.method === 'NOTIFY') this.#transfers.onNotify(transaction);
    else if (request.method === 'INVITE' || request.method === 'UPDATE') this.#onModification(transaction, dialog);
    else if (request.method === 'INFO') answerInfo(transaction, (event) => this.#emit(event));
    else {
      const response = transaction.make(request.method === 'OPTIONS' ? 200 : 405);
      response.headers.add('allow', ALLOWED);
      transaction.send(response);
    }
  }

  due(now: number): void {
    if (this.#cancelledAt <= now) {
      this.#cancelledAt = Infinity;
      this.#end({ why: 'local' });
    }
    if (this.#inviteExpiresAt <= now) {
      this.#inviteExpiresAt = Infinity;
      if (this.#uas?.state === 'proceeding') {
        this.#uas.refuse(487);
        this.#end({ why: 'expired' });
        this.#close();
        return;
      }
    }
    this.#changes.due(now);
    if (!this.#ended) this.#schedule();
  }

  #onBye(transaction: ServerTransaction): void {
    transaction.respond(200);
    const end: CallEnd = { why: 'bye', ...causeOf(transaction.request.headers) };
    if (this.#uac !== undefined && !this.#established) {
      this.#uac.hungUp(tagOf(transaction.request.headers.get('from')) ?? '', end);
      return;
    }
    if (this.#uas?.state === 'proceeding') this.#uas.refuse(487);
    this.#uas?.stop();
    this.#end(end);
    this.#close();
  }

  #onModification(transaction: ServerTransaction, dialog: Dialog | undefined): void {
    const { request } = transaction;
    const update = request.method === 'UPDATE';
    const describes = request.body.length > 0 || !update;
    if (describes && contentType(request.headers) !== 'application/sdp' && request.body.length > 0) {
      refuseType(transaction);
      return;
    }
    // §14.2 and RFC 3311 §5.2: one exchange at a time; ours in flight is glare, theirs unanswered is their haste.
    const early = this.#uac !== undefined && !this.#established && !this.#uac.isSettled(tagOf(request.headers.get('from')) ?? '');
    const glare = this.#changes.pending || (update && describes && early);
    const hasty =
      this.#offer !== undefined ||
      this.#unacknowledged !== undefined ||
      (describes && this.#uas !== undefined && !this.#uas.isSettled);
    if (hasty || (!update && !this.#established)) {
      refuseForNow(transaction, this.#context.entropy.fraction());
      return;
    }
    if (glare && describes) {
      transaction.respond(491);
      return;
    }
    if (isTooSmall(request.headers, transaction.source)) {
      refuseInterval(transaction);
      return;
    }
    if (dialog !== undefined) dialog.target = contactOf(request.headers) ?? dialog.target;
    if (!describes) {
      this.#acceptModification(transaction, NO_BODY);
      return;
    }
    if (!update) transaction.respond(100);
    this.#takeOffer(transaction);
  }

  #takeOffer(transaction: ServerTransaction): void {
    if (this.#offer !== undefined) {
      transaction.respond(500);
      this.#uas?.goOn();
      return;
    }
    this.#offer = transaction;
    this.#emit({ type: 'offer', body: transaction.request.body });
  }

  /** Sends 200 to a re-INVITE or UPDATE, and renews the session timer. */
  #acceptModification(transaction: ServerTransaction, body: Uint8Array): void {
    const { request } = transaction;
    const { response, timer } = acceptance(this.#context, transaction, body);
    if (!transaction.send(response)) return;
    if (this.#established) this.#changes.startTimer(timer);
    if (request.method !== 'INVITE') return;
    this.#unacknowledged = new SuccessRetransmission(this.#context, transaction, request.body.length === 0, () => {
      // §14.2: no ACK of a re-INVITE's 2xx ends the session.
      this.#unacknowledged = undefined;
      this.#sendBye();
      this.#end({ why: 'unacknowledged' });
    });
  }

  #sendBye(): void {
    const dialog = this.#dialog;
    if (dialog === undefined || this.#closed) return;
    this.#transfers.close();
    sendBye(this.#context, dialog, this.#credentials, () => this.#close());
  }

  #end(end: CallEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#changes.stop();
    this.#transfers.close();
    this.#cancelledAt = Infinity;
    this.#inviteExpiresAt = Infinity;
    this.#schedule();
    this.#unacknowledged?.stop();
    this.#unacknowledged = undefined;
    // A re-INVITE that still waits for its answer is over with the dialog (§15.1.2).
    this.#offer?.respond(487);
    this.#offer = undefined;
    this.#emitEnd({ type: 'ended', end });
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#context.layer.deadlines.set(this, Infinity);
    for (const key of this.#keys) this.#context.leave(key, this);
    this.#keys.clear();
    this.#context.closed(this);
  }

  #enter(dialog: Dialog): void {
    const key = dialogKey(dialog.callId, dialog.localTag, dialog.remoteTag);
    if (this.#keys.has(key) || this.#closed) return;
    this.#keys.add(key);
    this.#context.enter(key, this);
  }

  /**
   * Whether it comes from a fork that has not got the call: its numbers, its target and its end are none of the call's.
   */
  #isOfOtherFork(request: SipRequest): boolean {
    return this.#established && this.#uac !== undefined && (tagOf(request.headers.get('from')) ?? '') !== this.#dialog?.remoteTag;
  }

  #dialogOf(request: SipRequest): Dialog | undefined {
    if (this.#established || this.#uac === undefined) return undefined;
    return this.#uac.dialogOf(tagOf(request.headers.get('from')) ?? '');
  }

  #schedule(): void {
    this.#context.layer.deadlines.set(this, Math.min(this.#changes.deadline, this.#cancelledAt, this.#inviteExpiresAt));
  }

  #emit(event: CallEvent): void {
    if (!this.#ended) this.#emitEnd(event);
  }

  #emitEnd(event: CallEvent): void {
    this.#context.tell(this, event);
  }
}
