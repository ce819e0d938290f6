/**
 * A SIP call and its RTP as a `Leg`. Orders may arrive in any state. The RTP ports are taken when the first session
 * description is due. `leg.ended` is signalled once, after the ports were given back.
 */
import { isIP } from 'node:net';
import { LegSignals } from '../../call/leg-signals.ts';
import type { Leg, LegEnd, LegHandOver, LegListener, LegSignal, LegSnapshot, LegTransfers } from '../../call/ports/leg.ts';
import type { Seal } from '../../database/vault/seal.ts';
import type { CallQuality } from '../../event/call-report.ts';
import type { RejectReason } from '../../event/hangup.ts';
import { DEVICE_RESTARTED_MS } from '../../limits.ts';
import type { TransferTarget } from '../../machine/session/input.ts';
import { qualityOf } from '../../media/call-quality.ts';
import type { LegAudio, MediaEngine, RtpLeg } from '../../media/engine.ts';
import { EarlyAudio } from '../../media/leg/early-audio.ts';
import { type StreamBegin, streamAfter } from '../../media/leg/packet-numbers.ts';
import { ToneListening } from '../../media/leg/tone-listening.ts';
import { isToldByEnd } from '../../notice/signal.ts';
import type { Addresses } from '../../sdp/description.ts';
import { type AudioAgreement, type AudioCodec, followed, isRefused, Negotiation } from '../../sdp/negotiation.ts';
import type { SrtpTerms } from '../../sdp/sdes.ts';
import type { Call } from '../../sip/call/call.ts';
import type { CallEnd, CallEvent } from '../../sip/call/call-event.ts';
import type { Headers } from '../../sip/message/message.ts';
import type { AgentDriver } from '../agent-driver.ts';
import { legEnd } from './cause.ts';
import { Holds } from './holds.ts';
import { digitOfInfo, InfoKeys } from './info-digit.ts';
import { KeptKey, type LegBefore } from './kept-key.ts';
import { addressesOf, namesIn } from './sdp-names.ts';
import { SignsOfLife } from './signs-of-life.ts';
import { sipFacts } from './sip-facts.ts';
import { TwinKeys } from './twin-keys.ts';

export interface PhoneLegOptions {
  readonly driver: AgentDriver;
  readonly media: Pick<MediaEngine, 'openRtpLeg'>;
  /** The name of the trunk. */
  readonly trunk: string;
  /** The far end is in this process, too. */
  readonly isLoopback?: boolean;
  /** The trunk's part in transfers. */
  readonly transfers: {
    permits(uri: string): boolean;
    dialled(uri: string): string;
    /** The value of Refer-To. `ownDomain` is ours as the far end knows it. */
    referTo(target: TransferTarget, ownDomain: string): string;
  };
  readonly codecs: readonly AudioCodec[];
  /** How the audio is encrypted. Undefined: it is in clear. */
  readonly srtp: SrtpTerms | undefined;
  /** Seals the key of its audio for a node that goes on with the call. */
  readonly seal: Seal;
  /** The address to write into SDP: of the IP version of the far end's signalling, where our RTP ports speak it. */
  sdpHost(): string;
  /** The same for audio that goes there. Undefined where our RTP ports do not speak its IP version. */
  sdpHostTowards(far: string): string | undefined;
  /** The IP version of the first of these. */
  readonly family: 4 | 6;
  readonly sessionId: number;
  /** What the node before had of the call. */
  readonly before?: LegBefore;
  /** The signalling address of the far end and the ranges of its trunk, from which its RTP may come. */
  rtpSources(): readonly string[];
  /** Calls `then` after `ms`, unless the result is called before. */
  wait(ms: number, then: () => void): () => void;
  /** The leg is over: its channel is free. */
  onEnded(): void;
}

/** More than the other node can have used, in the thousands that are a hand-over's. */
const RECLAIM_NUMBERS = 2_000;

