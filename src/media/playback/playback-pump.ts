/**
 * One playback: pulls its source and keeps the native player some seconds ahead of what is heard. The player says
 * when it is hungry and, after a seek, how far it had come; from then on what is pulled is another place of the same
 * source.
 */
import type { PlaybackFailure } from '../../event/event.ts';
import { LIVE_KEEP_MS, LIVE_LEAD_MS, LIVE_OWED_MAX_MS } from '../../limits.ts';
import type { Place } from '../../machine/playback/playback.ts';
import { PcmFailed, type PcmSource } from './pcm-source.ts';

export interface FeedFailure {
  readonly reason: PlaybackFailure;
  readonly sourceIndex: number | undefined;
}

interface PumpOptions {
  readonly source: PcmSource;
  readonly rateHz: number;
  /** Hands PCM to the player, and its memory with it; never more than was asked for. */
  readonly feed: (pcm: Int16Array<ArrayBuffer>) => void;
  /** Tells the player that another place follows; it answers with `moved`. */
  readonly move: () => void;
  /** Everything has been handed over, or nothing more will come because of `failure`. Not called after `stop`. */
  readonly done: (failure: FeedFailure | undefined) => void;
}

/** The first samples go out with this much to start on. */
const FIRST_PIECE_MS = 100;

export class PlaybackPump {
  readonly #options: PumpOptions;
  readonly #aheadSamples: number;
  /** The place where the player's track began, and the samples that were fed to it since. */
  #base = 0;
  #fed = 0;
  /** Samples that may still be fed before the player must ask. */
  #budget: number;
  /** Samples that the player had when it asked last, and those that were fed to it since. */
  #lead = 0;
  #wake: (() => void) | undefined;
  /** The pull under way; one of an earlier number is over. */
  #pull = 0;
  #stopped = false;
  #held: Int16Array<ArrayBuffer>[] = [];
  #heldSamples = 0;
  #moving: Place | undefined;
  #next: Place | undefined;
  /** When the first sample would have had to be fed for all since to be heard without a pause; of a live source. */
  #began: number | undefined;
  /** Milliseconds by which a live source is late. */
  #owedMs = 0;
  /** How the sound that was handed over last would have gone on, where what follows it is left out. */
  #onward: Int16Array | undefined;

  constructor(options: PumpOptions) {
    this.#options = options;
    this.#aheadSamples = (options.rateHz * options.source.aheadMs) / 1000;
    this.#budget = this.#aheadSamples;
    void this.#run(0);
  }

  /** Samples handed over since the beginning, or since the last move. */
  get fed(): number {
    return this.#fed;
  }

  /** The player asks for more: what it had queued when it had taken `fedByThen` samples. */
  hungry(queuedMs: number, fedByThen: number): void {
    const underway = this.#fed - this.#whole(fedByThen);
    this.#lead = (queuedMs * this.#options.rateHz) / 1000 + underway;
    this.#budget = this.#aheadSamples - this.#lead;
    this.#turn();
  }

  /** A count of the player of what was fed to it, which it keeps in 32 bits: a day of Opus passes that. */
  #whole(count: number): number {
    const behind = (this.#fed - count) >>> 0;
    return behind <= this.#fed ? this.#fed - behind : count;
  }

