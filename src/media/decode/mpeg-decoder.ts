/**
 * MPEG audio, layers I to III, by mpg123. It is given whole frames only, so that a damaged place costs
 * its own sound and no more; where mpg123 itself stumbles it is begun anew behind that place.
 */
import { type FramedMpeg, MpegFramer } from '../format/mpeg-framer.ts';
import { MpegSeek } from '../format/mpeg-seek.ts';
import { LibraryDecoder } from './library-decoder.ts';
import type { Mpg123 } from './mpg123.ts';
import { joined, NO_PCM, type Pcm } from './pcm-output.ts';

/** Frames decoded in one call; a damaged one may cost the sound of those with it. */
const FRAMES_A_CALL = 16;

export class MpegDecoder extends LibraryDecoder {
  readonly #open: (layer: number) => Promise<Mpg123>;
  #mpg123: Mpg123 | undefined;
  /** The layer that it is open for. */
  #layer = 0;
  readonly #framer = new MpegFramer();
  /** The seek under way, while the place to begin at has not come. */
  #seek: MpegSeek | undefined;
  /** Source samples to throw away, those to keep after them, and those to throw away then, before all others. */
  #discard = 0;
  #left = Infinity;
  #padding = 0;
  #skipped: number | undefined;

  /** `open` gives an instance of mpg123 for frames of a layer. `closed` is called when this decoder is closed. */
  constructor(open: (layer: number) => Promise<Mpg123>, rateHz: number, skip: number, closed: () => void) {
    super(rateHz, 0, closed, skip);
    this.#open = open;
    this.#seek = skip > 0 ? new MpegSeek(skip, rateHz) : undefined;
  }

  override get samples(): number {
    return this.#skipped ?? super.samples;
  }

  async push(bytes: Uint8Array): Promise<Pcm> {
    this.output.step();
    return await this.#take(this.#framer.push(bytes));
  }

  async end(): Promise<Pcm> {
    const last = await this.#take(this.#framer.end());
    if (this.#seek === undefined) return joined([last, this.output.end()]);
    this.#skipped = this.#seek.outLength; // The place was past the end.
    this.isHeard = this.#skipped > 0;
    return last;
  }

  protected free(): void {
    this.#mpg123?.close();
  }

  async #take(frames: readonly FramedMpeg[]): Promise<Pcm> {
    if (this.#seek === undefined) return await this.#decode(frames);
    const found = this.#seek.push(frames);
    if (found === undefined) return NO_PCM;
    this.#discard = this.#seek.discard;
    this.#left = this.#seek.left ?? Infinity;
    this.#padding = this.#seek.padding;
    this.#seek = undefined;
    return await this.#decode(found);
  }

  async #decode(frames: readonly FramedMpeg[]): Promise<Pcm> {
    const parts: Pcm[] = [];
    for (let at = 0; at < frames.length; ) {
      const layer = frames[at]?.header.layer ?? 0;
      const most = frames.slice(at, at + FRAMES_A_CALL);
      const other = most.findIndex(({ header }) => header.layer !== layer);
      const those = other === -1 ? most : most.slice(0, other);
      at += those.length;
      try {
        const mpg123 = this.#mpg123 !== undefined && layer === this.#layer ? this.#mpg123 : await this.#begin(layer);
        mpg123.decode(together(those), (channels, samples, hz) => parts.push(this.#kept(channels, samples, hz)));
      } catch (error) {
        this.countRestart(error);
        await this.#begin(layer);
      }
    }
    return joined(parts);
  }

  /** Begins mpg123 for the frames of a layer, or begins it anew. A source that changes its layer is damaged. */
  async #begin(layer: number): Promise<Mpg123> {
    const before = this.#mpg123;
    this.#mpg123 = undefined;
    before?.close();
    if (this.#layer !== 0 && this.#layer !== layer) this.countRestart(new Error('another layer'));
    this.#layer = layer;
    this.#mpg123 = await this.#open(layer);
    return this.#mpg123;
  }

  #kept(channels: readonly Float32Array[], samples: number, hz: number): Pcm {
    this.isHeard = true;
    const parts: Pcm[] = [];
    for (let at = 0; at < samples; ) {
      const thrown = Math.min(this.#discard, samples - at);
      this.#discard -= thrown;
      at += thrown;
      const kept = Math.min(this.#left, samples - at);
      this.#left -= kept;
      const [from, until] = [at, at + kept];
      at = until;
      parts.push(
        this.output.add(
          channels.map((channel) => channel.subarray(from, until)),
          hz,
        ),
      );
      if (this.#left > 0) continue;
      this.#discard = this.#padding;
      this.#left = Infinity;
    }
    return joined(parts);
  }
}

/**
 * The bytes of frames that follow each other: a view of them where they lie together, as those of one step mostly do.
 */
function together(frames: readonly FramedMpeg[]): Uint8Array {
  const [first] = frames;
  if (first === undefined) return new Uint8Array(0);
  let end = first.bytes.byteOffset;
  for (const { bytes } of frames) {
    if (bytes.buffer !== first.bytes.buffer || bytes.byteOffset !== end) return Buffer.concat(frames.map((frame) => frame.bytes));
    end += bytes.length;
  }
  return new Uint8Array(first.bytes.buffer, first.bytes.byteOffset, end - first.bytes.byteOffset);
}
