/**
 * A browser as a `Leg`. Its stream was agreed on before the leg began, so an answer of the application is only a word:
 * the Session is answered when both that word and the browser's way to us are there. What is played before waits.
 */
import { LegSignals } from '../call/leg-signals.ts';
import type { Leg, LegEnd, LegListener } from '../call/ports/leg.ts';
import type { CallQuality } from '../event/call-report.ts';
import type { HangupCause } from '../event/hangup.ts';
import { qualityOf } from '../media/call-quality.ts';
import type { LegAudio, MediaNotice, WebrtcLeg } from '../media/engine.ts';
import { EarlyAudio } from '../media/leg/early-audio.ts';
import { ToneListening } from '../media/leg/tone-listening.ts';
import { isToldByEnd, type LinkState } from '../notice/signal.ts';
import type { AudioAgreement } from '../sdp/negotiation.ts';

export interface BrowserLegOptions {
  /** Opens the audio leg; undefined when there is no room for one. */
  open(notify: (notice: MediaNotice) => void): Promise<WebrtcLeg | undefined>;
  /** Calls `then` after `ms`, unless the result is called before. */
  wait(ms: number, then: () => void): () => void;
  /** The leg is over. */
  onEnded(): void;
}

const END_OF_LINK: Readonly<Record<Exclude<LinkState, 'connected'>, LegEnd>> = {
  failed: { cause: 'failed', by: 'network', description: 'The browser could not be connected' },
  closed: { cause: 'completed', by: 'caller', description: 'The far end hung up' },
  lost: { cause: 'timeout', by: 'system', description: 'The browser was not heard any more' },
};

export class BrowserLeg implements Leg {
  readonly #options: BrowserLegOptions;
  #media: WebrtcLeg | undefined;
  readonly #signals = new LegSignals();
  /** The stream as the browser asks for it, and as it is now. */
  #offered: AudioAgreement | undefined;
  #agreement: AudioAgreement | undefined;
  #isConnected = false;
  #wasAnswered = false;
  #isAnswered = false;
  #isEarly = false;
  #over = false;
  #holding = false;
  #isHeld = false;
  readonly #tones = new ToneListening((on) => this.#media?.detectTones(on));
  readonly #early = new EarlyAudio((notice) => this.#signals.tell({ type: 'leg.media', notice }));

  private constructor(options: BrowserLegOptions) {
    this.#options = options;
  }

  /** Opens the leg. Undefined when there is no room for its audio. */
  static async open(options: BrowserLegOptions): Promise<BrowserLeg | undefined> {
    const leg = new BrowserLeg(options);
    leg.#media = await options.open((notice) => leg.#hear(notice));
    return leg.#media === undefined ? undefined : leg;
  }

  /** The media side, for an ICE restart. */
  get media(): WebrtcLeg | undefined {
    return this.#over ? undefined : this.#media;
  }

  /** Hands over the signals so far, and then all that follow. */
  listen(listener: LegListener): void {
    this.#signals.listen(listener);
  }

  /** Starts the stream, or changes it as the browser asks. */
  agree(offered: AudioAgreement): void {
    if (this.#over) return;
    this.#offered = offered;
    const agreement = { ...offered, receive: offered.receive && !this.#holding, isHolding: this.#holding };
    this.#agreement = agreement;
    this.#media?.negotiate({ ...agreement, learnFrom: [] });
    this.#tones.agreed(agreement.telephoneEventPayloadType !== undefined);
    if (agreement.held === this.#isHeld) return;
    this.#isHeld = agreement.held;
    if (this.#isAnswered) this.#tellHold();
  }

  get audio(): LegAudio | undefined {
    return this.#over ? undefined : this.#isConnected ? this.#media : this.#early;
  }

  start(): void {}

  ring(): void {
    this.#signals.tell({ type: 'leg.ringing' });
  }

  startEarlyMedia(): void {
    if (this.#over || this.#wasAnswered || this.#isEarly) return;
    this.#isEarly = true;
    this.#signals.tell({ type: 'leg.early_media' });
  }

  answer(): void {
    if (this.#over || this.#wasAnswered) return;
    this.#wasAnswered = true;
    this.#tellAnswered();
  }

  reject(): void {
    this.#endBy('rejected', 'The call was declined');
  }

  cancel(): void {
    this.hangup();
  }

  hangup(): void {
    this.#endBy('completed', 'The call was hung up');
  }

  /** The browser has hung up. */
  hungUp(): void {
    this.#end(this.#isAnswered ? END_OF_LINK.closed : { ...END_OF_LINK.closed, cause: 'cancelled' });
  }

  sendDigits(operationUuid: string, digits: string, durationMs: number, gapMs: number): void {
    this.#media?.sendKeys(operationUuid, digits, durationMs, gapMs);
  }

  /** WHIP lets nobody but the browser make an offer, so our hold takes effect at our side alone. */
  hold(on: boolean): void {
    if (this.#over || this.#agreement === undefined || !this.#isAnswered) return;
    this.#holding = on;
    if (this.#offered !== undefined) this.agree(this.#offered);
    this.#signals.tell({ type: 'leg.own_hold', on });
  }

  /** Consent is asked for by the browser each few seconds, and its loss is told; so a link that is up is alive. */
  probe(): void {
    if (this.#isConnected && !this.#over) this.#signals.tell({ type: 'leg.alive' });
  }

  secure(on: boolean): void {
    this.#tones.secure(on);
  }

  async quality(): Promise<CallQuality | undefined> {
    if (this.#over || !this.#isConnected || this.#media === undefined) return undefined;
    return qualityOf(await this.#media.counters(), this.#agreement?.codec ?? '');
  }

  #hear(notice: MediaNotice): void {
    if (notice.type === 'digit') this.#tones.heard(notice.method);
    if (!this.#over || !isToldByEnd(notice)) this.#signals.tell({ type: 'leg.media', notice });
    if (notice.type !== 'link' || this.#over) return;
    if (notice.state === 'closed') this.hungUp();
    else if (notice.state !== 'connected') this.#end(END_OF_LINK[notice.state]);
    else if (this.#media !== undefined) {
      this.#isConnected = true;
      this.#early.handOver(this.#media);
      this.#tellAnswered();
    }
  }

  #tellAnswered(): void {
    if (!this.#wasAnswered || !this.#isConnected || this.#isAnswered) return;
    this.#isAnswered = true;
    this.#signals.tell({ type: 'leg.answered' });
    if (this.#isHeld) this.#tellHold();
  }

  #tellHold(): void {
    this.#signals.tell({ type: this.#isHeld ? 'leg.held' : 'leg.resumed' });
  }

  #endBy(cause: HangupCause, description: string): void {
    this.#end({ cause, by: 'callee', description });
  }

  /** Ends the leg, once: gives back what it holds, then signals. */
  #end(end: LegEnd): void {
    if (this.#over) return;
    this.#over = true;
    this.#options.onEnded();
    this.#early.release();
    this.#signals.tellEnd(end, this.#close(), (ms, then) => this.#options.wait(ms, then));
  }

  /** Closes the audio leg. Resolves with how the call sounded, where the browser was connected. */
  async #close(): Promise<CallQuality | undefined> {
    const counters = await this.#media?.close();
    return counters === undefined || !this.#isConnected ? undefined : qualityOf(counters, this.#agreement?.codec ?? '');
  }
}
