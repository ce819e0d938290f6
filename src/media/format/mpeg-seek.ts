/**
 * Finds a place in MPEG audio without decoding what lies before it: frames are counted by their headers, and those just
 * before the place are kept, because a frame may take bits from earlier ones (the reservoir) and its sound overlaps the
 * one before. Pure.
 */
import { encoderTag } from './mpeg-frame.ts';
import type { FramedMpeg } from './mpeg-framer.ts';

/** Frames decoded and thrown away before the place: the reservoir is 511 bytes, 22 of the shortest frames. */
const BEFORE_FRAMES = 24;
/** Samples that a decoder holds back at the start of a stream, in addition to the delay that the encoder names. */
const DECODER_DELAY = 529;

export class MpegSeek {
  readonly #outSamples: number;
  readonly #outHz: number;
  #first = true;
  #frames = 0;
  #frameSamples = 1152;
  #hz = 0;
  #trim = 0;
  #total: number | undefined;
  #kept: { readonly index: number; readonly frame: FramedMpeg }[] = [];
  #discard = 0;

  /** The place is `outSamples` from the start, counted at `outHz`. */
  constructor(outSamples: number, outHz: number) {
    this.#outSamples = outSamples;
    this.#outHz = outHz;
  }

  /** Source samples to throw away of what is decoded from the frames that `push` gave. */
  get discard(): number {
    return this.#discard;
  }

  /** Source samples there are from the place to the end; undefined where nothing says so. */
  get left(): number | undefined {
    return this.#total === undefined ? undefined : Math.max(0, this.#total - this.#target + this.#trim);
  }

  /** The length of all frames so far, at `outHz`. It is asked for where the place was past the end. */
  get outLength(): number {
    const samples = this.#total ?? this.#frames * this.#frameSamples;
    return this.#hz === 0 ? 0 : Math.round((samples * this.#outHz) / this.#hz);
  }

  get #target(): number {
    return Math.floor((this.#outSamples * this.#hz) / this.#outHz) + this.#trim;
  }

  /** Takes frames. Undefined while the place has not come; then the frames that the decoder is to be given. */
  push(frames: readonly FramedMpeg[]): readonly FramedMpeg[] | undefined {
    for (const [index, frame] of frames.entries()) {
      if (!this.#reached(frame)) continue;
      const kept = this.#kept;
      this.#discard = this.#target - (kept[0]?.index ?? 0) * this.#frameSamples;
      this.#kept = [];
      return [...kept.map((each) => each.frame), ...frames.slice(index + 1)];
    }
    return undefined;
  }

  /** Counts a frame and keeps it where it is needed; true where the place lies in it. */
  #reached(frame: FramedMpeg): boolean {
    const { header } = frame;
    if (this.#first) {
      this.#first = false;
      this.#hz = header.hz;
      this.#frameSamples = header.samples;
      const tag = encoderTag(frame.bytes, 0, { ...header, bytes: frame.bytes.length });
      if (tag !== undefined) {
        if (tag.delay !== undefined) {
          this.#trim = tag.delay + DECODER_DELAY;
          if (tag.frames > 0) this.#total = Math.max(0, tag.frames * header.samples - tag.delay - tag.padding);
        }
        return false;
      }
    }
    const index = this.#frames++;
    const wanted = Math.floor(this.#target / this.#frameSamples);
    if (index >= wanted - BEFORE_FRAMES) this.#kept.push({ index, frame: { header, bytes: frame.bytes.slice() } });
    return index >= wanted && this.left !== 0;
  }
}
