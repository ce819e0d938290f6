/** The interface of a source of sound, whether it is one file or the segments of an HLS stream. */
import type { AudioKind } from '../format/sniff.ts';
import type { LeftOut } from '../format/wav-jump.ts';
import type { SharedContent } from './shared-content.ts';

/** The source was admitted and then failed: its connection, its size or its content. */
export class SourceLost extends Error {
  override readonly name = 'SourceLost';
}

/** What a reader need not be told, by the first bytes. */
export interface Jump {
  find(first: Uint8Array): LeftOut | undefined;
  /** It is left out. Called before the bytes in place of it are told. */
  taken(leftOut: LeftOut): void;
}

export interface AudioSource {
  /** The kind of the bytes that were told last, before any that of the first. It changes within an HLS stream only. */
  readonly kind: AudioKind;
  /** The file that is read here and by whoever else plays it; undefined where the source is read here alone. */
  readonly content: SharedContent | undefined;
  /**
   * Called once it is open. A small source is read on to its end. Of a large one the connection is kept (`first`) or
   * dropped, as it is of one that takes longer than `SOURCE_FILL_MAX_MS` and is not heard by then. Resolves when that
   * is done; never rejects.
   */
  hold(first: boolean): Promise<void>;
  /**
   * Called before it is read from its start: a later file of a playlist, nothing of which is held, is asked for, and
   * shared if that can be. It never rejects.
   */
  prepare(): Promise<void>;
  /**
   * The bytes from the first audio on. Each use after the first reads memory or fetches again, and ends the one before.
   * Throws `SourceLost`. Where it is fetched anew, what `jump` names is left out, if that can be.
   */
  bytes(jump?: Jump): AsyncGenerator<Uint8Array>;
  /** Ends the reading under way; what is not held whole will be fetched again. */
  interrupt(): void;
  /** Gives connections and memory back. Safe to call twice. */
  release(): void;
}
