/**
 * The leg of a call that we place, from the reserved channel to the 200. It may take several attempts: over another
 * trunk when one fails before anything was heard of the callee, and once over the same trunk to the user that a 302
 * names.
 */
import type { DialOptions, LegEnd } from '../../call/ports/leg.ts';
import { SIP_EXTRA_HEADER_MAX_CHARS, SIP_EXTRA_HEADERS_MAX, SIP_TRUNK_SILENT_MS } from '../../limits.ts';
import type { Addresses } from '../../sdp/description.ts';
import type { Call } from '../../sip/call/call.ts';
import type { CallEnd, CallEvent } from '../../sip/call/call-event.ts';
import type { Peer } from '../../sip/flow.ts';
import type { Credentials } from '../../sip/message/digest.ts';
import { isToken, NO_BODY } from '../../sip/message/message.ts';
import { escapeUser, formatHostPort, parseUri } from '../../sip/message/uri.ts';
import type { InviteOptions } from '../../sip/user-agent.ts';
import { systemEntropy } from '../entropy.ts';
import { LOOPBACK_FIELD } from '../trunk/loopback.ts';
import { type Trunk, type TrunkAddress, trunkDomain } from '../trunk/trunk.ts';
import { CANCELLED, NO_PORTS, UNUSABLE } from './cause.ts';
import { DialledLeg } from './dialled-leg.ts';
import { assertedIdentity, dialledUsers, displayForm, numberOf, phoneForm } from './identity.ts';
import { canDescribe, type PhoneLegOptions } from './phone-leg.ts';

const UNREACHABLE: LegEnd = { cause: 'carrier_unreachable', by: 'network', description: 'The carrier could not be reached' };
const NO_SRTP: LegEnd = { cause: 'failed', by: 'system', description: 'Encrypted audio is required and not possible' };

/** One trunk that a call is tried over. Its channel and its turn are taken. */
export interface Attempt {
  readonly trunk: Trunk;
  readonly address: TrunkAddress;
  readonly options: PhoneLegOptions;
  /** Header fields that mark the call as our own (loopback.ts). */
  readonly marks: readonly (readonly [string, string])[];
  /** The wait until its turn, in milliseconds (`max_cps`). */
  readonly waitMs: number;
  /** Takes the turn of a further INVITE. The result is the wait until then. Undefined when it would be too long. */
  turn(): Promise<number | undefined>;
  /** Gives its channel back, where it is not made yet: it may be the next one once more. */
  abandon(): void;
  /** The peers to try, in order. Empty when the name of the trunk has no address. */
  targets(): Promise<readonly Peer[]>;
  /** The Route header fields of its INVITE. */
  routes(): readonly string[];
  /** What challenges of the call are answered with. */
  readonly credentials: Credentials | undefined;
  /** The call goes to that peer now. */
  towards(peer: Peer): void;
}

interface OutboundOptions {
  readonly order: DialOptions;
  /** The next trunk to try, with its channel taken. Undefined when there is none, or when the dial named its trunk. */
  next(): Promise<Attempt | undefined>;
  /** The trunk failed, so that others are tried before it for a while. `isOver`: the call over it is over. */
  onFailed(trunk: Trunk, isOver: boolean): void;
  /** Our host in From when the trunk does not know us by a user name. */
  localHost(peer: Peer): string;
}

/** A further peer of the same trunk, in its turn. */
interface NextPeer {
  readonly waitMs: number;
  readonly peer: Peer;
  readonly others: readonly Peer[];
}

type Described<T extends CallEvent['type']> = Extract<CallEvent, { readonly type: T }>;

