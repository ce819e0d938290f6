/**
 * Ogg (RFC 3533): pages in, packets out, of one logical stream at a time. A page that is damaged or missing costs the
 * packets that lie on it and no more.
 *
 *   "OggS" 0 flags granule serial number crc count { lacing value }… body
 *   flags: 1 continued, 2 first page, 4 last page
 *
 * Chained streams follow each other. Of streams that run side by side only the first of the wanted codec is read. Pure.
 */
import { OGG_PACKET_MAX_BYTES } from '../../limits.ts';
import { oggCrc } from './crc.ts';

const HEADER_BYTES = 27;
const CAPTURE = [0x4f, 0x67, 0x67, 0x53];
/**
 * Bytes of pages that may turn out to be damaged: at most so many at once, and so many more for each byte that comes.
 * Any five bytes may claim to begin a page of 64 KiB, whose checksum takes 0.1 ms.
 */
const DAMAGED_BYTES = 1024 * 1024;
const DAMAGED_FOR_EACH = 4;

/** The packets that end on one page. */
export interface OggPackets {
  /** The first packet begins a logical stream: whatever was before is over. */
  readonly first: boolean;
  readonly last: boolean;
  /** Position at the end of the last packet, by the codec's own count. */
  readonly granule: bigint;
  readonly packets: readonly Uint8Array[];
}

interface Page extends Omit<OggPackets, 'packets'> {
  readonly bytes: number;
  readonly continued: boolean;
  readonly serial: number;
  readonly sequence: number;
  readonly parts: readonly { readonly bytes: Uint8Array; readonly ends: boolean }[];
}

export class OggReader {
  readonly #wanted: (firstPacket: Uint8Array) => boolean;
  #rest: Uint8Array = new Uint8Array(0);
  #serial: number | undefined;
  #sequence = 0;
  /** Whether pages other than the first of the stream have come. */
  #begun = false;
  /** The beginning of a packet that goes on, on the next page; undefined while none does. */
  #part: Uint8Array[] | undefined;
  #partBytes = 0;
  /** Bytes of damaged pages that may still be read; below 0 nothing is read any more. */
  #damagedLeft = DAMAGED_BYTES;

  /** Makes a reader. `wanted` decides by the first packet of a logical stream whether that stream is read. */
  constructor(wanted: (firstPacket: Uint8Array) => boolean) {
    this.#wanted = wanted;
  }

