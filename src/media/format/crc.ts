/** Cyclic redundancy checks of the audio containers: no reflection, no final inversion, beginning at zero. Pure. */

/** A table for `bits` (8, 16 or 32) and the generator polynomial without its highest term. */
function tableOf(bits: number, polynomial: number): Uint32Array {
  const top = 2 ** (bits - 1);
  const mask = 2 ** bits - 1;
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    let value = (byte << (bits - 8)) >>> 0;
    for (let i = 0; i < 8; i++) value = (value & top) !== 0 ? ((value << 1) ^ polynomial) & mask : (value << 1) & mask;
    return value >>> 0;
  });
}

const OGG = tableOf(32, 0x04c1_1db7);
const FLAC_16 = tableOf(16, 0x8005);
const FLAC_8 = tableOf(8, 0x07);

/** The checksum of an Ogg page (RFC 3533 §6, field 7), whose own four bytes at 22 count as zero. */
export function oggCrc(page: Uint8Array): number {
  let crc = 0;
  for (let i = 0; i < page.length; i++) {
    const byte = i >= 22 && i < 26 ? 0 : (page[i] ?? 0);
    crc = ((crc << 8) ^ (OGG[(crc >>> 24) ^ byte] ?? 0)) >>> 0;
  }
  return crc;
}

/** CRC-16 of FLAC (RFC 9639 §9.3), continued from `crc`. Over a frame with its own checksum it is 0. */
export function flacCrc16(bytes: Uint8Array, from: number, to: number, crc: number): number {
  let value = crc;
  for (let i = from; i < to; i++) value = ((value << 8) & 0xffff) ^ (FLAC_16[(value >> 8) ^ (bytes[i] ?? 0)] ?? 0);
  return value;
}

/** CRC-8 of FLAC (RFC 9639 §9.1.8). Over a frame's header with its own checksum it is 0. */
export function flacCrc8(bytes: Uint8Array, from: number, to: number): number {
  let value = 0;
  for (let i = from; i < to; i++) value = FLAC_8[value ^ (bytes[i] ?? 0)] ?? 0;
  return value;
}