  /**
   * Goes to another place. Several at once add up: a position counts instead of what came before, an offset from it.
   */
  seek(place: Place): void {
    if (this.#stopped) return;
    if (this.#moving !== undefined) {
      this.#next = joined(this.#next, place);
      return;
    }
    this.#moving = place;
    this.#halt();
    this.#options.move();
  }

  /** The player has heard `taken` samples since the beginning or the last move; what is fed now is heard after them. */
  moved(taken: number): void {
    const place = this.#moving;
    if (place === undefined || this.#stopped) return;
    const { rateHz } = this.#options;
    const samples = (ms: number) => Math.round((ms * rateHz) / 1000);
    const target = 'positionMs' in place ? samples(place.positionMs) : this.#base + this.#whole(taken) + samples(place.offsetMs);
    this.#base = Math.max(0, target);
    this.#fed = 0;
    this.#lead = 0;
    this.#budget = this.#aheadSamples;
    this.#moving = undefined;
    const next = this.#next;
    this.#next = undefined;
    if (next === undefined) void this.#run(this.#base);
    else this.seek(next);
  }

  /** Gives connections and memory back at once, even in the middle of a read. */
  stop(): void {
    this.#stopped = true;
    this.#halt();
  }

  #halt(): void {
    this.#pull++;
    this.#held = [];
    this.#heldSamples = 0;
    this.#options.source.interrupt();
    this.#turn();
  }

  #turn(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  async #run(from: number): Promise<void> {
    const pull = ++this.#pull;
    let failure: FeedFailure | undefined;
    try {
      for await (const pcm of this.#options.source.pcm(from)) {
        if (pull !== this.#pull) return;
        await this.#give(pcm, pull);
        if (pull !== this.#pull) return;
      }
    } catch (error) {
      failure =
        error instanceof PcmFailed
          ? { reason: error.reason, sourceIndex: error.sourceIndex }
          : { reason: 'internal_error', sourceIndex: undefined };
    }
    if (pull !== this.#pull) return;
    await this.#flush(pull); // what came before a break is heard
    if (pull === this.#pull) this.#options.done(failure);
  }

  async #give(pcm: Int16Array<ArrayBuffer>, pull: number): Promise<void> {
    // A stream may decode to nothing for as long as it goes on: that is not kept.
    if (pcm.length === 0) return;
    this.#held.push(pcm);
    this.#heldSamples += pcm.length;
    const { rateHz, source } = this.#options;
    const samples = (ms: number) => (rateHz * ms) / 1000;
    // A source that gives no more than is heard is handed over before the player has nothing left.
    const piece = Math.min(samples(source.pieceMs), Math.max(samples(FIRST_PIECE_MS), this.#lead / 2));
    if (this.#heldSamples >= piece) await this.#flush(pull);
  }

  /** Hands over all that is held, piece by piece, waiting for the player in between. */
  async #flush(pull: number): Promise<void> {
    this.#heldSamples = 0;
    for (const pcm of this.#held.splice(0).flatMap((held) => this.#timely(held))) {
      for (let at = 0; at < pcm.length && pull === this.#pull; ) {
        if (this.#budget < 1) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
          continue;
        }
        const piece = at === 0 && pcm.length <= this.#budget ? pcm : pcm.slice(at, at + Math.floor(this.#budget));
        at += piece.length;
        this.#budget -= piece.length;
        this.#fed += piece.length;
        this.#lead += piece.length;
        this.#options.feed(piece);
      }
    }
  }

  /**
   * Selects what is heard of a live source's audio. Silence that was sent for want of audio made everything after it
   * late. When more has come than is needed to go on, as much of it is left out.
   */
  #timely(pcm: Int16Array<ArrayBuffer>): Int16Array<ArrayBuffer>[] {
    const { rateHz, source } = this.#options;
    if (!source.live) return [pcm];
    const now = performance.now();
    this.#began ??= now;
    const aheadMs = (this.#fed * 1000) / rateHz - (now - this.#began);
    if (aheadMs < 0) {
      this.#owedMs = Math.min(this.#owedMs - aheadMs, LIVE_OWED_MAX_MS);
      this.#began -= aheadMs;
    }
    const samples = (ms: number) => Math.floor((ms * rateHz) / 1000);
    const keep = samples(Math.max(0, LIVE_KEEP_MS - Math.max(0, aheadMs)));
    const left = Math.min(samples(this.#owedMs), pcm.length - keep);
    if (left <= 0) return [this.#led(pcm)];
    this.#owedMs -= (left * 1000) / rateHz;
    const before = this.#led(pcm.slice(0, keep));
    this.#onward ??= pcm.slice(keep, keep + Math.min(left, samples(LIVE_LEAD_MS)));
    return [before, this.#led(pcm.slice(keep + left))];
  }

  /** Leads over to this from the sound before what was left out, so that nobody hears a click. */
  #led(pcm: Int16Array<ArrayBuffer>): Int16Array<ArrayBuffer> {
    const onward = this.#onward;
    if (onward === undefined || pcm.length === 0) return pcm;
    this.#onward = undefined;
    const count = Math.min(onward.length, pcm.length);
    for (let at = 0; at < count; at++) {
      const weight = at / count;
      pcm[at] = Math.round((onward[at] ?? 0) * (1 - weight) + (pcm[at] ?? 0) * weight);
    }
    return pcm;
  }
}

function joined(first: Place | undefined, then: Place): Place {
  if (first === undefined || 'positionMs' in then) return then;
  return 'positionMs' in first
    ? { positionMs: Math.max(0, first.positionMs + then.offsetMs) }
    : { offsetMs: first.offsetMs + then.offsetMs };
}