export class OutboundLeg extends DialledLeg {
  readonly #outbound: OutboundOptions;
  #attempt: Attempt;
  #started = false;
  /** Whether anything came from the peer that is tried. */
  #heard = false;
  /** Whether the peer is waited for although its trunk counts as failed, because there is no other. */
  #silent = false;
  /** What to try next, asked for because the peer is silent. Whoever takes it has it alone. */
  #asked: Promise<NextPeer | Attempt | undefined> | undefined;
  #early = false;
  /** Whether an 18x has come, so that the call stays with its trunk. */
  #progressed = false;
  /** The user that a 302 named. */
  #redirected: string | undefined;
  /** The fork whose session description is in use. */
  #described: string | undefined;
  /** The last description of each fork in an 18x. The 200 of one that was sent reliably has none (RFC 3261 §13.2.1). */
  readonly #descriptions = new Map<string, Uint8Array>();
  /** The peers of the trunk that are left to try (RFC 3263 §4.3). */
  #targets: readonly Peer[] = [];
  #peer: Peer | undefined;
  #cancelWait: () => void = () => {};

  constructor(first: Attempt, outbound: OutboundOptions) {
    super(first.options, 'outbound', outbound.order.listener);
    this.#attempt = first;
    this.#outbound = outbound;
  }

  start(): void {
    if (this.#started || this.over) return;
    this.#started = true;
    this.#begin();
  }

  hangup(): void {
    if (this.over) return;
    const { call } = this;
    // Most ring windows are shorter than the 32 s after which the call itself would tell that nobody has answered.
    if ((this.#silent || this.#asked !== undefined) && !this.#heard) this.#outbound.onFailed(this.#attempt.trunk, true);
    this.#silent = false;
    if (call === undefined) this.end(CANCELLED);
    else this.options.driver.run((now) => call.hangUp(now));
  }

  protected override endOf(end: CallEnd): LegEnd {
    return end.why === 'local' && !this.answered ? CANCELLED : super.endOf(end);
  }

  protected override end(end: LegEnd): void {
    this.#cancelWait();
    super.end(end);
  }

  /** Sends an INVITE when its turn has come. */
  #begin(waitMs = this.#attempt.waitMs): void {
    if (waitMs > 0) this.#cancelWait = this.options.wait(waitMs, () => void this.#place());
    else void this.#place();
  }

  /**
   * Sends a further INVITE over the same trunk, which has turns of its own. False when there is none in time, so that
   * the call ends.
   */
  async #beginAgain(): Promise<boolean> {
    // The call is over: whoever hangs up meanwhile ends the leg.
    this.call = undefined;
    const waitMs = await this.#attempt.turn();
    if (waitMs !== undefined && !this.over) this.#anew(waitMs);
    return waitMs !== undefined;
  }

  /** Begins again with nothing of the call before. */
  #anew(waitMs: number): void {
    this.#described = undefined;
    this.#descriptions.clear();
    this.call = undefined;
    this.#begin(waitMs);
  }