export abstract class PhoneLeg implements Leg {
  protected options: PhoneLegOptions;
  protected call: Call | undefined;
  protected over = false;
  protected answered = false;
  readonly #direction: 'inbound' | 'outbound';
  readonly #signals: LegSignals;
  #rtp: RtpLeg | undefined;
  #opening: Promise<RtpLeg | undefined> | undefined;
  #negotiation: Negotiation | undefined;
  /** Whether the far end has refused to encrypt the audio. */
  #isClear = false;
  /** What was agreed on last. */
  #agreement: AudioAgreement | undefined;
  readonly #holds = new Holds((signal) => this.signal(signal));
  readonly #tones = new ToneListening((on) => this.#rtp?.detectTones(on));
  readonly #twins = new TwinKeys();
  readonly #infoKeys = new InfoKeys();
  readonly #life = new SignsOfLife();
  readonly #keptKey = new KeptKey();
  /** What our packets began with. */
  #stream: StreamBegin | undefined;
  readonly #early = new EarlyAudio((notice) => this.signal({ type: 'leg.media', notice }));
  #rang = false;

  constructor(options: PhoneLegOptions, direction: 'inbound' | 'outbound', listener?: LegListener) {
    this.options = options;
    this.#direction = direction;
    this.#signals = new LegSignals(listener);
  }

  abstract start(): void;
  abstract ring(): void;
  abstract startEarlyMedia(): void;
  abstract answer(): void;
  abstract reject(reason: RejectReason): void;
  abstract cancel(): void;
  abstract hangup(): void;

  /** Hands over the signals so far, and then all that follow. */
  listen(listener: LegListener): void {
    this.#signals.listen(listener);
  }

  /** Whether the stream was agreed on. */
  protected get isAgreed(): boolean {
    return this.#agreement !== undefined;
  }

  get audio(): LegAudio | undefined {
    return this.over ? undefined : this.isAgreed ? this.#rtp : this.#early;
  }

  secure(on: boolean): void {
    this.#tones.secure(on);
  }

