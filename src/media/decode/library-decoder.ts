/** What the decoders that run a library share: their output, their restarts, and their place among the open ones. */
import { DECODER_RESTARTS_MAX, DECODER_SHORT_MS, DECODER_SHORT_STREAMS_MAX } from '../../limits.ts';
import { type Pcm, PcmOutput, TooMuchSound } from './pcm-output.ts';
import type { SourceDecoder } from './source-decoder.ts';

export abstract class LibraryDecoder implements SourceDecoder {
  protected readonly output: PcmOutput;
  protected isHeard = false;
  readonly #closed: () => void;
  readonly #shortSamples: number;
  #restarts = 0;
  /** The samples made before the logical stream that is decoded, and the short ones in a row before it. */
  #streamFrom = 0;
  #shortStreams = 0;

  /**
   * `skip` and `before` are those of `PcmOutput`, and together the samples before the place to begin at. `closed` is
   * called when the decoder is closed.
   */
  constructor(rateHz: number, skip: number, closed: () => void, before = 0) {
    this.output = new PcmOutput(rateHz, skip, before);
    this.#closed = closed;
    this.#shortSamples = (rateHz * DECODER_SHORT_MS) / 1000;
  }

  get samples(): number {
    return this.output.samples;
  }

  get heard(): boolean {
    return this.isHeard;
  }

  abstract push(bytes: Uint8Array): Pcm | Promise<Pcm>;
  abstract end(): Pcm | Promise<Pcm>;
  /** Frees what the library holds. */
  protected abstract free(): void;

  close(): void {
    this.free();
    this.#closed();
  }

  /**
   * Counts that the library stumbled over damage and is begun anew. Rethrows the error past `DECODER_RESTARTS_MAX`,
   * as what is damaged so often is no sound, and one that is no damage but too much of it.
   */
  protected countRestart(error: unknown): void {
    if (error instanceof TooMuchSound || ++this.#restarts > DECODER_RESTARTS_MAX) throw error;
  }

  /**
   * Counts a logical stream, for which the library is begun anew. Throws past `DECODER_SHORT_STREAMS_MAX` of next to no
   * sound in a row: that takes up to 10 ms for 100 bytes.
   */
  protected countStream(): void {
    const isShort = this.samples - this.#streamFrom < this.#shortSamples;
    this.#streamFrom = this.samples;
    this.#shortStreams = isShort ? this.#shortStreams + 1 : 0;
    if (this.#shortStreams > DECODER_SHORT_STREAMS_MAX) throw new Error('too many streams of next to no sound');
  }
}
