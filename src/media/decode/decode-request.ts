/**
 * The messages between the main thread and the decoding thread. `owner` is the application whose share of the thread's
 * time it takes; empty where it is nobody's.
 */
import type { AudioKind } from '../format/sniff.ts';

export type DecodeRequest =
  /** Opens a stream. `skip` is the place to begin at, in samples at `rateHz`. */
  | {
      readonly type: 'open';
      readonly stream: number;
      readonly owner: string;
      readonly kind: AudioKind;
      readonly rateHz: number;
      readonly skip: number;
    }
  | { readonly type: 'push'; readonly stream: number; readonly owner: string; readonly bytes: Uint8Array<ArrayBuffer> }
  /** The last byte was pushed. */
  | { readonly type: 'end'; readonly stream: number; readonly owner: string }
  | { readonly type: 'close'; readonly stream: number; readonly owner: string }
  | { readonly type: 'quit' };

/** Answers go up together: each message costs the main thread a turn. */
export type DecodeAnswers = readonly DecodeAnswer[];

export interface DecodeAnswer {
  readonly stream: number;
  readonly pcm: Int16Array<ArrayBuffer>;
  /** Samples so far, those that were skipped included: after the end, the length of the source. */
  readonly samples: number;
  /** The source is broken from here on; `pcm` is what came before. */
  readonly error: string | undefined;
}
