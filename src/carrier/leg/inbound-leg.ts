/** The leg of a call that came in: 180, 183 and 200 of our side of the INVITE. */
import type { RejectReason } from '../../event/hangup.ts';
import type { Addresses } from '../../sdp/description.ts';
import { type AudioAgreement, isRefused } from '../../sdp/negotiation.ts';
import type { Call } from '../../sip/call/call.ts';
import type { CallEvent } from '../../sip/call/call-event.ts';
import { NO_BODY, type SipRequest } from '../../sip/message/message.ts';
import { NO_PORTS, REJECT_STATUS, UNUSABLE } from './cause.ts';
import { PhoneLeg, type PhoneLegOptions } from './phone-leg.ts';

const NO_ANSWER = { cause: 'failed', by: 'network', description: 'The audio that was offered cannot be answered' } as const;

export class InboundLeg extends PhoneLeg {
  readonly #call: Call;
  /** The INVITE, until the call is answered on both sides. */
  #invite: SipRequest | undefined;
  #ringing = false;
  /** Our answer, once it is made. 183 and 200 carry the same one (RFC 3261 §13.2.1). */
  #answer: { readonly body: Uint8Array; readonly agreement: AudioAgreement } | undefined;
  #early = false;
  /** Our 200 made an offer, and its ACK has not come. */
  #awaitsAnswer = false;

  constructor(options: PhoneLegOptions, call: Call, request: SipRequest) {
    super(options, 'inbound');
    this.#call = call;
    this.call = call;
    this.#invite = request;
  }

  start(): void {}

  ring(): void {
    if (this.over || this.answered || this.#ringing) return;
    this.#ringing = true;
    this.options.driver.run((now) => this.#call.provisional(180, NO_BODY, now));
    this.signalRinging();
  }

  startEarlyMedia(): void {
    if (this.over || this.answered || this.#early || !this.#call.canDescribeEarly) return;
    this.#early = true;
    void this.#describeFor((body) => {
      if (this.answered) return;
      this.options.driver.run((now) => this.#call.provisional(183, body, now));
      this.signal({ type: 'leg.early_media' });
    });
  }

  answer(): void {
    if (this.over || this.answered) return;
    this.answered = true;
    void this.#describeFor((body) => {
      this.options.driver.run((now) => this.#call.accept(body, now));
    });
  }

  reject(reason: RejectReason): void {
    if (!this.over) this.options.driver.run((now) => this.#call.refuse(REJECT_STATUS[reason], [], now));
  }

  /** Hangs up: an inbound call cannot be cancelled. */
  cancel(): void {
    this.hangup();
  }

  hangup(): void {
    if (!this.over) this.options.driver.run((now) => this.#call.hangUp(now));
  }

  /** Takes an event of the call. A late offer is answered with the ACK: until then there is no stream to speak of. */
  take(event: CallEvent): void {
    if (event.type !== 'accepted') this.onCallEvent(event);
    else if (this.isAgreed) this.#tellAnswered();
    else this.#awaitsAnswer = true;
  }

  /**
   * Hangs up when the answer to our late offer is missing or cannot be used (RFC 3261 §13.2.2.4). An answer to a later
   * offer that cannot be used leaves what was agreed on before.
   */
  protected override onAnswer(body: Uint8Array, addresses?: Addresses): boolean {
    const isTaken = super.onAnswer(body, addresses);
    if (!isTaken && !this.isAgreed) this.giveUp(UNUSABLE);
    if (!isTaken || !this.#awaitsAnswer) return isTaken;
    this.#awaitsAnswer = false;
    this.#tellAnswered();
    return true;
  }

  #tellAnswered(): void {
    const invite = this.#invite;
    this.#invite = undefined;
    if (invite !== undefined) this.signalAnswered(invite.headers);
  }

  async #describeFor(send: (body: Uint8Array) => void): Promise<void> {
    const offer = this.#invite?.body ?? NO_BODY;
    const negotiation = await this.describe();
    if (this.over) return;
    if (negotiation === undefined) {
      this.end(NO_PORTS);
      this.options.driver.run((now) => this.#call.refuse(503, [], now));
      return;
    }
    if (offer.length === 0) {
      send(negotiation.offer());
      return;
    }
    this.withAddresses(offer, (addresses) => {
      if (this.#answer === undefined) {
        const answer = negotiation.answer(offer, addresses);
        if (isRefused(answer)) {
          this.end(NO_ANSWER);
          this.options.driver.run((now) => this.#call.refuse(answer.refused, [], now));
          return;
        }
        this.#answer = answer;
      }
      this.apply(this.#answer.agreement);
      send(this.#answer.body);
    });
  }

  /** A session that was changed before the answer is what the answer agrees on. */
  protected override onAgreed(answer: { readonly body: Uint8Array; readonly agreement: AudioAgreement }): void {
    this.#answer = answer;
  }
}
