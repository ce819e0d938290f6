/**
 * Samples of a WAV that the addon does not read: the high byte first, more than two channels, integers of 64 bits.
 * Pure.
 */
import type { PlainFormat } from '../../format/wav-format.ts';

/** One channel of sound from whole blocks, -1 to 1: the channels are averaged. */
export function floatsOf(format: PlainFormat, bytes: Uint8Array): Float32Array[] {
  const { channels, sampleBytes } = format;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const read = reader(format, view);
  const out = new Float32Array(Math.floor(bytes.length / (channels * sampleBytes)));
  for (let i = 0, at = 0; i < out.length; i++) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++, at += sampleBytes) sum += read(at);
    out[i] = sum / channels;
  }
  return [out];
}

function reader({ encoding, sampleBytes, highFirst }: PlainFormat, view: DataView): (at: number) => number {
  const little = !highFirst;
  if (encoding === 'mulaw') return (at) => mulaw(view.getUint8(at));
  if (encoding === 'alaw') return (at) => alaw(view.getUint8(at));
  if (encoding === 'float')
    return sampleBytes === 4 ? (at) => finite(view.getFloat32(at, little)) : (at) => finite(view.getFloat64(at, little));
  if (sampleBytes === 1) return (at) => (view.getUint8(at) - 128) / 128;
  if (sampleBytes === 2) return (at) => view.getInt16(at, little) / 2 ** 15;
  if (sampleBytes === 4) return (at) => view.getInt32(at, little) / 2 ** 31;
  if (sampleBytes === 8) return (at) => view.getInt32(little ? at + 4 : at, little) / 2 ** 31;
  return little
    ? (at) => (view.getUint16(at, true) + view.getInt8(at + 2) * 65_536) / 2 ** 23
    : (at) => (view.getUint16(at + 1) + view.getInt8(at) * 65_536) / 2 ** 23;
}

const finite = (value: number): number => (Number.isNaN(value) ? 0 : Math.max(-1, Math.min(1, value)));

/** ITU-T G.711, table 2b. */
function mulaw(code: number): number {
  const inverted = ~code & 0xff;
  const size = ((((inverted & 15) << 3) + 132) << ((inverted >> 4) & 7)) - 132;
  return (inverted & 0x80) !== 0 ? -size / 32_768 : size / 32_768;
}

/** ITU-T G.711, table 1b. */
function alaw(code: number): number {
  const even = code ^ 0x55;
  const exponent = (even >> 4) & 7;
  const mantissa = ((even & 15) << 4) + 8;
  const size = exponent === 0 ? mantissa : (mantissa + 256) << (exponent - 1);
  return (even & 0x80) !== 0 ? size / 32_768 : -size / 32_768;
}
