/** What every source of sound is, whether one file, the segments of an HLS stream, or what a playlist names. */
import type { AudioKind } from '../format/sniff.ts';

/** The source was admitted and then failed: its connection, its size or its content. */
export class SourceLost extends Error {
  override readonly name = 'SourceLost';
}

export interface AudioSource {
  readonly kind: AudioKind;
  /** After admission: reads on to the end where the source is small; otherwise keeps (`first`) or drops the connection. Never rejects. */
  hold(first: boolean): void;
  /**
   * The bytes from the first audio on. Each use after the first reads memory or fetches again, and ends the one before. Throws `SourceLost`.
   */
  bytes(): AsyncGenerator<Uint8Array>;
  /** Ends the reading under way; what is not held whole will be fetched again. */
  interrupt(): void;
  /** Gives connections and memory back. Safe to call twice. */
  release(): void;
}
