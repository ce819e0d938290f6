/**
 * Our own requests that keep or change the session of a call: the refreshes of the session timer (RFC 4028 §10) and
 * re-INVITEs with another description (RFC 3261 §14.1). One is under way at a time.
 */
import { SIP_RETRY_AFTER_SEC, SIP_T1_MS } from '../../limits.ts';
import type { AgentContext } from '../agent-context.ts';
import type { Credentials } from '../message/digest.ts';
import type { CallEvent } from './call-event.ts';
import type { Dialog } from './dialog.ts';
import { Refresh, type RefreshOptions } from './refresh.ts';
import { expiresAfterMs, refreshAfterMs, type SessionTimer } from './session-timer.ts';

/** What the call gives and is told. */
interface SessionOwner {
  readonly credentials: Credentials | undefined;
  /** Whether we made the Call-ID. */
  readonly ownsCallId: boolean;
  /** The dialog of the call while it is up. */
  dialog(): Dialog | undefined;
  /** Whether an exchange of the far end, or the ACK of the INVITE, is still open. */
  isBusy(): boolean;
  farAllowsUpdate(): boolean;
  /** Our description as the far end last accepted it. */
  description(): Uint8Array;
  accepted(description: Uint8Array): void;
  emit(event: CallEvent): void;
  schedule(): void;
  /** The far end does not know the dialog, or does not answer; or nobody refreshed the session in time. */
  onLost(why: 'gone' | 'session_expired'): void;
}

interface Offer {
  readonly describe: () => Uint8Array;
  /** The answers that end the call. No answer counts as 408 (RFC 3261 §8.1.3.1). */
  readonly endedBy: readonly (481 | 408)[];
}

/** RFC 3261 §12.2.1.2. */
const GONE = [481, 408] as const;

export class SessionChanges {
  readonly #context: AgentContext;
  readonly #owner: SessionOwner;
  #request: Refresh | undefined;
  #timer: SessionTimer | undefined;
  #refreshAt = Infinity;
  /** The far end has refused an UPDATE, whatever its Allow says: the session is refreshed by re-INVITE from then on. */
  #isUpdateRefused = false;
  #expireAt = Infinity;
  /**
   * Describes the session for our next re-INVITE, and when that is to be sent. What the far end has changed meanwhile
   * is in it: a description never falls behind one that was sent (RFC 3264 §8).
   */
  #wanted: Offer | undefined;
  /** The answer to a refresh that came while an offer waited. It counts unless that offer has an answer of its own. */
  #heldBack: Uint8Array | undefined;
  #offerAt = Infinity;

  constructor(context: AgentContext, owner: SessionOwner) {
    this.#context = context;
    this.#owner = owner;
  }

  /** Whether a request of ours waits for its answer. */
  get pending(): boolean {
    return this.#request?.pending === true;
  }

  /** The session timer of the call. Undefined when it has none. */
  get timer(): SessionTimer | undefined {
    return this.#timer;
  }

