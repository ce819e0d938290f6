/**
 * The leg of a call to a device user: an INVITE to each of its contacts at once (a fork, RFC 3261 §16.6 as a proxy does
 * it). The first that answers with audio that can be used has the call, and the others are cancelled; so are they when
 * one declines for all (6xx, §16.7). Where all that have said anything have refused, the rest is given five seconds.
 * All of them are offered the same ports, so what is heard before the answer is nobody's: there is no early media. A
 * contact over TLS is offered encrypted audio, and rung once more in clear where it refuses that; the others are
 * offered clear audio at once.
 */
import type { DialOptions, LegEnd } from '../../call/ports/leg.ts';
import { DEVICE_SILENT_MS } from '../../limits.ts';
import type { Negotiation } from '../../sdp/negotiation.ts';
import type { Call } from '../../sip/call/call.ts';
import type { CallEnd, CallEvent } from '../../sip/call/call-event.ts';
import type { Peer } from '../../sip/flow.ts';
import { NO_BODY } from '../../sip/message/message.ts';
import { escapeUser, formatHostPort } from '../../sip/message/uri.ts';
import type { Binding } from '../../sip/registrar.ts';
import { systemEntropy } from '../entropy.ts';
import { CANCELLED, NO_PORTS } from '../leg/cause.ts';
import { DialledLeg } from '../leg/dialled-leg.ts';
import { displayForm } from '../leg/identity.ts';
import { extraFields } from '../leg/outbound-leg.ts';
import type { PhoneLegOptions } from '../leg/phone-leg.ts';
import { FLOW_FAILED, routeTo } from './device-trunk.ts';

const UNREGISTERED: LegEnd = { cause: 'not_answered', by: 'callee', description: 'The device is not registered' };
const SILENT: LegEnd = { cause: 'not_answered', by: 'callee', description: 'The device did not respond' };
const UNREACHABLE: LegEnd = { cause: 'not_answered', by: 'callee', description: 'The device could not be reached' };
const AWAY: LegEnd = { cause: 'failed', by: 'system', description: 'The contacts of the device could not be read' };
const UNUSABLE: LegEnd = { cause: 'failed', by: 'system', description: 'The device answered with audio that cannot be used' };

/** The Reason of the CANCEL to the phones that were too late: they show no missed call then (RFC 3326 §3.1). */
const ELSEWHERE = 'SIP;cause=200;text="Call completed elsewhere"';

/** How much an end tells of why nobody answered: a device where someone refused says more than one that is off. */
const TELLING: readonly LegEnd['cause'][] = ['rejected', 'busy', 'timeout', 'not_answered'];

/** Whether an end is the word of a person, or of a phone that is in use. */
const isRefusal = ({ cause }: LegEnd): boolean => cause === 'rejected' || cause === 'busy';

interface DeviceDial {
  readonly order: DialOptions;
  /** The contacts that are bound now. */
  contacts(): Promise<readonly Binding[]>;
  /** The terms of the call, once its contacts are known. */
  options(contacts: readonly Binding[]): PhoneLegOptions;
  /** The peer that the contact is reached at. */
  peerOf(contact: Binding): Peer;
  /** Our host in From. */
  localHost(contact: Binding): string;
  /** Whether the contact is known not to answer. */
  isSilent(contact: Binding): boolean;
}

/** A contact that rings, and the description that it was offered. */
interface Fork {
  readonly contact: Binding;
  readonly negotiation: Negotiation;
  /** The description in clear, which may be the same one. */
  readonly clear: Negotiation;
  /**
   * What the contact, or each behind it, has described in an 18x. The 200 of one that was sent reliably has none (RFC
   * 3261 §13.2.1).
   */
  readonly descriptions: Map<string, Uint8Array>;
  /** When the INVITE was sent, in milliseconds. */
  readonly since: number;
  /** Whether the device, or one behind it, has said anything. */
  isHeard: boolean;
}

