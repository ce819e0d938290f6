/** Tags and filling that stand before the sound of a file, whatever its format: ID3v2, APEv2 and zeros. Pure. */

const ID3_HEADER_BYTES = 10;
const APE_HEADER_BYTES = 32;

/**
 * Bytes of the ID3v2 tag at `at` (its footer included), 0 where there is none; undefined where more bytes are needed to
 * tell.
 */
function id3Bytes(bytes: Uint8Array, at: number): number | undefined {
  if (!startsLike(bytes, at, 'ID3')) return 0;
  if (bytes.length - at < ID3_HEADER_BYTES) return undefined;
  const footer = ((bytes[at + 5] ?? 0) & 0x10) !== 0 ? ID3_HEADER_BYTES : 0;
  let size = 0;
  for (let i = at + 6; i < at + ID3_HEADER_BYTES; i++) size = (size << 7) | ((bytes[i] ?? 0) & 0x7f);
  return ID3_HEADER_BYTES + footer + size;
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
function startsLike(bytes: Uint8Array, at: number, text: string): boolean {
  const end = Math.min(text.length, bytes.length - at);
  for (let i = 0; i < end; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return end > 0;
}

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
