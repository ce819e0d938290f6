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

/**
 * The next frame at `from` or after it. `locked`: a frame ended at `from`, so that one header is enough; elsewhere the
 * one after it must agree. `whole`: no bytes follow.
 */
export function nextFrame(bytes: Uint8Array, from: number, locked: boolean, whole: boolean): FramePlace {
  for (let at = from; at < bytes.length; at++) {
    at = bytes.indexOf(0xff, at);
    if (at === -1) break;
    if (at + MPEG_HEADER_BYTES > bytes.length) return { at };
    const header = mpegFrame(bytes, at);
    if (header === undefined) continue;
    const length = header.bytes > 0 ? header.bytes : freeLength(bytes, at, header.padding);
    if (length === undefined && !whole) return { at };
    if (length === undefined || length < MPEG_HEADER_BYTES) continue;
    const next = at + length;
    if (locked && at === from) {
      if (next <= bytes.length) return { at, length, header };
      if (!whole) return { at };
    } else if (next + MPEG_HEADER_BYTES > bytes.length) {
      if (!whole) return { at };
      if (next <= bytes.length && at === from) return { at, length, header };
    } else if (agree(bytes, at, next)) {
      return { at, length, header };
    }
  }
  return { at: bytes.length };
}

function freeLength(bytes: Uint8Array, at: number, padding: number): number | undefined {
  const length = freeFormatBytes(bytes, at, padding);
  return length === undefined || length === 0 ? length : length + padding;
}

export class MpegFramer {
  #rest: Uint8Array = new Uint8Array(0);
  #locked = false;
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
      const place = nextFrame(bytes, at, this.#locked, whole);
      if (!('length' in place)) {
        if (place.at > at) this.#locked = false;
        at = place.at;
        break;
      }
      this.#locked = true;
      frames.push({ header: place.header, bytes: bytes.subarray(place.at, place.at + place.length) });
      at = place.at + place.length;
    }
    this.#rest = whole ? new Uint8Array(0) : bytes.slice(at);
    return frames;
  }
}
