/**
 * A call: one INVITE, the dialog it makes, and the requests within it until its end. Orders are methods that take the
 * time. Events come out as `CallEvent`s; `ended` comes exactly once.
 *
 *   opening --2xx--> up --BYE, loss--> ended --final response--> closed
 *      \------refusal, CANCEL--------/
 *
 * A call that has ended may still be sent what belongs to it. Nothing may arrive for one that is closed.
 */
import type { Timed } from '../deadlines.ts';
import { isAt, type Peer, type Place } from '../flow.ts';
import { answerInfo } from '../info.ts';
import { ALLOWED, allows, causeOf } from '../message/capability.ts';
import type { Credentials } from '../message/digest.ts';
import { NO_BODY, parseCSeq, parseDeltaSeconds, type SipRequest } from '../message/message.ts';
import type { Replaces } from '../message/replaces.ts';
import { parseNameAddress, parseUri, tagOf } from '../message/uri.ts';
import type { ServerTransaction } from '../transaction/server.ts';
import type { CallContext } from './call-context.ts';
import type { CallEnd, CallEvent } from './call-event.ts';
import { type Dialog, dialogKey, dialogOfRequest, type FarEnd, replacing } from './dialog.ts';
import { FarChanges } from './far-changes.ts';
import { sendBye, sendProbe } from './probe.ts';
import { SessionChanges } from './session-changes.ts';
import { type CallSnapshot, dialogOfSnapshot, snapshotOf } from './snapshot.ts';
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
  readonly #farChanges: FarChanges;
  readonly #transfers: Transfers;
  readonly #keys = new Set<string>();
  #dialog: Dialog | undefined;
  #uas: UasInvite | undefined;
  #uac: UacInvite | undefined;
  #phase: 'opening' | 'up' | 'ended' | 'closed' = 'opening';
  /** Our session description as the far end last accepted it. A refreshing re-INVITE repeats it. */
  #description: Uint8Array = NO_BODY;
  #farAllowsUpdate = false;
  #cancelledAt = Infinity;
  /** The time at which an INVITE that came in expires unanswered, by its Expires (RFC 3261 §13.3.1). */
  #inviteExpiresAt = Infinity;
  /** The probe whose silence would end the call: the far end has not been heard since, nor has it moved. */
  #probe: object | undefined;

  constructor(context: CallContext<Call>, id: number, direction: 'inbound' | 'outbound', credentials: Credentials | undefined) {
    this.#context = context;
    this.id = id;
    this.direction = direction;
    this.#credentials = credentials;
    this.#changes = new SessionChanges(context, {
      credentials,
      ownsCallId: direction === 'outbound',
      dialog: () => this.#whileUp,
      isBusy: () => this.#farChanges.pending || this.#uas?.state === 'accepted',
      farAllowsUpdate: () => this.#farAllowsUpdate,
      description: () => this.#description,
      accepted: (description) => {
        this.#description = description;
        this.#probe = undefined;
      },
      emit: (event) => this.#emit(event),
      schedule: () => this.#schedule(),
      onLost: (why) => this.#endByBye({ why }),
    });
    this.#farChanges = new FarChanges(context, {
      isEstablished: () => this.#phase === 'up',
      openOffer: (request) => this.#openOffer(request),
      onOffer: (body) => this.#emit({ type: 'offer', body }),
      onAnswer: (body) => this.#emit({ type: 'answer', body }),
      onAccepted: (timer) => {
        if (this.#phase === 'up') this.#changes.startTimer(timer);
      },
      onUnacknowledged: () => this.#endByBye({ why: 'unacknowledged' }),
    });
    this.#transfers = new Transfers(context, {
      credentials,
      isOurs: direction === 'outbound',
      dialog: () => this.#whileUp,
      emit: (event) => this.#emit(event),
    });
  }

  /** The dialog of the call while it is up. */
  get #whileUp(): Dialog | undefined {
    return this.#phase === 'up' ? this.#dialog : undefined;
  }

  get #isOver(): boolean {
    return this.#phase === 'ended' || this.#phase === 'closed';
  }

  /** Whether an INVITE of ours has no 2xx yet, so that each fork has a dialog of its own. */
  get #isForked(): boolean {
    return this.#uac !== undefined && this.#uac.state !== 'answered';
  }

  /** Inbound: sends 180 or 183. A body is our session description. It has no effect after the answer or the end. */
  provisional(status: 180 | 183, body: Uint8Array, now: number): void {
    this.#context.layer.now = now;
    if (!this.#isOver) this.#uas?.provisional(status, body);
  }

  /** Inbound: whether our session description can go out before the answer. */
  get canDescribeEarly(): boolean {
    return this.#uas?.canDescribeEarly === true;
  }

  /** Inbound: sends 200 with our session description, which is the answer, or the offer when the INVITE had none. */
  accept(body: Uint8Array, now: number): void {
    this.#context.layer.now = now;
    if (this.#isOver || this.#uas === undefined) return;
    this.#description = body;
    this.#uas.accept(body);
  }

  /** Inbound, before the answer: sends a final failure response. `ended` follows. */
  refuse(status: number, fields: readonly (readonly [string, string])[], now: number): void {
    this.#context.layer.now = now;
    if (this.#isOver || this.#uas?.state !== 'proceeding') return;
    this.#uas.refuse(status, fields);
    this.#end({ why: 'local' });
    this.#close();
  }

  /** Ends the call, at any time: by CANCEL (`reason` is its Reason, RFC 3326), a final response or BYE. */
  hangUp(now: number, reason = ''): void {
    this.#context.layer.now = now;
    if (this.#isOver) return;
    if (this.#uac !== undefined && this.#isForked) {
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
    this.#endByBye({ why: 'local' });
  }

  /** Answers an `offer` event with our answer, or with our offer when the event had an empty body. */
  answerOffer(body: Uint8Array, now: number): void {
    this.#context.layer.now = now;
    const request = this.#farChanges.answer(body);
    if (request === undefined) return;
    this.#description = body;
    this.#uac?.changed(forkOf(request));
    this.#uas?.changed();
    this.#uas?.goOn();
  }

  /**
   * Offers a changed session by re-INVITE, once nothing else is under way. `describe` is asked for the session as it is
   * then. `answer` or `offer_refused` follows. The call ends where the far end does not know it (481) or does not
   * answer (408), unless `endedBy` says otherwise.
   */
  offer(describe: () => Uint8Array, now: number, endedBy?: readonly (481 | 408)[]): void {
    this.#context.layer.now = now;
    if (this.#phase === 'up') this.#changes.offer(describe, endedBy);
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

  /**
   * Whether a Replaces names the dialog of this call. Some far ends write the two tags from where they stand
   * themselves, so either order counts. A call of ours is not named before its answer: each of its forks has a dialog.
   */
  isNamedBy({ callId, toTag, fromTag, earlyOnly }: Replaces): boolean {
    const dialog = this.#isOver ? undefined : this.#dialog;
    if (dialog?.callId !== callId || (earlyOnly && this.#phase === 'up')) return false;
    const { localTag, remoteTag } = dialog;
    return (localTag === toTag && remoteTag === fromTag) || (localTag === fromTag && remoteTag === toTag);
  }

  /** Refuses an `offer` event. The session goes on as before (RFC 3261 §14.2). */
  refuseOffer(status: number, now: number): void {
    this.#context.layer.now = now;
    this.#farChanges.refuse(status);
    this.#uas?.goOn();
  }

  /** Asks the far end whether it is still there, by OPTIONS within the dialog. `alive` or `ended` follows. */
  probe(now: number): void {
    this.#context.layer.now = now;
    const dialog = this.#whileUp;
    if (dialog === undefined || this.#probe !== undefined) return;
    const probe = {};
    this.#probe = probe;
    sendProbe(this.#context, dialog, this.#credentials, (outcome) => {
      const isLast = this.#probe === probe;
      if (isLast) this.#probe = undefined;
      if (outcome === 'alive') this.#emit({ type: 'alive' });
      else if (outcome !== 'away' && isLast && !this.#isOver) this.#endByBye({ why: outcome });
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
        this.#phase = 'up';
        this.#inviteExpiresAt = Infinity;
        this.#changes.startTimer(timer);
        this.#emit({ type: 'accepted' });
      },
      onConfirmed: () => {
        // Its INVITE is over: what is kept of it would be kept for as long as the call.
        this.#uas = undefined;
        if (this.#isOver) this.#sendBye();
        else this.#emit({ type: 'confirmed' });
      },
      onAnswer: (body) => this.#emit({ type: 'answer', body }),
      // A call that was hung up before has ended, and its BYE is due all the same.
      onUnacknowledged: () => this.#endByBye({ why: 'unacknowledged' }),
      onUnheard: () => {
        this.#end({ why: 'unacknowledged' });
        this.#close();
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
      onSentAnew: () => this.#emit({ type: 'sent_anew' }),
      onEarlyDialog: (dialog) => this.#enter(dialog),
      onProvisional: (status, body, fork) => {
        // A 180 with a session description is both: it rings, and there is something to hear.
        if (status === 180 || (status === 183 && body.length === 0)) this.#emit({ type: 'ringing' });
        else if (body.length === 0) this.#emit({ type: 'underway' });
        if (body.length > 0) this.#emit({ type: 'progress', body, fork });
      },
      onAnswered: (dialog, { headers, body }, timer, fork) => {
        this.#phase = 'up';
        this.#farAllowsUpdate = allows(headers, 'UPDATE');
        this.#enter(dialog);
        this.#dialog = dialog;
        this.#changes.startTimer(timer);
        // A session that an UPDATE has changed since is not changed back by the description of the 200.
        const isChanged = this.#uac?.hasChanged(dialog.remoteTag) === true;
        this.#emit({ type: 'answered', body: isChanged ? NO_BODY : body, isChanged, fork, headers });
      },
      onFailed: (end) => {
        this.#end(end);
        this.#close();
      },
      onSettled: () => this.#forgetForks(),
    });
    this.#uac.start();
  }

  /** What another node needs to go on. Undefined: the call is not up, or, when `settled`, an exchange is under way. */
  snapshot(settled: boolean): CallSnapshot | undefined {
    const { pending } = this.#farChanges;
    const isBusy = this.#changes.pending || pending || this.#transfers.isOwed || this.#uas?.state === 'accepted';
    const dialog = this.#whileUp;
    if (dialog === undefined || (settled && isBusy)) return undefined;
    const { timer } = this.#changes;
    return snapshotOf(dialog, { direction: this.direction, farAllowsUpdate: this.#farAllowsUpdate, timer });
  }

  /** Goes on with the call of another node. Nothing is sent; `offer` makes the far end follow. */
  resume(snapshot: CallSnapshot, ahead: number): void {
    this.#dialog = dialogOfSnapshot(snapshot, ahead);
    this.#phase = 'up';
    this.#farAllowsUpdate = snapshot.farAllowsUpdate;
    this.#enter(this.#dialog);
    // The re-INVITE that makes the far end follow refreshes the session: it says for how long (RFC 4028 §7.4).
    this.#changes.startTimer(snapshot.timer);
  }

  /** Our numbers go on so much higher: another node has used those between. */
  skip(numbers: number): void {
    if (this.#dialog !== undefined) this.#dialog.localNumber += numbers;
  }

  /** The far end, which was reached at one place, is at another one. */
  moved(from: Place, to: Peer): void {
    this.#uac?.moved(from, to);
    const dialog = this.#dialog;
    if (dialog?.peer.profile?.staysOnFlow === undefined || !isAt(dialog.peer, from)) return;
    dialog.peer = to;
    this.#probe = undefined;
    this.#changes.moved();
  }

  /** The device user at a place has perhaps started anew. `doubted` follows where the call is with it. */
  restarted(place: Place, username: string): void {
    const dialog = this.#whileUp;
    if (dialog === undefined || !isAt(dialog.peer, place)) return;
    if (parseUri(parseNameAddress(dialog.remote)?.uri ?? '')?.user === username) this.#emit({ type: 'doubted' });
  }

  /** Forgets the call, with which another node goes on. The far end hears nothing of it but what it waits for. */
  abandon(): void {
    this.#uas?.stop();
    this.#farChanges.abandon();
    this.#transfers.abandon();
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
    if (this.#uas?.takeAck(ack) !== true) this.#farChanges.onAck(ack);
  }

  /** Takes a request within one of its dialogs. */
  onRequest(transaction: ServerTransaction): void {
    const { request } = transaction;
    if (this.#isOfOtherFork(request)) {
      transaction.respond(request.method === 'BYE' ? 200 : 481);
      return;
    }
    const dialog = this.#isForked ? this.#uac?.dialogOf(forkOf(request)) : this.#dialog;
    const number = parseCSeq(request.headers.get('cseq'))?.number ?? 0;
    if (dialog !== undefined) {
      if (dialog.remoteNumber !== undefined && number <= dialog.remoteNumber) {
        transaction.respond(500); // §12.2.2: out of order
        return;
      }
      dialog.remoteNumber = number;
      this.#probe = undefined;
      const { source } = transaction;
      // It has another connection, or its NAT another port: that is where it is reached from now on.
      const before = dialog.peer;
      if (before.profile?.staysOnFlow === true && source.via === undefined) dialog.peer = source;
      if (!isAt(before, dialog.peer)) this.#changes.moved();
    }
    if (request.method === 'BYE') this.#onBye(transaction);
    else if (this.#isOver) transaction.respond(481);
    else if (request.method === 'PRACK') {
      if (this.#uas === undefined) transaction.respond(481);
      else if (this.#uas.onPrack(transaction) === 'offer' && !this.#farChanges.takeOffer(transaction)) this.#uas.goOn();
    } else if (request.method === 'REFER') this.#transfers.onRefer(transaction);
    else if (request.method === 'NOTIFY') this.#transfers.onNotify(transaction);
    else if (request.method === 'INVITE') {
      this.#uas?.assumeAck();
      this.#farChanges.assumeAck();
      this.#farChanges.take(transaction, dialog);
    } else if (request.method === 'UPDATE') this.#farChanges.take(transaction, dialog);
    else if (request.method === 'INFO') answerInfo(transaction, (event) => this.#emit(event));
    else {
      // OPTIONS: no other method is let in.
      const response = transaction.make(200);
      response.headers.add('allow', ALLOWED);
      transaction.send(response);
    }
  }

  due(now: number): void {
    if (this.#cancelledAt <= now) this.#end({ why: 'local' });
    else if (this.#inviteExpiresAt <= now) {
      this.#uas?.refuse(487);
      this.#end({ why: 'expired' });
      this.#close();
    } else this.#changes.due(now);
    this.#schedule();
  }

  #onBye(transaction: ServerTransaction): void {
    transaction.respond(200);
    const end: CallEnd = { why: 'bye', ...causeOf(transaction.request.headers) };
    if (this.#isForked) {
      this.#uac?.hungUp(forkOf(transaction.request), end);
      return;
    }
    if (this.#uas?.state === 'proceeding') this.#uas.refuse(487);
    this.#uas?.stop();
    this.#end(end);
    this.#close();
  }

  /** Whose offer has no answer, of the INVITE's own and of our changes. */
  #openOffer(request: SipRequest): 'ours' | 'theirs' | undefined {
    if (this.#uas !== undefined && !this.#uas.isSettled) return 'theirs';
    const isEarly = this.#isForked && this.#uac?.isSettled(forkOf(request)) !== true;
    return isEarly || this.#changes.pending ? 'ours' : undefined;
  }

  /** Ends the call, and its dialog by BYE. */
  #endByBye(end: CallEnd): void {
    this.#end(end);
    this.#sendBye();
  }

  /** Sends BYE. The callee's waits for the ACK of its 2xx (§15), and is sent then. */
  #sendBye(): void {
    const dialog = this.#dialog;
    if (dialog === undefined || this.#phase === 'closed' || this.#uas?.state === 'accepted') return;
    sendBye(this.#context, dialog, this.#credentials, () => this.#close());
  }

  #end(end: CallEnd): void {
    if (this.#isOver) return;
    this.#phase = 'ended';
    this.#schedule();
    this.#farChanges.stop();
    this.#transfers.close();
    this.#context.tell(this, { type: 'ended', end });
  }

  #close(): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#context.layer.deadlines.set(this, Infinity);
    for (const key of this.#keys) this.#context.leave(key, this);
    this.#keys.clear();
    this.#context.closed(this);
  }

  /** The INVITE is over, and with it the forks that have not got the call. */
  #forgetForks(): void {
    this.#uac = undefined;
    const own = this.#dialog && keyOf(this.#dialog);
    for (const key of this.#keys) {
      if (key === own) continue;
      this.#keys.delete(key);
      this.#context.leave(key, this);
    }
  }

  #enter(dialog: Dialog): void {
    const key = keyOf(dialog);
    if (this.#keys.has(key) || this.#phase === 'closed') return;
    this.#keys.add(key);
    this.#context.enter(key, this);
  }

  /**
   * Whether it comes from a fork that has not got the call: its numbers, its target and its end are none of the call's.
   */
  #isOfOtherFork(request: SipRequest): boolean {
    return this.#uac?.state === 'answered' && forkOf(request) !== this.#dialog?.remoteTag;
  }

  /** Sets when `due` is called next. Nothing falls due for a call that is over. */
  #schedule(): void {
    const at = this.#isOver ? Infinity : Math.min(this.#changes.deadline, this.#cancelledAt, this.#inviteExpiresAt);
    this.#context.layer.deadlines.set(this, at);
  }

  #emit(event: CallEvent): void {
    if (!this.#isOver) this.#context.tell(this, event);
  }
}

const keyOf = ({ callId, localTag, remoteTag }: Dialog): string => dialogKey(callId, localTag, remoteTag);

/** The tag by which a far end, or one of its forks, is known. */
const forkOf = (request: SipRequest): string => tagOf(request.headers.get('from')) ?? '';
