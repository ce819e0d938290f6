/**
 * FLAC (RFC 9639) cut into frames: bytes of a file in, whole frames whose checksums hold out. A damaged frame is left
 * out. Pure.
 */
import { DECODE_STEP_MAX_BYTES, FLAC_FRAME_MAX_BYTES } from '../../limits.ts';
import { flacCrc8, flacCrc16 } from './crc.ts';

/**
 * Headers seen after the one that is being finished; past it that one has no end. A false header is found in 33 MB of
 * sound once.
 */
const HEADERS_WITHOUT_END_MAX = 4;
const HEADER_MAX_BYTES = 16;

export class FlacFramer {
  #rest: Uint8Array = new Uint8Array(0);
  #begun = false;
  /** Bytes of a metadata block that are still to come. */
  #skip = 0;
  /** Whether the metadata block that is skipped is the last one. */
  #last = false;
  /** Whether `#rest` begins with the header of a frame: the one that is being finished. */
  #synced = false;
  /** The bytes of that frame in which its end was looked for, and the CRC-16 of them. */
  #looked = 0;
  #crc = 0;
  /** Headers after it at which it did not end, and where the first of them stands. */
  #headers = 0;
  #second = 0;

  /** The frames that are whole with these bytes. */
  push(more: Uint8Array): Uint8Array[] {
    const bytes = this.#rest.length === 0 ? more : new Uint8Array(Buffer.concat([this.#rest, more]));
    const from = this.#begun ? 0 : this.#metadata(bytes);
    if (!this.#begun) {
      this.#rest = bytes.slice(from);
      return [];
    }
    return this.#frames(bytes.subarray(from), false);
  }

  /** The last frame, which no header follows. */
  end(): Uint8Array[] {
    return this.#begun ? this.#frames(this.#rest, true) : [];
  }

  /** Skips the marker and the metadata blocks (§8); returns the bytes that are done with. */
  #metadata(bytes: Uint8Array): number {
    let at = 0;
    for (;;) {
      const skipped = Math.min(this.#skip, bytes.length - at);
      this.#skip -= skipped;
      at += skipped;
      if (this.#skip > 0) return at;
      if (this.#last) {
        this.#begun = true;
        return at;
      }
      if (bytes.length - at < 8) return at;
      if (String.fromCharCode(...bytes.subarray(at, at + 4)) === 'fLaC') at += 4;
      const [kind = 0, a = 0, b = 0, c = 0] = bytes.subarray(at, at + 4);
      if (kind === 0xff) {
        this.#begun = true; // A file whose head is damaged: frames begin here.
        return at;
      }
      this.#last = (kind & 0x80) !== 0;
      this.#skip = 4 + ((a << 16) | (b << 8) | c);
    }
  }

  #frames(bytes: Uint8Array, whole: boolean): Uint8Array[] {
    const frames: Uint8Array[] = [];
    let start = this.#synced ? 0 : headerAt(bytes, 0);
    this.#synced ||= start + HEADER_MAX_BYTES <= bytes.length;
    while (this.#synced) {
      const at = headerAt(bytes, start + this.#looked + 1);
      const certain = at + HEADER_MAX_BYTES <= bytes.length;
      if (!certain && !whole) break;
      const end = certain ? at : bytes.length;
      this.#crc = flacCrc16(bytes, start + this.#looked, end, this.#crc);
      this.#looked = end - start;
      if (this.#crc === 0) {
        frames.push(bytes.slice(start, end));
        start = end;
        this.#restart();
      } else if (this.#headers++ === 0) this.#second = end;
      if (!certain) break;
      if (this.#headers >= HEADERS_WITHOUT_END_MAX || this.#looked > FLAC_FRAME_MAX_BYTES) {
        start = this.#second;
        this.#restart();
      }
    }
    if (bytes.length - start > FLAC_FRAME_MAX_BYTES + DECODE_STEP_MAX_BYTES) {
      start = bytes.length;
      this.#synced = false;
      this.#restart();
    }
    this.#rest = bytes.slice(start);
    this.#second -= start;
    return frames;
  }

  #restart(): void {
    this.#looked = 0;
    this.#crc = 0;
    this.#headers = 0;
  }
}

/**
 * Finds the next frame header whose CRC-8 holds, at `from` or after it, or the place of one that is not all here. The
 * result is the end of the bytes when there is none.
 */
function headerAt(bytes: Uint8Array, from: number): number {
  for (let at = from; ; at++) {
    at = bytes.indexOf(0xff, at);
    if (at === -1) return bytes.length;
    if (at + HEADER_MAX_BYTES > bytes.length) return at;
    if (((bytes[at + 1] ?? 0) & 0xfe) === 0xf8 && isHeader(bytes, at)) return at;
  }
}

/**
 * §9.1: sync, strategy, block size and rate codes, channels, bits, coded number of 1 to 7 bytes, and what the codes
 * leave for later.
 */
function isHeader(bytes: Uint8Array, at: number): boolean {
  const [third = 0, fourth = 0, coded = 0] = bytes.subarray(at + 2, at + 5);
  const size = third >> 4;
  const rate = third & 15;
  if (size === 0 || rate === 15 || fourth >> 4 > 10 || (fourth & 1) !== 0) return false;
  const ones = Math.clz32(~(coded << 24));
  const number = ones === 0 ? 1 : ones;
  if (number === 1 && ones === 1) return false;
  const length = 4 + number + (size === 6 ? 1 : size === 7 ? 2 : 0) + (rate === 12 ? 1 : rate === 13 || rate === 14 ? 2 : 0);
  return length < HEADER_MAX_BYTES && flacCrc8(bytes, at, at + length + 1) === 0;
}
