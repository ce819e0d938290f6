/**
 * Finds a place in an MP3 without decoding what lies before it: frames are counted by their headers, and those just before the place are kept,
 * because a frame may take bits from earlier ones (the reservoir) and its sound overlaps the one before. Pure.
 */
import { encoderTag, id3Bytes, mpegFrame } from './mpeg-frame.ts';

/** Frames decoded and thrown away before the place: the reservoir is 511 bytes, 22 of the shortest frames. */
const BEFORE_FRAMES = 24;
/** What a decoder holds back at the start of a stream whose encoder named its delay, besides that delay. */
const DECODER_DELAY = 529;

export class MpegSkim {
  readonly #outSamples: number;
  readonly #outHz: number;
  #rest = new Uint8Array(0);
  #drop = 0;
  #first = true;
  #frames = 0;
  #frameSamples = 1152;
  #hz = 0;
  #trim = 0;
  #total: number | undefined;
  #kept: { readonly index: number; readonly bytes: Uint8Array }[] = [];
  #place: number | undefined;
  #discard = 0;

  /** The place is `outSamples` from the start, counted at `outHz`. */
  constructor(outSamples: number, outHz: number) {
    this.#outSamples = outSamples;
    this.#outHz = outHz;
  }

  /** Source samples to throw away of what is decoded from the bytes that `push` gave. */
  get discard(): number {
    return this.#discard;
  }

  /** Source samples there are from the place to the end; undefined where nothing says so. */
  get left(): number | undefined {
    return this.#total === undefined ? undefined : Math.max(0, this.#total - this.#target + this.#trim);
  }

  /** Length of all that was skimmed, at `outHz`: asked where the place was past the end. */
  get outLength(): number {
    const samples = this.#total ?? this.#frames * this.#frameSamples;
    return this.#hz === 0 ? 0 : Math.round((samples * this.#outHz) / this.#hz);
  }

  get #target(): number {
    return Math.floor((this.#outSamples * this.#hz) / this.#outHz) + this.#trim;
  }

  /** Takes bytes. Undefined while the place has not come; then what the decoder is to be given. */
  push(more: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
    const bytes = new Uint8Array(this.#rest.length + more.length);
    bytes.set(this.#rest);
    bytes.set(more, this.#rest.length);
    let at = 0;
    while (at < bytes.length) {
      if (this.#drop > 0) {
        const dropped = Math.min(this.#drop, bytes.length - at);
        this.#drop -= dropped;
        at += dropped;
        continue;
      }
      if (this.#first) {
        const tag = id3Bytes(bytes, at);
        if (tag === undefined) break;
        this.#drop = tag;
        if (tag > 0) continue;
      }
      if (bytes.length - at < 4) break;
      const frame = mpegFrame(bytes, at);
      if (frame === undefined) {
        at++; // what is between frames: a damaged one, or a tag at the end
        continue;
      }
      if (at + frame.bytes > bytes.length) break;
      this.#frame(bytes, at, frame);
      at += frame.bytes;
      if (this.#place !== undefined) return this.#found(bytes.subarray(at));
    }
    this.#rest = bytes.slice(at);
    return undefined;
  }

  #frame(bytes: Uint8Array, at: number, frame: NonNullable<ReturnType<typeof mpegFrame>>): void {
    if (this.#first) {
      this.#first = false;
      this.#hz = frame.hz;
      this.#frameSamples = frame.samples;
      const tag = encoderTag(bytes, at, frame);
      if (tag !== undefined) {
        if (tag.delay !== undefined) {
          this.#trim = tag.delay + DECODER_DELAY;
          if (tag.frames > 0) this.#total = Math.max(0, tag.frames * frame.samples - tag.delay - tag.padding);
        }
        return;
      }
    }
    const index = this.#frames++;
    const wanted = Math.floor(this.#target / this.#frameSamples);
    if (index >= wanted - BEFORE_FRAMES) this.#kept.push({ index, bytes: bytes.slice(at, at + frame.bytes) });
    if (index >= wanted && this.left !== 0) this.#place = index;
  }

  #found(after: Uint8Array): Uint8Array<ArrayBuffer> {
    const from = this.#kept[0]?.index ?? 0;
    this.#discard = this.#target - from * this.#frameSamples;
    const out = Buffer.concat([...this.#kept.map((frame) => frame.bytes), after]);
    this.#kept = [];
    return new Uint8Array(out);
  }
}
