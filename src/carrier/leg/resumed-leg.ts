/**
 * The leg of a call that another node had: its dialog goes on here, and a re-INVITE makes the far end send its requests
 * and its audio to this node.
 *
 *   resume ─re-INVITE, own Contact and description─► answered: the call goes on
 *                                                   answered with no audio that can be used: ended by BYE
 *                                                   refused or late: forgotten, without BYE
 */
import type { Addresses } from '../../sdp/description.ts';
import type { Call } from '../../sip/call/call.ts';
import type { CallEvent } from '../../sip/call/call-event.ts';
import { canDescribe, PhoneLeg, type PhoneLegOptions } from './phone-leg.ts';

export class ResumedPhoneLeg extends PhoneLeg {
  readonly #call: Call;
  #followed: ((why: string) => void) | undefined;
  /** The far end has accepted our re-INVITE: its requests and its audio come here. */
  #isFollowed = false;

  constructor(options: PhoneLegOptions, call: Call) {
    super(options, call.direction);
    this.#call = call;
    this.call = call;
    this.answered = true;
  }

  /** Asks the far end to follow. Resolves with `""` once it has, or with why it did not. */
  async follow(timeoutMs: number): Promise<string> {
    if (!canDescribe(this.options)) return 'its audio cannot be encrypted here';
    const negotiation = await this.describe();
    if (negotiation === undefined) return 'no media ports are free';
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#followed = resolve;
    const cancel = this.options.wait(timeoutMs, () => resolve('the far end did not answer in time'));
    // The far end may not know the dialog from this address, and stay with its own node: it hears no BYE from here.
    this.options.driver.run((now) => this.#call.offer(() => negotiation.offer(), now, []));
    const why = await promise;
    cancel();
    this.#followed = undefined;
    if (why === '') this.signalResumed();
    return why;
  }

  /** Takes an event of the call. */
  take(event: CallEvent): void {
    this.onCallEvent(event);
    if (event.type === 'offer_refused') this.#followed?.(`the far end refused with ${event.status}`);
    else if (event.type === 'ended') this.#followed?.('the call has ended');
  }

  protected override onAnswer(body: Uint8Array, addresses?: Addresses): boolean {
    const isTaken = super.onAnswer(body, addresses);
    this.#isFollowed = true;
    this.#followed?.(isTaken ? '' : 'the far end answered with no audio that can be used');
    return isTaken;
  }

  /** Lets the call go that could not go on here. A far end that has followed all the same would wait for us in vain. */
  leave(): void {
    if (this.#isFollowed) this.hangup();
    else this.handOver.release();
  }

  hangup(): void {
    if (!this.over) this.options.driver.run((now) => this.#call.hangUp(now));
  }

  cancel(): void {
    this.hangup();
  }

  // It was answered long ago.
  start(): void {}
  ring(): void {}
  startEarlyMedia(): void {}
  answer(): void {}
  reject(): void {}
}
