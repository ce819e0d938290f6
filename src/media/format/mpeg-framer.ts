/**
 * MPEG audio cut into frames: bytes of any size in, whole frames out. What is no frame is left out: tags, filling, and
 * damaged places, after which two frame headers must agree before anything counts as a frame again. Pure.
 */
import { afterTags } from './leading-tags.ts';
import { agree, freeFormatBytes, MPEG_HEADER_BYTES, type MpegFrame, mpegFrame } from './mpeg-frame.ts';

export interface FramedMpeg {
  readonly header: MpegFrame;
  readonly bytes: Uint8Array;
}

/** The place of the next frame: it is at `at`, or nowhere before `at`, and those bytes are of no use any more. */
type FramePlace = { readonly at: number; readonly length: number; readonly header: MpegFrame } | { readonly at: number };

/** What is known of the stream when the next frame is looked for. */
export interface FrameSearch {
  /** A frame ended where the search begins, so that one header is enough there. */
  readonly locked: boolean;
  /** The frame before, if there was one. */
  readonly like: Uint8Array | undefined;
  /** No bytes follow. */
  readonly whole: boolean;
}

/**
 * The next frame at `from` or after it. Elsewhere than after a frame two headers that agree are needed; they must agree
 * with the frame before too, or with a third: data of other kinds has two in a row by chance, as AAC did.
 */
export function nextFrame(bytes: Uint8Array, from: number, search: FrameSearch): FramePlace {
  for (let at = bytes.indexOf(0xff, from); at !== -1; at = bytes.indexOf(0xff, at + 1)) {
    if (at + MPEG_HEADER_BYTES > bytes.length) return { at };
    const header = mpegFrame(bytes, at);
    if (header === undefined) continue;
    const length = lengthAt(bytes, at, header);
    if (length === undefined && !search.whole) return { at };
    if (length === undefined || length < MPEG_HEADER_BYTES) continue;
    const verdict = at === from && search.locked ? ends(bytes, at + length) : agreement(bytes, at, length, search);
    if (verdict === 'more' && search.whole && at === from && at + length <= bytes.length) return { at, length, header };
    if (verdict === 'more' && !search.whole) return { at };
    if (verdict === true) return { at, length, header };
  }
  return { at: bytes.length };
}

const ends = (bytes: Uint8Array, end: number): true | 'more' => (end <= bytes.length ? true : 'more');

/** Whether a header agrees with that of the frame before, if there was one. */
const isLike = (like: Uint8Array | undefined, header: Uint8Array): boolean =>
  like !== undefined && agree(new Uint8Array(Buffer.concat([like, header])), 0, like.length);

/** Whether enough headers agree with the one at `at`. */
function agreement(bytes: Uint8Array, at: number, length: number, { like }: FrameSearch): boolean | 'more' {
  const second = at + length;
  if (second + MPEG_HEADER_BYTES > bytes.length) return 'more';
  if (!agree(bytes, at, second)) return false;
  const first = mpegFrame(bytes, at);
  if (first !== undefined && first.bytes > 0 && isLike(like, bytes.subarray(at, at + MPEG_HEADER_BYTES))) return true;
  const header = mpegFrame(bytes, second);
  if (first === undefined || header === undefined) return false;
  // Frames of free format are all as long as the first, whose length was only guessed by the place of the second.
  const next = header.bytes > 0 ? header.bytes : length - first.padding + header.padding;
  if (second + next + MPEG_HEADER_BYTES > bytes.length) return 'more';
  return next >= MPEG_HEADER_BYTES && agree(bytes, at, second + next);
}

/** The length of the frame at `at`; undefined where more bytes are needed to tell. */
const lengthAt = (bytes: Uint8Array, at: number, header: MpegFrame): number | undefined =>
  header.bytes > 0 ? header.bytes : freeLength(bytes, at, header.padding);

function freeLength(bytes: Uint8Array, at: number, padding: number): number | undefined {
  const length = freeFormatBytes(bytes, at, padding);
  return length === undefined || length === 0 ? length : length + padding;
}

export class MpegFramer {
  #rest: Uint8Array = new Uint8Array(0);
  #locked = false;
  /** The header of the last frame. */
  #like: Uint8Array | undefined;
  /** Bytes of a leading tag that are still to come. */
  #skip = 0;
  #begun = false;

  /** The frames that are whole with these bytes. */
  push(more: Uint8Array): FramedMpeg[] {
    return this.#frames(more, false);
  }

  /** The frames that were waiting for a successor which will not come. */
  end(): FramedMpeg[] {
    return this.#frames(new Uint8Array(0), true);
  }

  #frames(more: Uint8Array, whole: boolean): FramedMpeg[] {
    const bytes = this.#rest.length === 0 ? more : new Uint8Array(Buffer.concat([this.#rest, more]));
    let at = Math.min(this.#skip, bytes.length);
    this.#skip -= at;
    const frames: FramedMpeg[] = [];
    if (!this.#begun && this.#skip === 0) {
      const start = afterTags(bytes.subarray(at));
      if (start === undefined && !whole) {
        this.#rest = bytes.slice(at);
        return frames;
      }
      this.#begun = start !== undefined && at + start < bytes.length;
      this.#skip = Math.max(0, at + (start ?? 0) - bytes.length);
      at = Math.min(bytes.length, at + (start ?? 0));
    }
    while (at < bytes.length) {
      const place = nextFrame(bytes, at, { locked: this.#locked, like: this.#like, whole });
      if (!('length' in place)) {
        if (place.at > at) this.#locked = false;
        at = place.at;
        break;
      }
      this.#locked = true;
      this.#like = bytes.slice(place.at, place.at + MPEG_HEADER_BYTES);
      frames.push({ header: place.header, bytes: bytes.subarray(place.at, place.at + place.length) });
      at = place.at + place.length;
    }
    this.#rest = whole ? new Uint8Array(0) : bytes.slice(at);
    return frames;
  }
}