  async #place(): Promise<void> {
    const attempt = this.#attempt;
    if (this.#peer === undefined) [this.#peer, ...this.#targets] = await attempt.targets();
    if (this.over || attempt !== this.#attempt) return;
    const peer = this.#peer;
    if (peer === undefined || !canDescribe(attempt.options)) {
      await this.#fail(peer === undefined ? UNREACHABLE : NO_SRTP);
      return;
    }
    attempt.towards(peer);
    // The peer is resolved first, because our address in SDP is the one on the way to it.
    const negotiation = await this.describe();
    if (this.over || attempt !== this.#attempt) return;
    if (negotiation === undefined) {
      this.end(NO_PORTS);
      return;
    }
    const callId = systemEntropy().token();
    this.#outbound.order.onPlaced?.(callId);
    this.#heard = false;
    this.#silent = false;
    const invite = { ...this.#invite(attempt, peer, negotiation.offer()), callId };
    this.options.driver.run((now) => {
      const call = this.options.driver.agent.invite(invite, now);
      this.call = call;
      if (call === undefined) this.end({ cause: 'carrier_congested', by: 'system', description: 'Too many calls' });
      else this.options.driver.listen(call, (event) => this.#take(call, event));
    });
    if (!this.over) this.#awaitResponse();
  }

  #awaitResponse(): void {
    this.#cancelWait();
    this.#cancelWait = this.options.wait(SIP_TRUNK_SILENT_MS, () => void this.#onSilence());
  }

  #invite({ trunk, address, marks, routes, credentials }: Attempt, peer: Peer, body: Uint8Array): Omit<InviteOptions, 'callId'> {
    const { order } = this.#outbound;
    const domain = trunkDomain(address);
    const { from_domain: fromDomain, from_user: fromUser } = trunk.settings;
    const phone = phoneForm(trunk.settings);
    // A user part that a carrier redirects to may be no number.
    const called = this.#redirected === undefined ? phone : '';
    const ours =
      fromDomain ?? (trunk.username === undefined ? formatHostPort(this.#outbound.localHost(peer), undefined) : domain);
    const users = dialledUsers(trunk, order);
    const to = escapeUser(this.#redirected ?? users.to);
    const display = order.displayName === undefined ? '' : `${displayForm(order.displayName)} `;
    const transport = address.transport === 'udp' ? '' : `;transport=${address.transport}`;
    return {
      peer,
      uri: `sip:${to}@${domain}${called}${transport}`,
      from: `${display}<sip:${escapeUser(users.from)}@${ours}${fromUser === undefined ? phone : ''}>`,
      to: `<sip:${to}@${domain}${called}>`,
      body,
      credentials,
      fields: [
        ...routes().map((route) => ['route', route] as const),
        ...assertedIdentity(trunk, users.caller, ours, order.displayName),
        ...extraFields(order.sipHeaders ?? {}),
        ...marks,
      ],
    };
  }

  #onProgress({ body, fork }: Described<'progress'>, addresses: Addresses | undefined): void {
    // Names in it were looked up while the answer came, which counts.
    if (this.answered) return;
    // A repeated description of the same fork, as in a 180 after a 183, changes nothing.
    if (this.#described !== fork && this.onAnswer(body, addresses)) this.#described = fork;
    if (this.#described === undefined || this.#early) return;
    this.#early = true;
    this.signal({ type: 'leg.early_media' });
  }

  /** The 200 has come. Its description counts, or else the one that an 18x of the same fork gave. */
  #onAnswered(call: Call, { body, isChanged, fork, headers }: Described<'answered'>): void {
    if (isChanged || (body.length === 0 && this.#described === fork)) {
      // What is in use stays, as an UPDATE may have left it.
      this.answered = true;
      this.apply();
      this.signalAnswered(headers);
      return;
    }
    const description = body.length > 0 ? body : (this.#descriptions.get(fork) ?? NO_BODY);
    this.#describedBy(call, description, (addresses) => {
      this.answered = true;
      if (this.onAnswer(description, addresses)) this.signalAnswered(headers);
      else this.giveUp(UNUSABLE);
    });
  }

  #take(call: Call, event: CallEvent): void {
    // An attempt that was given up says nothing to the call any more.
    if (call !== this.call) return;
    if (event.type === 'sent_anew') {
      if (!this.#heard && !this.#silent && this.#asked === undefined) this.#awaitResponse();
      return;
    }
    this.#cancelWait();
    this.#heard = true;
    switch (event.type) {
      case 'trying':
        return;
      case 'underway':
        this.#progressed = true;
        return;
      case 'ringing':
        this.#progressed = true;
        this.signalRinging();
        return;
      case 'progress':
        this.#progressed = true;
        this.#descriptions.set(event.fork, event.body);
        this.#describedBy(call, event.body, (addresses) => this.#onProgress(event, addresses));
        return;
      case 'answered':
        this.#onAnswered(call, event);
        this.#descriptions.clear();
        return;
      case 'ended':
        void this.#onEnded(event.end);
        return;
      default:
        this.onCallEvent(event);
    }
  }

  /** Resolves the names in a description, unless the attempt that it came for is given up meanwhile. */
  #describedBy(call: Call, body: Uint8Array, then: (addresses: Addresses | undefined) => void): void {
    this.withAddresses(body, (addresses) => {
      if (call === this.call) then(addresses);
    });
  }

  async #onEnded(end: CallEnd): Promise<void> {
    if (end.why === 'refused' && ((await this.#redirect(end)) || (await this.#placeInClear(end)))) return;
    if (!this.#progressed && isTrunkFailure(end)) await this.#fail(this.endOf(end));
    else this.end(this.endOf(end));
  }

  /** Follows a 302, once: its user part over the same trunk, never to another host, nor to what may not be reached. */
  async #redirect({ status, contact }: Extract<CallEnd, { readonly why: 'refused' }>): Promise<boolean> {
    const { trunk } = this.#attempt;
    const user = contact === undefined ? '' : (parseUri(contact)?.user ?? '');
    if (status !== 302 || user === '' || trunk.settings.follow_redirects !== true || this.#redirected !== undefined) return false;
    if (this.#outbound.order.mayReach?.(numberOf(user, trunk) ?? user) !== true) return false;
    this.#redirected = user;
    return await this.#beginAgain();
  }

  /** Places the call once more without encryption, where the far end cannot do it and the trunk permits both. */
  async #placeInClear({ status }: Extract<CallEnd, { readonly why: 'refused' }>): Promise<boolean> {
    return (status === 488 || status === 415) && this.goClear() && (await this.#beginAgain());
  }

  /** No response at all, not even a 100. Where another peer or trunk may carry the call, this one is given up. */
  async #onSilence(): Promise<void> {
    const { call } = this;
    const asked = this.#next();
    this.#asked = asked;
    const next = await asked;
    // The peer has refused meanwhile, and what comes next has begun.
    if (asked !== this.#asked) return;
    this.#asked = undefined;
    if (this.over || call !== this.call || this.#heard) {
      abandon(next);
      return;
    }
    if (next === undefined) {
      this.#silent = true;
      this.#outbound.onFailed(this.#attempt.trunk, false);
    } else this.#goOn(next);
    if (next !== undefined && call !== undefined) this.options.driver.run((now) => call.hangUp(now));
  }

  /** The peer failed: the next one is tried. Without one the call ends with `end`. */
  async #fail(end: LegEnd): Promise<void> {
    // The call is over: whoever hangs up meanwhile ends the leg.
    this.call = undefined;
    const asked = this.#asked ?? this.#next();
    this.#asked = undefined;
    const next = await asked;
    if (this.over) abandon(next);
    else if (next !== undefined) this.#goOn(next);
    else {
      this.#outbound.onFailed(this.#attempt.trunk, true);
      this.end(end);
    }
  }

  /** The next peer of the trunk, or else the next trunk, in its turn. */
  async #next(): Promise<NextPeer | Attempt | undefined> {
    const [peer, ...others] = this.#targets;
    const waitMs = peer === undefined ? undefined : await this.#attempt.turn();
    if (peer !== undefined && waitMs !== undefined) return { waitMs, peer, others };
    return await this.#outbound.next();
  }

  #goOn(next: NextPeer | Attempt): void {
    if ('trunk' in next) {
      this.#outbound.onFailed(this.#attempt.trunk, true);
      this.#attempt = next;
      this.#peer = undefined;
      this.#redirected = undefined;
      this.use(next.options);
    } else {
      this.#targets = next.others;
      this.#peer = next.peer;
    }
    this.#anew(next.waitMs);
  }
}

function abandon(next: NextPeer | Attempt | undefined): void {
  if (next !== undefined && 'trunk' in next) next.abandon();
}

/** Whether an end before any 18x is the trunk's failure, so that another one may carry the call. */
function isTrunkFailure(end: CallEnd): boolean {
  if (end.why === 'refused') return end.status === 503 || end.status === 408;
  return end.why === 'unreachable' || end.why === 'no_response';
}

/** The names of header fields that an application may add. None of them is written by the user agent itself. */
const EXTENSION = /^(?:x-)/i;

/**
 * The header fields that an application adds: names begin with `X-`, values are one line. Anything else is left out,
 * and so is the field by which we know our own calls again.
 */
export function extraFields(headers: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(headers)
    .filter(
      ([name, value]) =>
        EXTENSION.test(name) &&
        name.toLowerCase() !== LOOPBACK_FIELD &&
        isToken(name) &&
        value.length <= SIP_EXTRA_HEADER_MAX_CHARS &&
        !/[\r\n\0]/.test(value),
    )
    .slice(0, SIP_EXTRA_HEADERS_MAX);
}
