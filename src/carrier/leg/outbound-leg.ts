/** The leg of a call that we place, from the reserved channel to the 200. */
import type { DialOptions, LegEnd } from '../../call/ports/leg.ts';
import { SIP_EXTRA_HEADER_MAX_CHARS, SIP_EXTRA_HEADERS_MAX } from '../../limits.ts';
import type { Addresses } from '../../sdp/description.ts';
import type { CallEnd, CallEvent } from '../../sip/call/call-event.ts';
import type { Peer } from '../../sip/flow.ts';
import { isToken } from '../../sip/message/message.ts';
import { escapeUser, formatHostPort, quote } from '../../sip/message/uri.ts';
import type { InviteOptions } from '../../sip/user-agent.ts';
import { type Trunk, type TrunkAddress, trunkDomain } from '../trunk/trunk.ts';
import { PhoneLeg, type PhoneLegOptions } from './phone-leg.ts';

const UNREACHABLE: LegEnd = { cause: 'carrier_unreachable', by: 'network', description: 'The carrier could not be reached' };
const NO_PORTS: LegEnd = { cause: 'carrier_congested', by: 'system', description: 'No media ports are free' };
const UNUSABLE: LegEnd = { cause: 'failed', by: 'system', description: 'The far end answered with audio that cannot be used' };
const CANCELLED: LegEnd = { cause: 'cancelled', by: 'caller', description: 'The call was cancelled before it was answered' };

interface OutboundOptions {
  readonly trunk: Trunk;
  readonly address: TrunkAddress;
  readonly order: DialOptions;
  /** The address to send to. Undefined when the name of the trunk has none. */
  resolve(address: TrunkAddress): Promise<Peer | undefined>;
  /** Our host in From when the trunk does not know us by a user name. */
  localHost(peer: Peer): string;
}

export class OutboundLeg extends PhoneLeg {
  readonly #outbound: OutboundOptions;
  #started = false;
  #early = false;
  /** The fork whose session description is in use. */
  #described: string | undefined;

  constructor(options: PhoneLegOptions, outbound: OutboundOptions) {
    super(options, 'outbound', outbound.order.listener);
    this.#outbound = outbound;
  }

  start(): void {
    if (this.#started || this.over) return;
    this.#started = true;
    void this.#place();
  }

  ring(): void {}
  startEarlyMedia(): void {}
  answer(): void {}
  reject(): void {
    this.hangup();
  }

  cancel(): void {
    this.hangup();
  }

  hangup(): void {
    if (this.over) return;
    const { call } = this;
    if (call === undefined) this.end(CANCELLED);
    else this.options.driver.run((now) => call.hangUp(now));
  }

  protected override endOf(end: CallEnd): LegEnd {
    return end.why === 'local' && !this.answered ? CANCELLED : super.endOf(end);
  }

  async #place(): Promise<void> {
    const { trunk, address, order } = this.#outbound;
    const peer = await this.#outbound.resolve(address);
    // The peer is resolved first, because our address in SDP is the one on the way to it.
    const negotiation = peer === undefined ? undefined : await this.describe();
    if (this.over) return;
    if (peer === undefined || negotiation === undefined) {
      this.end(peer === undefined ? UNREACHABLE : NO_PORTS);
      return;
    }
    const domain = trunkDomain(address);
    const { transport } = address;
    const ours = trunk.username === undefined ? formatHostPort(this.#outbound.localHost(peer), undefined) : domain;
    const display = order.displayName === undefined ? '' : `${quote(order.displayName.replace(/[\x00-\x1f\x7f]/g, ' '))} `;
    const invite: InviteOptions = {
      peer,
      uri: `sip:${escapeUser(order.to)}@${domain}${transport === 'udp' ? '' : `;transport=${transport}`}`,
      from: `${display}<sip:${escapeUser(order.from)}@${ours}>`,
      to: `<sip:${escapeUser(order.to)}@${domain}>`,
      body: negotiation.offer(),
      credentials:
        trunk.username === undefined || trunk.password === undefined
          ? undefined
          : { username: trunk.username, password: trunk.password },
      fields: extraFields(order.sipHeaders ?? {}),
    };
    this.options.driver.run((now) => {
      this.call = this.options.driver.agent.invite(invite, now);
      if (this.call === undefined) this.end({ cause: 'carrier_congested', by: 'system', description: 'Too many calls' });
      else this.options.driver.listen(this.call, (event) => this.#take(event));
    });
  }

  #onProgress({ body, fork }: Described<'progress'>, addresses: Addresses | undefined): void {
    // A repeated description of the same fork, as in a 180 after a 183, changes nothing.
    if (this.#described !== fork && this.onAnswer(body, addresses)) this.#described = fork;
    if (this.#described === undefined || this.#early || this.answered) return;
    this.#early = true;
    this.signal({ type: 'leg.early_media' });
  }

  #onAnswered({ body, fork }: Described<'answered'>, addresses: Addresses | undefined): void {
    // The description of the 200 counts; one that an earlier reliable 18x of this fork gave may be missing here.
    if (body.length > 0 ? !this.onAnswer(body, addresses) : this.#described !== fork) {
      this.giveUp(UNUSABLE);
      return;
    }
    this.answered = true;
    this.signalAnswered();
  }

  #take(event: CallEvent): void {
    switch (event.type) {
      case 'ringing':
        this.signalRinging();
        return;
      case 'progress':
        this.withAddresses(event.body, (addresses) => this.#onProgress(event, addresses));
        return;
      case 'answered':
        this.withAddresses(event.body, (addresses) => this.#onAnswered(event, addresses));
        return;
      default:
        this.onCallEvent(event);
    }
  }
}

type Described<T extends CallEvent['type']> = Extract<CallEvent, { readonly type: T }>;

/** The names of header fields that an application may add. None of them is written by the user agent itself. */
const EXTENSION = /^(?:x-)/i;

/** The header fields that an application adds: names begin with `X-`, values are one line. Anything else is left out. */
export function extraFields(headers: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(headers)
    .filter(
      ([name, value]) =>
        EXTENSION.test(name) && isToken(name) && value.length <= SIP_EXTRA_HEADER_MAX_CHARS && !/[\r\n\0]/.test(value),
    )
    .slice(0, SIP_EXTRA_HEADERS_MAX);
}
