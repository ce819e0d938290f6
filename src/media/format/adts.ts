/**
 * AAC in ADTS (ISO 13818-7 §6.2), as mounts and segments of HLS carry it: bytes of any size in, whole frames out. What
 * is no frame is left out: tags, filling, and damaged places, after which three headers must agree before anything
 * counts as a frame again. Pure.
 */

/** The header without its checksum. */
const HEADER_BYTES = 7;
/** Headers in a row that make a frame of what may be chance: the synchronisation has 14 bits only. */
const AGREEING_HEADERS = 3;
/** Indexes 13 to 15 of the sampling rate are reserved (ISO 14496-3 §1.6.3.4). */
const RATE_INDEX_MAX = 12;

/** The length of the frame whose header is at `at`, header included; undefined where there is none. */
function frameBytes(bytes: Uint8Array, at: number): number | undefined {
  const byte = (offset: number): number => bytes[at + offset] ?? 0;
  if (at + HEADER_BYTES > bytes.length || byte(0) !== 0xff || (byte(1) & 0xf6) !== 0xf0) return undefined;
  if (((byte(2) >> 2) & 0x0f) > RATE_INDEX_MAX) return undefined;
  const length = ((byte(3) & 3) << 11) | (byte(4) << 3) | (byte(5) >> 5);
  return length > HEADER_BYTES ? length : undefined;
}

/** Whether two headers are of one stream: version, profile, sampling rate and channels are the same. */
function agree(bytes: Uint8Array, one: number, other: number): boolean {
  const same = (offset: number, mask: number) => ((bytes[one + offset] ?? 0) & mask) === ((bytes[other + offset] ?? 0) & mask);
  return same(1, 0xff) && same(2, 0xfd) && same(3, 0xc0) && frameBytes(bytes, other) !== undefined;
}

/**
 * Whether frames that agree follow one another from `at` on. `more` means that the bytes do not tell yet; with `whole`
 * nothing follows them, and two frames that end where the bytes end are enough.
 */
function runsFrom(bytes: Uint8Array, at: number, whole: boolean): boolean | 'more' {
  let here = at;
  for (let found = 1; found < AGREEING_HEADERS; found++) {
    const next = here + (frameBytes(bytes, here) ?? 0);
    if (next + HEADER_BYTES > bytes.length) return whole ? next === bytes.length && found > 1 : 'more';
    if (!agree(bytes, at, next)) return false;
    here = next;
  }
  return true;
}

/** The place of the first frame that two others follow; undefined where there is none in these bytes. */
export function firstAdtsFrame(bytes: Uint8Array, whole: boolean): number | undefined {
  for (let at = bytes.indexOf(0xff); at !== -1; at = bytes.indexOf(0xff, at + 1))
    if (frameBytes(bytes, at) !== undefined && runsFrom(bytes, at, whole) === true) return at;
  return undefined;
}

export class AdtsFramer {
  #rest: Uint8Array = new Uint8Array(0);
  /** A frame ended where the rest begins, so that one header is enough there. */
  #locked = false;

  /** The frames that are whole with these bytes. */
  push(more: Uint8Array): Uint8Array[] {
    return this.#frames(more, false);
  }

  /** The frames that were waiting for successors which will not come. */
  end(): Uint8Array[] {
    return this.#frames(new Uint8Array(0), true);
  }

  #frames(more: Uint8Array, whole: boolean): Uint8Array[] {
    const bytes = this.#rest.length === 0 ? more : new Uint8Array(Buffer.concat([this.#rest, more]));
    const frames: Uint8Array[] = [];
    let at = 0;
    while (at < bytes.length) {
      const length = frameBytes(bytes, at);
      const isFrame = length !== undefined && (this.#locked || runsFrom(bytes, at, whole));
      if (isFrame === 'more' || (length === undefined && bytes[at] === 0xff && at + HEADER_BYTES > bytes.length)) break;
      if (length === undefined || !isFrame) {
        this.#locked = false;
        const next = bytes.indexOf(0xff, at + 1);
        at = next === -1 ? bytes.length : next;
        continue;
      }
      if (at + length > bytes.length) break;
      this.#locked = true;
      frames.push(bytes.subarray(at, at + length));
      at += length;
    }
    this.#rest = whole ? new Uint8Array(0) : bytes.slice(at);
    return frames;
  }
}
