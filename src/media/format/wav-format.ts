/** The format part of a WAV (`WAVEFORMATEX`, RFC 2361): what its samples are. Pure. */

/** Samples that stand for themselves: a block is one sample of each channel. */
export interface PlainFormat {
  readonly encoding: 'integer' | 'float' | 'mulaw' | 'alaw';
  readonly hz: number;
  readonly channels: number;
  /** Bytes of one sample of one channel; an integer of fewer bits stands in the high ones. */
  readonly sampleBytes: number;
  readonly highFirst: boolean;
}

/** Samples in packets of `blockBytes`. */
export interface PacketFormat {
  readonly encoding: 'ima-adpcm' | 'ms-adpcm' | 'gsm';
  readonly hz: number;
  readonly channels: number;
  readonly blockBytes: number;
  /** Microsoft ADPCM: pairs of predictor coefficients, in 1/256. */
  readonly coefficients: readonly (readonly [number, number])[];
}

/** MPEG audio inside a WAV. */
interface MpegFormat {
  readonly encoding: 'mpeg';
}

export type WavFormat = PlainFormat | PacketFormat | MpegFormat;

const RATE_MIN_HZ = 1_000;
const RATE_MAX_HZ = 384_000;
const CHANNELS_MAX = 64;
const BLOCK_MAX_BYTES = 64 * 1024;
/** Bytes of a GSM block in a WAV: two frames of 260 bits (RFC 2361 §A.18 names 65 bytes for 320 samples). */
const GSM_BLOCK_BYTES = 65;
const EXTENSIBLE = 0xfffe;
/** The coefficients of every Microsoft ADPCM encoder, for files that do not repeat them. */
const MS_ADPCM_COEFFICIENTS: readonly (readonly [number, number])[] = [
  [256, 0],
  [512, -256],
  [0, 0],
  [192, 64],
  [240, 0],
  [460, -208],
  [392, -232],
];

/** Reads a format part of at least 14 bytes. Undefined where it is none that is played. */
export function parseWavFormat(bytes: Uint8Array, highFirst: boolean): WavFormat | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const word = (at: number) => (at + 2 <= bytes.length ? view.getUint16(at, !highFirst) : 0);
  // WAVE_FORMAT_EXTENSIBLE: the tag is the beginning of a GUID. One that is cut short is PCM, as every player takes it.
  const tag = word(0) === EXTENSIBLE ? (bytes.length >= 26 ? word(24) : 1) : word(0);
  const channels = word(2);
  const hz = view.getUint32(4, !highFirst);
  const blockBytes = word(12);
  const bits = word(14) === 0 ? 8 : word(14);
  if (tag === 0x50 || tag === 0x55) return { encoding: 'mpeg' };
  if (channels < 1 || channels > CHANNELS_MAX || hz < RATE_MIN_HZ || hz > RATE_MAX_HZ) return undefined;
  const plain = (encoding: PlainFormat['encoding'], sizes: readonly number[]): PlainFormat | undefined => {
    const named = blockBytes / channels;
    const least = Math.ceil(bits / 8);
    const sampleBytes = Number.isInteger(named) && named >= least && sizes.includes(named) ? named : least;
    return sizes.includes(sampleBytes) ? { encoding, hz, channels, sampleBytes, highFirst } : undefined;
  };
  if (tag === 1) return plain('integer', [1, 2, 3, 4, 8]);
  if (tag === 3) return plain('float', [4, 8]);
  if (tag === 6) return plain('alaw', [1]);
  if (tag === 7) return plain('mulaw', [1]);
  if (highFirst || channels > 2 || blockBytes > BLOCK_MAX_BYTES) return undefined;
  const packets = (encoding: PacketFormat['encoding'], coefficients: PacketFormat['coefficients'] = []): PacketFormat => ({
    encoding,
    hz,
    channels,
    blockBytes,
    coefficients,
  });
  if (tag === 0x31) return channels === 1 && blockBytes === GSM_BLOCK_BYTES ? packets('gsm') : undefined;
  if (tag === 0x11) return bits === 4 && blockBytes > 4 * channels ? packets('ima-adpcm') : undefined;
  if (tag === 2) return blockBytes > 7 * channels ? packets('ms-adpcm', coefficientsOf(bytes, word)) : undefined;
  return undefined;
}

function coefficientsOf(bytes: Uint8Array, word: (at: number) => number): PacketFormat['coefficients'] {
  const count = word(20);
  if (count === 0 || count > 256 || 22 + 4 * count > bytes.length) return MS_ADPCM_COEFFICIENTS;
  const signed = (at: number) => (word(at) << 16) >> 16;
  return Array.from({ length: count }, (_, i) => [signed(22 + 4 * i), signed(24 + 4 * i)]);
}