  /** The packets that are whole with these bytes. */
  push(more: Uint8Array): OggPackets[] {
    if (this.#damagedLeft < 0) return [];
    this.#damagedLeft = Math.min(DAMAGED_BYTES, this.#damagedLeft + more.length * DAMAGED_FOR_EACH);
    const bytes = this.#rest.length === 0 ? more : new Uint8Array(Buffer.concat([this.#rest, more]));
    const found: OggPackets[] = [];
    let at = 0;
    while (this.#damagedLeft >= 0) {
      at = captureAt(bytes, at);
      const page = pageAt(bytes, at);
      if (page === 'more') break;
      if ('damagedBytes' in page) {
        this.#damagedLeft -= page.damagedBytes;
        at++;
        continue;
      }
      at += page.bytes;
      const packets = this.#packets(page);
      if (packets.length > 0) found.push({ first: page.first, last: page.last, granule: page.granule, packets });
    }
    this.#rest = bytes.slice(at);
    return found;
  }

  #packets(page: Page): Uint8Array[] {
    const [head] = page.parts;
    if (page.first && (this.#serial === undefined || this.#begun) && head !== undefined && this.#wanted(head.bytes)) {
      this.#serial = page.serial;
      this.#begun = false;
      this.#part = undefined;
    } else if (page.serial !== this.#serial) {
      return [];
    } else {
      this.#begun = true;
      if (page.sequence !== this.#sequence) this.#part = undefined;
    }
    this.#sequence = (page.sequence + 1) >>> 0;
    const whole: Uint8Array[] = [];
    for (const [index, { bytes, ends }] of page.parts.entries()) {
      if (index > 0 || !page.continued) {
        this.#part = [];
        this.#partBytes = 0;
      }
      if (this.#part === undefined) continue; // Its beginning was lost.
      this.#part.push(ends ? bytes : bytes.slice());
      this.#partBytes += bytes.length;
      if (this.#partBytes > OGG_PACKET_MAX_BYTES) this.#part = undefined;
      else if (ends) {
        whole.push(this.#part.length === 1 ? bytes : new Uint8Array(Buffer.concat(this.#part)));
        this.#part = undefined;
      }
    }
    return whole;
  }
}

/** Finds the place where the next page may begin, at `from` or after it. Near the end, its first letters are enough. */
function captureAt(bytes: Uint8Array, from: number): number {
  for (let at = from; ; at++) {
    at = bytes.indexOf(0x4f, at);
    if (at === -1) return bytes.length;
    if (CAPTURE.every((letter, i) => at + i >= bytes.length || bytes[at + i] === letter)) return at;
  }
}

function pageAt(bytes: Uint8Array, at: number): Page | 'more' | { readonly damagedBytes: number } {
  const have = bytes.length - at;
  const segments = bytes[at + 26] ?? 0;
  if (have < HEADER_BYTES + segments || have < HEADER_BYTES) return 'more';
  if (bytes[at + 4] !== 0) return { damagedBytes: 1 };
  const lacing = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + segments);
  const body = at + HEADER_BYTES + segments;
  const size = HEADER_BYTES + segments + lacing.reduce((sum, value) => sum + value, 0);
  if (have < size) return 'more';
  const page = bytes.subarray(at, at + size);
  const view = new DataView(page.buffer, page.byteOffset, page.length);
  if (view.getUint32(22, true) !== oggCrc(page)) return { damagedBytes: size };
  const flags = view.getUint8(5);
  return {
    bytes: size,
    continued: (flags & 1) !== 0,
    first: (flags & 2) !== 0,
    last: (flags & 4) !== 0,
    granule: view.getBigInt64(6, true),
    serial: view.getUint32(14, true),
    sequence: view.getUint32(18, true),
    parts: partsOf(bytes, body, lacing),
  };
}

function partsOf(bytes: Uint8Array, body: number, lacing: Uint8Array): Page['parts'] {
  const parts: { bytes: Uint8Array; ends: boolean }[] = [];
  let from = body;
  let to = body;
  for (const value of lacing) {
    to += value;
    if (value === 255) continue;
    parts.push({ bytes: bytes.subarray(from, to), ends: true });
    from = to;
  }
  if (lacing[lacing.length - 1] === 255) parts.push({ bytes: bytes.subarray(from, to), ends: false });
  return parts;
}

/** Writes packets as pages of one logical stream. */
export class OggWriter {
  #sequence = 0;

  /** The pages on which these packets lie; the last of them bears the flags and the granule. */
  write({ first, last, granule, packets }: OggPackets): Uint8Array {
    const lacing = packets.flatMap((packet) => [
      ...new Array<number>(Math.floor(packet.length / 255)).fill(255),
      packet.length % 255,
    ]);
    const body = Buffer.concat(packets);
    const pages: Uint8Array[] = [];
    for (let from = 0, at = 0; from < lacing.length; from += 255) {
      const values = lacing.slice(from, from + 255);
      const size = values.reduce((sum, value) => sum + value, 0);
      const ends = from + 255 >= lacing.length;
      const continued = from > 0 && lacing[from - 1] === 255 ? 1 : 0;
      const flags = continued | (first && from === 0 ? 2 : 0) | (last && ends ? 4 : 0);
      pages.push(this.#page(flags, ends ? granule : -1n, values, body.subarray(at, at + size)));
      at += size;
    }
    return new Uint8Array(Buffer.concat(pages));
  }

  #page(flags: number, granule: bigint, lacing: readonly number[], body: Uint8Array): Uint8Array {
    const page = new Uint8Array(HEADER_BYTES + lacing.length + body.length);
    const view = new DataView(page.buffer);
    page.set(CAPTURE);
    view.setUint8(5, flags);
    view.setBigInt64(6, granule, true);
    view.setUint32(14, 1, true);
    view.setUint32(18, this.#sequence++, true);
    view.setUint8(26, lacing.length);
    page.set(lacing, HEADER_BYTES);
    page.set(body, HEADER_BYTES + lacing.length);
    view.setUint32(22, oggCrc(page), true);
    return page;
  }
}
