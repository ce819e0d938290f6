/**
 * Finds a place in MPEG audio without decoding what lies before it: frames are counted by their headers, and those just
 * before the place are kept, because a frame may take bits from earlier ones (the reservoir) and its sound overlaps the
 * one before.
 *
 *   files that were joined:  tag │ delay │ sound of the first │ padding │ tag │ delay │ sound of the second │ padding
 *   what is heard:                        └──────────────────┘         └─────────────────────────────────────────┘
 *
 * A tag describes the file that it was made for. What follows that file's frames is heard in full, as mpg123 has it
 * when it reads from the start. Pure.
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
  /** The frames that the encoder's tag names, and the samples of sound in them. */
  #tagged: { readonly frames: number; readonly samples: number } | undefined;
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

  /** Source samples from the place to the end of the file that the tag describes; undefined where none is cut off. */
  get left(): number | undefined {
    const left = (this.#tagged?.samples ?? 0) - this.#place;
    return left > 0 ? left : undefined;
  }

  /** Source samples to throw away after those. */
  get padding(): number {
    return this.#tagged === undefined ? 0 : this.#tagged.frames * this.#frameSamples - this.#trim - this.#tagged.samples;
  }

  /** The length of all frames so far, at `outHz`. It is asked for where the place was past the end. */
  get outLength(): number {
    const { frames, samples } = this.#tagged ?? { frames: Infinity, samples: 0 };
    const later = this.#frames - frames;
    const heard = later < 0 ? Math.max(0, this.#frames * this.#frameSamples - this.#trim) : samples + later * this.#frameSamples;
    return this.#hz === 0 ? 0 : Math.round((heard * this.#outHz) / this.#hz);
  }

  get #place(): number {
    return Math.floor((this.#outSamples * this.#hz) / this.#outHz);
  }

  /** The place among all samples of all frames. */
  get #target(): number {
    const tagged = this.#tagged;
    if (tagged === undefined || this.#place < tagged.samples) return this.#place + this.#trim;
    return tagged.frames * this.#frameSamples + this.#place - tagged.samples;
  }

  /** Takes frames. Undefined while the place has not come; then the frames that the decoder is to be given. */
  push(frames: readonly FramedMpeg[]): readonly FramedMpeg[] | undefined {
    for (const [index, frame] of frames.entries()) {
      if (!this.#reached(frame)) continue;
      const kept = this.#kept;
      // A decoder that begins with the tag of a later file would take it for that of the whole.
      if (kept[0] !== undefined && tagOf(kept[0].frame) !== undefined) kept.shift();
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
      const tag = tagOf(frame);
      if (tag !== undefined) {
        if (tag.delay !== undefined) this.#describe(tag.frames, tag.delay, tag.padding);
        return false;
      }
    }
    const index = this.#frames++;
    const wanted = Math.floor(this.#target / this.#frameSamples);
    if (index >= wanted - BEFORE_FRAMES) this.#kept.push({ index, frame: { header, bytes: frame.bytes.slice() } });
    return index >= wanted;
  }

  #describe(frames: number, delay: number, padding: number): void {
    this.#trim = delay + DECODER_DELAY;
    if (frames === 0) return;
    const whole = frames * this.#frameSamples;
    this.#tagged = { frames, samples: Math.max(0, Math.min(whole - delay - padding, whole - this.#trim)) };
  }
}

const tagOf = ({ header, bytes }: FramedMpeg): ReturnType<typeof encoderTag> =>
  encoderTag(bytes, 0, { ...header, bytes: bytes.length });
