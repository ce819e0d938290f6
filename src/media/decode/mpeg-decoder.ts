/**
 * MPEG audio, layers I to III, by mpg123 in WebAssembly. It is given whole frames only, so that a damaged place costs
 * its own sound and no more; where mpg123 itself stumbles it is begun anew behind that place.
 */
import type { MPEGDecoder } from 'mpg123-decoder';
import { type FramedMpeg, MpegFramer } from '../format/mpeg-framer.ts';
import { MpegSeek } from '../format/mpeg-seek.ts';
import { withBoundedErrors } from './library-errors.ts';
import { joined, NO_PCM, type Pcm, PcmOutput } from './pcm-output.ts';
import { Restarts } from './restarts.ts';
import type { SourceDecoder } from './source-decoder.ts';

/** Frames decoded in one call; a damaged one may cost the sound of those with it. */
const FRAMES_A_CALL = 16;

export class MpegDecoder implements SourceDecoder {
  readonly #mpg123: MPEGDecoder;
  readonly #giveBack: (mpg123: MPEGDecoder) => void;
  readonly #framer = new MpegFramer();
  readonly #output: PcmOutput;
  /** The seek under way, while the place to begin at has not come. */
  #seek: MpegSeek | undefined;
  /** Source samples to throw away, and those to keep after them. */
  #discard = 0;
  #left = Infinity;
  #heard = false;
  readonly #restarts = new Restarts();
  #skipped: number | undefined;

  /** `giveBack` takes the instance of mpg123 when this decoder is closed. */
  constructor(mpg123: MPEGDecoder, rateHz: number, skip: number, giveBack: (mpg123: MPEGDecoder) => void) {
    this.#mpg123 = mpg123;
    this.#giveBack = giveBack;
    this.#output = new PcmOutput(rateHz, 0, skip);
    this.#seek = skip > 0 ? new MpegSeek(skip, rateHz) : undefined;
  }

  get samples(): number {
    return this.#skipped ?? this.#output.samples;
  }

  get heard(): boolean {
    return this.#heard;
  }

  async push(bytes: Uint8Array): Promise<Pcm> {
    this.#output.step();
    return await this.#take(this.#framer.push(bytes));
  }

  async end(): Promise<Pcm> {
    const last = await this.#take(this.#framer.end());
    if (this.#seek === undefined) return joined([last, this.#output.end()]);
    this.#skipped = this.#seek.outLength; // The place was past the end.
    this.#heard = this.#skipped > 0;
    return last;
  }

  close(): void {
    this.#giveBack(this.#mpg123);
  }

  async #take(frames: readonly FramedMpeg[]): Promise<Pcm> {
    if (this.#seek === undefined) return await this.#decode(frames);
    const found = this.#seek.push(frames);
    if (found === undefined) return NO_PCM;
    this.#discard = this.#seek.discard;
    this.#left = this.#seek.left ?? Infinity;
    this.#seek = undefined;
    return await this.#decode(found);
  }

  async #decode(frames: readonly FramedMpeg[]): Promise<Pcm> {
    const parts: Pcm[] = [];
    for (let at = 0; at < frames.length; at += FRAMES_A_CALL) {
      const bytes = new Uint8Array(Buffer.concat(frames.slice(at, at + FRAMES_A_CALL).map((frame) => frame.bytes)));
      try {
        const { channelData, sampleRate, samplesDecoded } = withBoundedErrors(() => this.#mpg123.decode(bytes));
        parts.push(this.#kept(channelData, samplesDecoded, sampleRate));
      } catch (error) {
        this.#restarts.count(error);
        await this.#mpg123.reset();
      }
    }
    return joined(parts);
  }

  #kept(channels: readonly Float32Array[], samples: number, hz: number): Pcm {
    if (samples === 0) return NO_PCM;
    this.#heard = true;
    const thrown = Math.min(this.#discard, samples);
    this.#discard -= thrown;
    const kept = Math.min(this.#left, samples - thrown);
    this.#left -= kept;
    return this.#output.add(
      channels.map((channel) => channel.subarray(thrown, thrown + kept)),
      hz,
    );
  }
}
