/**
 * One playback: reads its sources in turn, has them decoded, and keeps the leg's native player about two seconds ahead of what is heard. The
 * sources follow each other in one stream of PCM, so there is no gap between them.
 */
import type { PlaybackFailure } from '../event/event.ts';
import { DECODE_STEP_BYTES, PLAYER_AHEAD_MS } from '../limits.ts';
import { DecodeError, type DecoderThread, type DecodeStream } from './decoder.ts';
import type { OpenPlaylist } from './playlist.ts';
import { type Source, SourceLost } from './source.ts';

export interface FeedFailure {
  readonly reason: PlaybackFailure;
  readonly sourceIndex: number;
}

export interface FeederOptions {
  readonly playlist: OpenPlaylist;
  /** Times through the list; 0: until stopped. */
  readonly loop: number;
  readonly rateHz: number;
  readonly decoders: DecoderThread;
  /** Hands PCM to the player; never more than was asked for. */
  readonly feed: (pcm: Int16Array<ArrayBuffer>) => void;
  /** Everything has been handed over, or nothing more will come because of `failure`. Not called after `stop`. */
  readonly done: (failure: FeedFailure | undefined) => void;
}

/** The first samples go out at once; afterwards in pieces of this size, so that orders stay few. */
const PIECE_MS = 500;
const FIRST_PIECE_MS = 100;

export class Feeder {
  readonly #options: FeederOptions;
  readonly #aheadSamples: number;
  #fed = 0;
  /** Samples that may still be fed before the player must ask. */
  #budget: number;
  #wake: (() => void) | undefined;
  #stopped = false;
  #held: Int16Array<ArrayBuffer>[] = [];
  #heldSamples = 0;

  constructor(options: FeederOptions) {
    this.#options = options;
    this.#aheadSamples = (options.rateHz * PLAYER_AHEAD_MS) / 1000;
    this.#budget = this.#aheadSamples;
    void this.#run();
  }

  /** Samples handed over so far. */
  get fed(): number {
    return this.#fed;
  }

  /** The player asks for more: what it had queued, when it had taken `fedByThen` samples. */
  hungry(queuedMs: number, fedByThen: number): void {
    const underway = this.#fed - fedByThen;
    this.#budget = this.#aheadSamples - (queuedMs * this.#options.rateHz) / 1000 - underway;
    this.#wake?.();
  }

  /** Gives connections and memory back at once, even in the middle of a read. */
  stop(): void {
    this.#stopped = true;
    this.#options.playlist.release();
    this.#wake?.();
  }

  async #run(): Promise<void> {
    const failure = await this.#playAll();
    this.#options.playlist.release();
    if (!this.#stopped) this.#options.done(failure);
  }

  async #playAll(): Promise<FeedFailure | undefined> {
    const { playlist, loop } = this.#options;
    for (let pass = 0; loop === 0 || pass < loop; pass++) {
      const before = this.#fed + this.#heldSamples;
      for (const [sourceIndex, source] of playlist.sources.entries()) {
        try {
          await this.#playOne(source);
        } catch (error) {
          await this.#flush(); // what came before the break is heard
          const reason =
            error instanceof SourceLost
              ? 'source_disconnected'
              : error instanceof DecodeError
                ? 'decode_error'
                : 'internal_error';
          return { reason, sourceIndex };
        }
        if (this.#stopped) return undefined;
      }
      if (this.#fed + this.#heldSamples === before) break; // nothing but empty files: no use in looping
    }
    await this.#flush();
    return undefined;
  }

  async #playOne(source: Source): Promise<void> {
    let decoder: DecodeStream | undefined;
    try {
      for await (const chunk of source.bytes()) {
        decoder ??= await this.#options.decoders.open(source.kind, this.#options.rateHz);
        for (let at = 0; at < chunk.length; at += DECODE_STEP_BYTES) {
          await this.#give(await decoder.push(chunk.slice(at, at + DECODE_STEP_BYTES)));
          if (this.#stopped) return;
        }
      }
      if (decoder !== undefined) await this.#give(await decoder.end());
    } finally {
      decoder?.close();
    }
  }

  async #give(pcm: Int16Array<ArrayBuffer>): Promise<void> {
    if (pcm.length === 0) return;
    this.#held.push(pcm);
    this.#heldSamples += pcm.length;
    const piece = (this.#options.rateHz * (this.#fed === 0 ? FIRST_PIECE_MS : PIECE_MS)) / 1000;
    if (this.#heldSamples >= piece) await this.#flush();
  }

  /** Hands over all that is held, piece by piece, waiting for the player in between. */
  async #flush(): Promise<void> {
    for (const pcm of this.#held.splice(0)) {
      this.#heldSamples -= pcm.length;
      for (let at = 0; at < pcm.length && !this.#stopped; ) {
        if (this.#budget < 1) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
          this.#wake = undefined;
          continue;
        }
        const piece = pcm.slice(at, at + Math.floor(this.#budget));
        at += piece.length;
        this.#budget -= piece.length;
        this.#fed += piece.length;
        this.#options.feed(piece);
      }
    }
  }
}