export class DeviceLeg extends DialledLeg {
  readonly #dial: DeviceDial;
  #started = false;
  /** The contacts that still ring, by their calls. */
  readonly #forks = new Map<Call, Fork>();
  /** The descriptions: encrypted and in clear, of either IP version. */
  readonly #described = new Map<string, Promise<Negotiation | undefined>>();
  /** The ends of the forks that are over. */
  readonly #ends: LegEnd[] = [];

  constructor(options: PhoneLegOptions, dial: DeviceDial) {
    super(options, 'outbound', dial.order.listener);
    this.#dial = dial;
  }

  start(): void {
    if (this.#started || this.over) return;
    this.#started = true;
    void this.#begin();
  }

  hangup(): void {
    if (this.over) return;
    const { call } = this;
    if (call !== undefined) {
      this.options.driver.run((now) => call.hangUp(now));
      return;
    }
    this.#cancelForks('');
    this.end(CANCELLED);
  }

  /** A device that is off or has lost its connection is absent, and no problem of a carrier. */
  protected override endOf(end: CallEnd): LegEnd {
    if (end.why === 'no_response') return SILENT;
    if (end.why === 'refused' && FLOW_FAILED.has(end.status)) return UNREACHABLE;
    return end.why === 'unreachable' ? UNREACHABLE : super.endOf(end);
  }

  async #begin(): Promise<void> {
    let contacts: readonly Binding[];
    try {
      contacts = await this.#dial.contacts();
    } catch {
      this.end(AWAY);
      return;
    }
    if (this.over) return;
    if (contacts.length === 0) {
      this.end(UNREGISTERED);
      return;
    }
    if (contacts.every((contact) => this.#dial.isSilent(contact))) {
      this.end(SILENT);
      return;
    }
    this.use(this.#dial.options(contacts));
    await this.#ringAll(contacts);
  }

  /** Sends the INVITEs. Contacts over TLS are offered encrypted audio, and each a description of its IP version. */
  async #ringAll(contacts: readonly Binding[]): Promise<void> {
    const found = await Promise.all(contacts.map(async (contact) => ({ contact, ...(await this.#describedTo(contact)) })));
    for (const { contact, first, clear } of found) {
      if (this.over) return;
      if (first === undefined || clear === undefined) this.end(NO_PORTS);
      else this.#ring(contact, first, clear);
    }
    if (!this.over) this.#settle();
  }

  /** What a contact is offered first, and what where it refuses that. Contacts of one kind share their descriptions. */
  async #describedTo({ host, transport }: Binding) {
    const of = (isClear: boolean): Promise<Negotiation | undefined> => {
      const key = `${isClear} ${host.includes(':')}`;
      const described = this.#described.get(key) ?? this.describeTowards(host, isClear);
      this.#described.set(key, described);
      return described;
    };
    return { first: await of(transport !== 'tls' || this.options.srtp === undefined), clear: await of(true) };
  }

  #ring(contact: Binding, negotiation: Negotiation, clear: Negotiation): void {
    const { order } = this.#dial;
    const display = order.displayName === undefined ? '' : `${displayForm(order.displayName)} `;
    const callId = systemEntropy().token();
    const host = formatHostPort(this.#dial.localHost(contact), undefined);
    order.onPlaced?.(callId);
    this.options.driver.run((now) => {
      const call = this.options.driver.agent.invite(
        {
          peer: this.#dial.peerOf(contact),
          uri: contact.uri,
          from: `${display}<sip:${escapeUser(order.from)}@${host}>`,
          // The user's own address, as it came to be called: a phone signs what follows from the call with it.
          to: `<sip:${escapeUser(order.to.slice('sip:'.length))}@${host}>`,
          body: negotiation.offer(),
          credentials: undefined,
          callId,
          fields: [...routeTo(contact), ...extraFields(order.sipHeaders ?? {})],
        },
        now,
      );
      if (call === undefined) {
        this.#ends.push({ cause: 'carrier_congested', by: 'system', description: 'Too many calls' });
        return;
      }
      this.#forks.set(call, { contact, negotiation, clear, descriptions: new Map(), since: now, isHeard: false });
      this.options.driver.listen(call, (event) => this.#take(call, event));
    });
  }

  #take(call: Call, event: CallEvent): void {
    if (call === this.call) {
      this.onCallEvent(event);
      return;
    }
    const fork = this.#forks.get(call);
    if (fork === undefined) return;
    // A 100 may be of the proxy before the device, and says nothing about that.
    fork.isHeard ||= event.type !== 'trying' || fork.contact.path === '';
    switch (event.type) {
      case 'progress':
        fork.descriptions.set(event.fork, event.body);
        this.signalRinging();
        return;
      case 'ringing':
        this.signalRinging();
        return;
      case 'answered':
        this.#onAnswered(call, fork, event);
        return;
      case 'ended':
        this.#onForkEnded(call, fork, event.end);
        return;
      case 'offer':
        // A device that rings is not heard. Unanswered, its UPDATE would stand in the way of every change to come.
        this.options.driver.run((now) => call.refuseOffer(488, now));
        return;
      default:
        return;
    }
  }

  /** The first device whose answer can be used has the call. */
  #onAnswered(call: Call, { negotiation, descriptions }: Fork, event: Extract<CallEvent, { readonly type: 'answered' }>): void {
    const { headers } = event;
    const body = event.body.length > 0 ? event.body : (descriptions.get(event.fork) ?? NO_BODY);
    this.#forks.delete(call);
    this.call = call;
    this.adopt(negotiation);
    let isJudged = false;
    this.withAddresses(body, (addresses) => {
      isJudged = true;
      this.answered = true;
      if (!this.onAnswer(body, addresses)) {
        this.#goOnWithout(call);
        return;
      }
      this.#cancelForks(ELSEWHERE);
      this.signalAnswered(headers);
    });
    // The others stop ringing at once when a name has to be looked up before the answer can be judged.
    if (!isJudged) this.#cancelForks(ELSEWHERE);
  }

  /** Hangs up on a device whose audio cannot be used. The others ring on. */
  #goOnWithout(call: Call): void {
    if (this.#forks.size === 0) {
      this.giveUp(UNUSABLE);
      return;
    }
    this.#ends.push(UNUSABLE);
    this.call = undefined;
    this.answered = false;
    this.options.driver.run((now) => call.hangUp(now));
  }

  #onForkEnded(call: Call, { contact, negotiation, clear }: Fork, end: CallEnd): void {
    this.#forks.delete(call);
    const refusesAudio = end.why === 'refused' && (end.status === 488 || end.status === 415);
    if (refusesAudio && negotiation !== clear) this.#ring(contact, clear, clear);
    else this.#ends.push(this.endOf(end));
    // Whoever declines so does it for all contacts of the user (RFC 3261 §16.7).
    if (end.why === 'refused' && end.status >= 600) this.#cancelForks(`SIP;cause=${end.status}`);
    this.#settle();
  }

  /** Ends the call when no device rings any more. */
  #settle(): void {
    if (this.over || this.call !== undefined) return;
    if (this.#forks.size > 0) {
      this.#doubtSilent();
      return;
    }
    const told = TELLING.map((cause) => this.#ends.find((end) => end.cause === cause)).find((end) => end !== undefined);
    this.end(told ?? this.#ends[0] ?? UNREGISTERED);
  }

  /**
   * Somebody is there and has refused: contacts that say nothing at all, of phones that are off or have started anew
   * elsewhere, do not keep the caller waiting until the ringing times out.
   */
  #doubtSilent(): void {
    const forks = [...this.#forks.values()];
    if (!this.#ends.some(isRefusal) || forks.some(({ isHeard }) => isHeard)) return;
    const left = Math.max(...forks.map(({ since }) => since)) + DEVICE_SILENT_MS - this.options.driver.now;
    if (left > 0) {
      this.options.wait(left, () => this.#settle());
      return;
    }
    this.#cancelForks('');
    this.#settle();
  }

  #cancelForks(reason: string): void {
    const forks = [...this.#forks.keys()];
    this.#forks.clear();
    for (const call of forks) this.options.driver.run((now) => call.hangUp(now, reason));
  }
}