  /** When `due` is to be called while the call is up, in milliseconds. */
  get deadline(): number {
    return Math.min(this.#refreshAt, this.#expireAt, this.#offerAt);
  }

  /**
   * Starts or restarts the session timer (RFC 4028 §10), unless we take part in none with that far end. Undefined means
   * that it wants none.
   */
  startTimer(settled: SessionTimer | undefined): void {
    const { now } = this.#context.layer;
    const timer = this.#owner.dialog()?.peer.profile?.sessionTimer === false ? undefined : settled;
    this.#timer = timer;
    this.#refreshAt = timer?.ours === true ? now + refreshAfterMs(timer) : Infinity;
    this.#expireAt = timer === undefined ? Infinity : now + expiresAfterMs(timer);
    this.#owner.schedule();
  }

  /**
   * Offers a changed session, once no other exchange is under way. `answer` or `offer_refused` follows for the last
   * offer, unless the call ends by what the far end answers: `endedBy` has the statuses.
   */
  offer(describe: () => Uint8Array, endedBy: Offer['endedBy'] = GONE): void {
    this.#wanted = { describe, endedBy };
    this.#sendOffer();
  }

  /** The far end is at another place: what waits is sent there, once what has come from there is worked on. */
  moved(): void {
    this.#owner.emit({ type: 'moved' });
    this.#request?.moved();
    if (this.#wanted === undefined) return;
    this.#offerAt = this.#context.layer.now;
    this.#owner.schedule();
  }

  due(now: number): void {
    if (this.#expireAt <= now) {
      this.#owner.onLost('session_expired');
      return;
    }
    if (this.#offerAt <= now) {
      this.#offerAt = Infinity;
      this.#sendOffer();
    }
    if (this.#refreshAt <= now) {
      this.#refreshAt = Infinity;
      this.#sendRefresh();
    }
  }

  #sendRefresh(): void {
    const dialog = this.#owner.dialog();
    if (dialog === undefined || this.#timer === undefined) return;
    const retry = (at: number) => {
      this.#refreshAt = at;
      this.#owner.schedule();
    };
    if (this.pending || this.#owner.isBusy()) {
      retry(this.#context.layer.now + SIP_RETRY_AFTER_SEC * 1000);
      return;
    }
    const options = this.#options(this.#owner.description());
    const update = this.#owner.farAllowsUpdate() && !this.#isUpdateRefused;
    this.#send(dialog, {
      ...options,
      update,
      onRefreshed: (settled, response) => {
        options.onRefreshed(settled);
        // The answer to the description that was repeated may be another than before (RFC 3264 §8). It would be taken
        // for that to an offer that waits.
        if (response.body.length > 0) this.#heldBack = response.body;
        this.#tellHeldBack();
      },
      onRetry: (at, status) => {
        this.#isUpdateRefused ||= update && status !== 0 && status !== 491;
        this.#whileUp(() => retry(at));
      },
    });
  }

  #sendOffer(): void {
    const dialog = this.#owner.dialog();
    const offer = this.#wanted;
    if (dialog === undefined || offer === undefined) return;
    const retry = (at: number) => {
      this.#wanted ??= offer;
      this.#offerAt = at;
      this.#owner.schedule();
    };
    if (this.pending || this.#owner.isBusy()) {
      retry(this.#context.layer.now + SIP_T1_MS);
      return;
    }
    this.#wanted = undefined;
    const body = offer.describe();
    const options = this.#options(body);
    const refused = (status: number) => {
      this.#owner.emit({ type: 'offer_refused', status });
      this.#tellHeldBack();
    };
    this.#send(dialog, {
      ...options,
      onRefreshed: (settled, response) => {
        options.onRefreshed(settled);
        this.#owner.accepted(body);
        this.#heldBack = undefined;
        this.#owner.emit({ type: 'answer', body: response.body });
      },
      onRefused: refused,
      onGone: (status) => {
        if (offer.endedBy.includes(status)) options.onGone();
        else refused(status);
      },
      onRetry: (at) => this.#whileUp(() => retry(at)),
    });
  }

  #tellHeldBack(): void {
    const body = this.#heldBack;
    if (body === undefined || this.#wanted !== undefined) return;
    this.#heldBack = undefined;
    this.#owner.emit({ type: 'answer', body });
  }

  #send(dialog: Dialog, options: RefreshOptions): void {
    this.#request = new Refresh(this.#context, dialog, this.#timer, options);
    this.#request.start();
  }

  /** What a refresh and a changed session have in common. */
  #options(description: Uint8Array) {
    const { credentials, ownsCallId } = this.#owner;
    return {
      credentials,
      ownsCallId,
      update: false,
      description,
      onRefreshed: (settled: SessionTimer | undefined) => this.#whileUp(() => this.startTimer(settled)),
      onGone: () => this.#whileUp(() => this.#owner.onLost('gone')),
    };
  }

  #whileUp(act: () => void): void {
    if (this.#owner.dialog() !== undefined) act();
  }
}
