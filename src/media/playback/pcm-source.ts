/**
 * The interface of what can be played as PCM: files, a live stream, a push. A pump pulls a source and never knows which
 * it is.
 */
import type { PlaybackFailure } from '../../event/event.ts';
import type { Playlist } from '../audio.ts';
import { DecodeError, type Decoders } from '../decode/decoder.ts';

export interface PcmTerms {
  /** Times through; 0: until stopped. Of files only. */
  readonly loop: number;
  readonly rateHz: number;
  readonly decoders: Decoders;
}

export interface PcmSource {
  /** Audio fed ahead of what is heard, ms. */
  readonly aheadMs: number;
  /**
   * Handed to the player in pieces of this size, so that commands stay few, once the player has twice as much; 0: as it
   * comes.
   */
  readonly pieceMs: number;
  /** Whether audio that comes late is left out rather than heard late. */
  readonly live: boolean;
  /**
   * PCM from `from` samples after the beginning, in pieces whose memory is their receiver's. One at a time: `interrupt`
   * ends the one before. Throws `PcmFailed`.
   */
  pcm(from: number): AsyncGenerator<Int16Array<ArrayBuffer>>;
  /** Ends the `pcm` under way, which then throws or returns. */
  interrupt(): void;
}

/** Opened and screened; played once, or released. */
export abstract class Playable implements Playlist {
  abstract readonly urls: readonly string[];
  abstract release(): void;
  abstract source(terms: PcmTerms): PcmSource;
}

/** Nothing more comes. */
export class PcmFailed extends Error {
  override readonly name = 'PcmFailed';
  readonly reason: PlaybackFailure;
  readonly sourceIndex: number | undefined;
  constructor(reason: PlaybackFailure, sourceIndex?: number) {
    super(reason);
    this.reason = reason;
    this.sourceIndex = sourceIndex;
  }
}

/** Names a failure of ours or of the decoder in the words of the events. */
export const failureOf = (error: unknown): PlaybackFailure => (error instanceof DecodeError ? 'decode_error' : 'internal_error');
