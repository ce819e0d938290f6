/** A call from a carrier: who may call, which application it is for, and its leg. */
import type { IncomingCall } from '../../call/ports/leg.ts';
import type { RejectReason } from '../../event/hangup.ts';
import { SIP_RETRY_AFTER_SEC } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { toE164 } from '../../phone-number.ts';
import { type AudioAgreement, Negotiation } from '../../sdp/negotiation.ts';
import type { CallEvent } from '../../sip/agent-context.ts';
import type { Call } from '../../sip/call/call.ts';
import { NO_BODY, type SipRequest } from '../../sip/message/message.ts';
import { parseNameAddress, parseUri } from '../../sip/message/uri.ts';
import { REJECT_STATUS } from './cause.ts';
import { isRefused, PhoneLeg, type PhoneLegOptions } from './phone-leg.ts';

const NO_PORTS = { cause: 'carrier_congested', by: 'system', description: 'No media ports are free' } as const;

export class InboundLeg extends PhoneLeg {
  readonly #call: Call;
  readonly #offer: Uint8Array;
  #ringing = false;
  /** Our answer, once made: 183 and 200 say the same (RFC 3261 §13.2.1). */
  #answer: { readonly body: Uint8Array; readonly agreement: AudioAgreement } | undefined;
  #early = false;

  constructor(options: PhoneLegOptions, call: Call, offer: Uint8Array) {
    super(options, 'inbound');
    this.#call = call;
    this.call = call;
    this.#offer = offer;
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

  /** An inbound call is not cancelled but hung up. */
  cancel(): void {
    this.hangup();
  }

  hangup(): void {
    if (!this.over) this.options.driver.run((now) => this.#call.hangUp(now));
  }

  /** What the call says; the carrier passes it on. */
  take(event: CallEvent): void {
    if (event.type === 'accepted') this.signal({ type: 'leg.answered' });
    else this.onCallEvent(event);
  }

  /** An answer to our late offer that cannot be used leaves no call (RFC 3261 §13.2.2.4). */
  protected override onAnswer(body: Uint8Array): boolean {
    if (super.onAnswer(body)) return true;
    this.giveUp({ cause: 'failed', by: 'network', description: 'The far end answered with audio that cannot be used' });
    return false;
  }

  async #describeFor(send: (body: Uint8Array) => void): Promise<void> {
    const negotiation = await this.describe();
    if (this.over) return;
    if (negotiation === undefined) {
      const retry = [['retry-after', String(SIP_RETRY_AFTER_SEC)]] as const;
      this.end(NO_PORTS);
      this.options.driver.run((now) => this.#call.refuse(503, retry, now));
      return;
    }
    if (this.#offer.length === 0) {
      send(negotiation.offer());
      return;
    }
    if (this.#answer === undefined) {
      const answer = negotiation.answer(this.#offer);
      if (isRefused(answer)) {
        this.options.driver.run((now) => this.#call.refuse(answer.refused, [], now));
        return;
      }
      this.#answer = answer;
    }
    this.apply(this.#answer.agreement);
    send(this.#answer.body);
  }
}

/** E.164 of the caller; `""` when the far end withholds it or it is no number (interface, Session). */
export function callerId(request: SipRequest): string {
  const from = parseNameAddress(request.headers.get('from') ?? '');
  const uri = from === undefined ? undefined : parseUri(from.uri);
  return uri === undefined || uri.user.toLowerCase() === 'anonymous' ? '' : (toE164(uri.user) ?? '');
}

/** The number called: the Request-URI's, else that of To. */
export function calledNumbers(request: SipRequest): string[] {
  const to = parseNameAddress(request.headers.get('to') ?? '');
  const users = [parseUri(request.uri)?.user, to === undefined ? undefined : parseUri(to.uri)?.user];
  return [...new Set(users.flatMap((user) => (user === undefined ? [] : (toE164(user) ?? []))))];
}

export interface InboundOptions {
  readonly log: Log;
  /** The application of a number. Rejects when it cannot be known now. */
  numberOwner(e164: string): Promise<string | undefined>;
  /** The trunk of a source address, and its leg options; undefined: not one of ours. */
  trunkOf(address: string): string | undefined;
  /** Takes a channel of the trunk; undefined when all are in use. */
  reserve(trunk: string, address: string): PhoneLegOptions | undefined;
  onInvite(call: IncomingCall & { readonly trunk: string }): void | Promise<void>;
}

/** Decides about one INVITE. `refuse` and `listen` act on its call. */
export async function admitInvite(
  options: InboundOptions,
  call: Call,
  request: SipRequest,
  address: string,
  refuse: (status: number, fields?: readonly (readonly [string, string])[]) => void,
  listen: (listener: (event: CallEvent) => void) => void,
): Promise<void> {
  // The caller may give up while the number is looked up.
  let gone = false;
  listen((event) => {
    gone ||= event.type === 'ended';
  });
  const retry = [['retry-after', String(SIP_RETRY_AFTER_SEC)]] as const;
  const trunk = options.trunkOf(address);
  if (trunk === undefined) {
    refuse(403);
    return;
  }
  const numbers = calledNumbers(request);
  if (numbers.length === 0) {
    refuse(404);
    return;
  }
  let owner: { did: string; appUuid: string } | undefined;
  try {
    for (const did of numbers) {
      const appUuid = await options.numberOwner(did);
      if (gone) return;
      if (appUuid !== undefined) {
        owner = { did, appUuid };
        break;
      }
    }
  } catch {
    options.log.warn({ trunk }, 'a call was refused: its number could not be looked up');
    if (!gone) refuse(503, retry);
    return;
  }
  if (owner === undefined) {
    refuse(404);
    return;
  }
  const leg = options.reserve(trunk, address);
  if (leg === undefined) {
    refuse(503, retry);
    return;
  }
  if (request.body.length > 0) {
    const trial = new Negotiation({ host: '127.0.0.1', port: 9, codecs: leg.codecs, sessionId: 0 }).answer(request.body);
    if (isRefused(trial)) {
      leg.onEnded();
      refuse(trial.refused);
      return;
    }
  }
  const inbound = new InboundLeg(leg, call, request.body);
  listen((event) => inbound.take(event));
  await options.onInvite({
    callerId: callerId(request),
    ...owner,
    trunk,
    leg: inbound,
    listen: (listener) => inbound.listen(listener),
  });
}
