/** Tags and filling that stand before the sound of a file, whatever its format: ID3v2, APEv2 and zeros. Pure. */

const ID3_HEADER_BYTES = 10;
const APE_HEADER_BYTES = 32;

const ascii = (bytes: Uint8Array, at: number, text: string): boolean =>
  [...text].every((letter, i) => bytes[at + i] === letter.charCodeAt(0));

/**
 * Bytes of the ID3v2 tag at `at` (its footer included), 0 where there is none; undefined where more bytes are needed to
 * tell.
 */
function id3Bytes(bytes: Uint8Array, at: number): number | undefined {
  if (!startsLike(bytes, at, 'ID3')) return 0;
  if (bytes.length - at < ID3_HEADER_BYTES) return undefined;
  const [flags = 0, a = 0, b = 0, c = 0, d = 0] = bytes.subarray(at + 5, at + ID3_HEADER_BYTES);
  const footer = (flags & 0x10) !== 0 ? ID3_HEADER_BYTES : 0;
  return ID3_HEADER_BYTES + footer + ((a & 0x7f) << 21) + ((b & 0x7f) << 14) + ((c & 0x7f) << 7) + (d & 0x7f);
}

/**
 * Bytes of the APEv2 tag that begins at `at` with a header, 0 where there is none; undefined where more bytes are
 * needed to tell.
 */
function apeBytes(bytes: Uint8Array, at: number): number | undefined {
  if (!startsLike(bytes, at, 'APETAGEX')) return 0;
  if (bytes.length - at < APE_HEADER_BYTES) return undefined;
  return APE_HEADER_BYTES + new DataView(bytes.buffer, bytes.byteOffset + at).getUint32(12, true);
}

/** Whether the bytes there are from `at` on may be the beginning of `text`, or of what begins with it. */
const startsLike = (bytes: Uint8Array, at: number, text: string): boolean =>
  at < bytes.length && ascii(bytes, at, text.slice(0, bytes.length - at));

/**
 * Finds the place where the sound may begin, after all tags and zeros. It may lie beyond the bytes that are there.
 * It is undefined when more bytes are needed to tell.
 */
export function afterTags(bytes: Uint8Array): number | undefined {
  let at = 0;
  for (;;) {
    while (bytes[at] === 0) at++;
    if (at >= bytes.length) return at;
    const id3 = id3Bytes(bytes, at);
    const ape = apeBytes(bytes, at);
    if (id3 === undefined || ape === undefined) return undefined;
    if (id3 + ape === 0) return at;
    at += id3 + ape;
  }
}
