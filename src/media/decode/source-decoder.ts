/** The interface of the decoders, one for each format: bytes of a file or stream in, 16-bit mono out. */
import type { Pcm } from './pcm-output.ts';

export interface SourceDecoder {
  /**
   * Samples so far at the rate of the leg, those before the place to begin at included: after `end`, the length of the
   * source.
   */
  readonly samples: number;
  /** Whether anything that could be heard has come; what is before the place to begin at counts. */
  readonly heard: boolean;
  /**
   * Takes bytes in the order of the file. Damaged places are passed over. Throws where nothing of this source can be
   * decoded from here on.
   */
  push(bytes: Uint8Array): Pcm | Promise<Pcm>;
  /** Ends the source after its last byte and returns the sound that was still held. */
  end(): Pcm | Promise<Pcm>;
  /** Gives memory back. */
  close(): void;
}