  /** Opens the leg's ports, once, and its side of offer and answer. Undefined when no ports are free. */
  protected async describe(): Promise<Negotiation | undefined> {
    this.#opening ??= this.options.media.openRtpLeg((notice) => {
      if (notice.type === 'payload.changed') {
        const agreement = this.#agreement && followed(this.#agreement, notice.payloadType);
        if (agreement !== undefined) this.apply(agreement);
        return;
      }
      if (notice.type === 'digit') {
        this.#tones.heard(notice.method);
        if (this.#twins.isToldByInfo(notice.digit, notice.durationMs, this.options.driver.now)) {
          this.signal({ type: 'leg.media', notice: { type: 'key.up' } });
          return;
        }
      }
      if (notice.type === 'key.down' && this.#twins.isPressToldByInfo(notice.digit, this.options.driver.now)) return;
      if (!this.over || !isToldByEnd(notice)) this.signal({ type: 'leg.media', notice });
    });
    const rtp = await this.#opening;
    if (rtp === undefined || this.over) return undefined;
    this.#rtp = rtp;
    this.#negotiation ??= this.#newNegotiation(rtp, this.#isClear);
    return this.#negotiation;
  }

  /** Another description of the same ports, for a far end there. `isClear`: no keys are sent to it. */
  protected async describeTowards(far: string, isClear: boolean): Promise<Negotiation | undefined> {
    const described = await this.describe();
    return described === undefined || this.#rtp === undefined ? undefined : this.#newNegotiation(this.#rtp, isClear, far);
  }

  /** The far end has answered this one of the descriptions. */
  protected adopt(negotiation: Negotiation): void {
    this.#negotiation = negotiation;
  }

  #newNegotiation(rtp: RtpLeg, isClear: boolean, far?: string): Negotiation {
    const { srtp, before } = this.options;
    // An offer of ours in the 200 to an INVITE without one cannot be made again in clear.
    const isOpportunistic = this.#direction === 'inbound' && srtp?.mode === 'optional';
    return new Negotiation({
      host: (far === undefined ? undefined : this.options.sdpHostTowards(far)) ?? this.options.sdpHost(),
      hostTowards: (remote) => this.options.sdpHostTowards(remote),
      port: rtp.port,
      codecs: this.options.codecs,
      sessionId: before?.origin.sessionId ?? this.options.sessionId,
      before: before?.origin,
      ...(srtp === undefined || isClear ? {} : { srtp, isOpportunistic, ownKey: before?.ownKey }),
    });
  }

  /** Starts or changes the stream. What was agreed on before counts anew at the answer: the media timeout begins. */
  protected apply(agreement = this.#agreement): void {
    if (this.over || this.#rtp === undefined || agreement === undefined) return;
    this.#agreement = agreement;
    // A phone that has moved to another network since is where its messages come from now.
    const seen = this.call?.farEnd.dialog?.peer.host ?? '';
    const sources = new Set([...this.options.rtpSources(), ...(isIP(seen) === 0 ? [] : [seen])]);
    this.#stream ??= streamAfter(this.options.before?.stream, agreement, this.options.driver.now);
    this.#rtp.negotiate({ ...agreement, learnFrom: [...sources], isRinging: !this.answered, numbers: this.#stream });
    this.#tones.agreed(agreement.telephoneEventPayloadType !== undefined);
    this.#holds.far(agreement.held);
    this.#early.handOver(this.#rtp);
  }

  /** Handles the events of a call that both directions handle alike. Others have no effect. */
  protected onCallEvent(event: CallEvent): void {
    if (isWordOfFarEnd(event)) this.#life.spoken();
    if (event.type === 'moved') this.apply();
    switch (event.type) {
      case 'offer':
        this.#onOffer(event.body);
        return;
      case 'answer':
        this.withAddresses(event.body, (addresses) => {
          this.#onReoffered(!this.onAnswer(event.body, addresses));
        });
        return;
      case 'offer_refused':
        this.#onReoffered(true);
        return;
      case 'refer':
        this.signal({ type: 'leg.transfer', ...event.outcome });
        return;
      case 'refer_requested': {
        const { type: _, ...asked } = event;
        this.signal({ type: 'leg.transfer_requested', ...asked });
        return;
      }
      case 'doubted':
        void this.#doubt();
        return;
      case 'alive':
        this.#life.told();
        this.signal({ type: 'leg.alive' });
        return;
      case 'info': {
        const key = digitOfInfo(event.contentType, event.body);
        const { now } = this.options.driver;
        if (key !== undefined && this.#infoKeys.take(now) && !this.#twins.isToldByAudio(key.digit, now))
          this.signal({ type: 'leg.digit', ...key });
        return;
      }
      case 'ended':
        this.end(this.endOf(event.end));
        return;
      default:
        return;
    }
  }

  /** Goes on over another trunk, before anything was agreed on: its channel is held in place of the one before. */
  protected use(options: PhoneLegOptions): void {
    this.options.onEnded();
    this.options = options;
    this.#negotiation = undefined;
    this.#isClear = false;
  }

  /** Describes our audio anew, in clear. False when it was, or when the trunk does not permit it. */
  protected goClear(): boolean {
    if (this.#isClear || this.options.srtp?.mode !== 'optional') return false;
    this.#isClear = true;
    this.#negotiation = undefined;
    return true;
  }

  /** The call was answered on another node, and goes on here. */
  protected signalResumed(): void {
    this.#holds.resumed();
  }

  /** The call is answered on both sides. */
  protected signalAnswered(headers: Headers): void {
    const sip = sipFacts(headers, this.options.trunk, this.#agreement?.codec);
    this.#holds.answered(() => this.signal({ type: 'leg.answered', sip }));
  }

  sendDigits(operationUuid: string, digits: string, durationMs: number, gapMs: number): void {
    this.#rtp?.sendKeys(operationUuid, digits, durationMs, gapMs);
  }

  detectMachine(timeoutMs: number): void {
    this.#rtp?.detectMachine(timeoutMs);
  }

  /**
   * Holds the far end, or no longer: our side at once, and the far end by a re-INVITE. `leg.own_hold` follows in any
   * case.
   */
  hold(on: boolean): void {
    const { call } = this;
    const negotiation = this.#negotiation;
    if (this.over || call === undefined || negotiation === undefined || !this.#holds.isAnswered) return;
    this.#holds.order(on);
    negotiation.hold(on);
    const agreement = this.#agreement;
    if (on && agreement !== undefined) this.apply({ ...agreement, receive: false, isHolding: true });
    this.options.driver.run((now) => call.offer(() => negotiation.offer(), now));
  }

  /**
   * The far end has answered our re-INVITE, or refused it, or answered what cannot be used: our side goes on alone. A
   * hold that was taken back meanwhile is settled by the answer to it, and the refusal of its end comes after that.
   */
  #onReoffered(isRefused: boolean): void {
    const agreement = this.#agreement;
    const on = this.#holds.isOwn;
    if (isRefused && agreement !== undefined && !on) {
      const receive = agreement.held ? agreement.receive : agreement.send;
      this.apply({ ...agreement, receive, isHolding: false });
    }
    if (this.#holds.settle()) this.signal({ type: 'leg.own_hold', on });
  }

  get handOver(): LegHandOver {
    const snapshot = () => (this.#holds.isAny ? undefined : this.#snapshot(true));
    const kept = () => this.#snapshot(false);
    return { snapshot, kept, release: () => this.#release(), reclaim: () => this.#reclaim() };
  }

  /**
   * What has its far end here would move as well, and stays. A device is on its flow, which no other node has: over UDP
   * it is the same for the process after this one.
   */
  #snapshot(settled: boolean): LegSnapshot | undefined {
    const call = this.call?.snapshot(settled);
    const origin = this.#negotiation?.described;
    const stays = call?.peer.profile?.staysOnFlow !== undefined && (settled || call.peer.transport !== 'udp');
    if (call === undefined || origin === undefined || stays || this.options.isLoopback === true) return undefined;
    const audioKey = this.#keptKey.sealed(this.options.seal, call.dialog.callId, this.#negotiation?.ownKey);
    const stream = this.#stream;
    return {
      trunk: this.options.trunk,
      call,
      origin,
      ...(audioKey === undefined ? {} : { audioKey }),
      ...(stream && { stream }),
    };
  }

  #release(): void {
    if (this.over) return;
    this.over = true;
    const { call } = this;
    if (call !== undefined) this.options.driver.abandon(call);
    this.options.onEnded();
    this.#early.release();
    // The end of a recording is told all the same: its file is here.
    this.#signals.dropAllButRecordings();
    void this.#opening?.then((rtp) => rtp?.close());
  }

  #reclaim(): void {
    const { call } = this;
    const negotiation = this.#negotiation;
    if (this.over || call === undefined || negotiation === undefined) return;
    call.skip(RECLAIM_NUMBERS);
    // One that answers no re-INVITE goes on as it was: whether it is still there, its audio and the probes tell.
    this.options.driver.run((now) => call.offer(() => negotiation.offerAgain(), now, [481]));
  }

  async quality(): Promise<CallQuality | undefined> {
    if (this.over || this.#agreement === undefined || this.#rtp === undefined) return undefined;
    return qualityOf(await this.#rtp.counters(), this.#agreement.codec);
  }

  get transfers(): LegTransfers {
    const { options } = this;
    return {
      trunk: options.trunk,
      permits: (uri) => options.transfers.permits(uri),
      dialled: (uri) => options.transfers.dialled(uri),
      replacement: () => this.call?.replacement,
      isNamedBy: (replaces) => !this.over && this.call?.isNamedBy(replaces) === true,
      transfer: (target) => {
        const { call } = this;
        const referTo = (ownDomain: string) => options.transfers.referTo(target, ownDomain);
        if (call !== undefined) options.driver.run((now) => call.refer(referTo, now));
      },
    };
  }

  /**
   * Asks a far end that may have started anew whether it knows the call, unless its audio goes on. A re-INVITE is what
   * each refuses with 481 then: some (linphone) answer OPTIONS in any dialog.
   */
  async #doubt(): Promise<void> {
    const heard = async () => (this.over ? undefined : (await this.#rtp?.counters())?.packetsReceived);
    const before = await heard();
    this.options.wait(DEVICE_RESTARTED_MS, async () => {
      const { call } = this;
      const negotiation = this.#negotiation;
      if ((await heard()) !== before || this.over || call === undefined || negotiation === undefined) return;
      this.options.driver.run((now) => call.offer(() => negotiation.offer(), now, [481]));
    });
  }

  /**
   * Looks for signs of life: packets or messages since the last probe, else an answer to OPTIONS. `leg.alive` or
   * nothing follows.
   */
  async probe(): Promise<void> {
    const rtp = this.#rtp;
    const { call } = this;
    if (rtp === undefined || call === undefined || this.over) return;
    const { packetsReceived } = await rtp.counters();
    if (this.over) return;
    if (this.#life.look(packetsReceived, this.#holds.isAnswered)) this.signal({ type: 'leg.alive' });
    else this.options.driver.run((now) => call.probe(now));
  }

  /**
   * Resolves the names in a description, if it has any, then hands it on. A leg that has ended meanwhile is left alone.
   */
  protected withAddresses(body: Uint8Array, then: (addresses: Addresses | undefined) => void): void {
    const names = namesIn(body);
    if (names.length === 0) {
      then(undefined);
      return;
    }
    const [far = ''] = this.options.rtpSources();
    void addressesOf(names, far, this.options.family, (ms, due) => this.options.wait(ms, due)).then((addresses) => {
      if (!this.over) then(addresses);
    });
  }

  /** The answer to an offer of ours. */
  protected onAnswer(body: Uint8Array, addresses?: Addresses): boolean {
    const agreement = this.#negotiation?.acceptAnswer(body, addresses);
    if (agreement === undefined || isRefused(agreement)) return false;
    this.apply(agreement);
    return true;
  }

  protected endOf(end: CallEnd): LegEnd {
    return legEnd(end, this.#direction);
  }

  protected signalRinging(): void {
    if (this.#rang) return;
    this.#rang = true;
    this.signal({ type: 'leg.ringing' });
  }

  protected signal(signal: LegSignal): void {
    this.#signals.tell(signal);
  }

  /** Hangs up because the media failed. `end` says why. */
  protected giveUp(end: LegEnd): void {
    if (this.over) return;
    const { call } = this;
    // `end` comes first, so that the end that the call itself tells comes too late.
    this.end(end);
    if (call !== undefined) this.options.driver.run((now) => call.hangUp(now));
  }

  /** Ends the leg, once: gives back what it holds, then signals. */
  protected end(end: LegEnd): void {
    if (this.over) return;
    this.over = true;
    this.options.onEnded();
    this.#early.release();
    this.#signals.tellEnd(end, this.#close(), (ms, then) => this.options.wait(ms, then));
  }

  /** Gives the ports back, where any were taken. Resolves with how the call sounded, where audio was agreed on. */
  async #close(): Promise<CallQuality | undefined> {
    const counters = await (await this.#opening)?.close();
    return counters === undefined || this.#agreement === undefined ? undefined : qualityOf(counters, this.#agreement.codec);
  }

  #onOffer(body: Uint8Array): void {
    const { call, options } = this;
    const negotiation = this.#negotiation;
    if (call === undefined) return;
    if (negotiation === undefined) {
      options.driver.run((now) => call.refuseOffer(488, now));
      return;
    }
    if (body.length === 0) {
      options.driver.run((now) => call.answerOffer(negotiation.offer(), now));
      return;
    }
    this.withAddresses(body, (addresses) => {
      const answer = negotiation.answer(body, addresses);
      if (isRefused(answer)) {
        options.driver.run((now) => call.refuseOffer(answer.refused, now));
        return;
      }
      this.onAgreed(answer);
      options.driver.run((now) => call.answerOffer(answer.body, now));
      this.apply(answer.agreement);
    });
  }

  /** An offer of the far end was answered. */
  protected onAgreed(_answer: { readonly body: Uint8Array; readonly agreement: AudioAgreement }): void {}
}

/** Whether an event is a message of the far end. A re-INVITE that it has not answered is told as refused with 408. */
function isWordOfFarEnd(event: CallEvent): boolean {
  if (event.type === 'refer') return event.outcome.phase !== 'refused' || event.outcome.status !== 0;
  return event.type !== 'doubted' && event.type !== 'moved' && (event.type !== 'offer_refused' || event.status !== 408);
}

/** Whether we have anything to offer: not where encryption is required and impossible. */
export const canDescribe = ({ srtp }: PhoneLegOptions): boolean => srtp === undefined || srtp.suites.length > 0;
