/** Audio files of unusual make, written here so that each test sees what it plays. */

export interface WavMake {
  readonly tag?: number;
  readonly channels?: number;
  readonly bits?: number;
  /** Bytes of one sample. */
  readonly bytes?: number;
  readonly blockBytes?: number;
  /** What the data part says of its size. */
  readonly size?: number | bigint;
  /** Bytes of a part before the data. */
  readonly before?: number;
  readonly unpadded?: boolean;
  readonly flavour?: 'RIFF' | 'RIFX' | 'RF64' | 'W64';
}

const W64_TAIL = [0xf3, 0xac, 0xd3, 0x11, 0x8c, 0xd1, 0x00, 0xc0, 0x4f, 0x8e, 0xdb, 0x8a];

/** A WAV of 8 kHz of that sound (-1 to 1) in every channel: PCM, the sample in the high bits of its bytes. */
export function wavFile(sound: Float64Array, make: WavMake): Uint8Array<ArrayBuffer> {
  const { tag = 1, channels = 1, bits = 16, bytes = 2, before = 0, flavour = 'RIFF' } = make;
  const little = flavour !== 'RIFX';
  const data = samples(sound, channels, bytes, little);
  const format = new DataView(new ArrayBuffer(16));
  format.setUint16(0, tag, little);
  format.setUint16(2, channels, little);
  format.setUint32(4, 8_000, little);
  format.setUint32(8, 8_000 * channels * bytes, little);
  format.setUint16(12, make.blockBytes ?? channels * bytes, little);
  format.setUint16(14, bits, little);
  const formatBytes = new Uint8Array(format.buffer);
  if (flavour === 'W64') {
    const body = Buffer.concat([w64('fmt ', formatBytes), w64('data', data, make.size)]);
    const head = new Uint8Array(40);
    head.set([...text('riff'), 0x2e, 0x91, 0xcf, 0x11, 0xa5, 0xd6, 0x28, 0xdb, 0x04, 0xc1, 0x00, 0x00]);
    new DataView(head.buffer).setBigUint64(16, BigInt(40 + body.length), true);
    head.set([...text('wave'), ...W64_TAIL], 24);
    return new Uint8Array(Buffer.concat([head, body]));
  }
  const long = flavour === 'RF64';
  const size = Number(make.size ?? (long ? 0xffff_ffff : data.length));
  const ds64 = new DataView(new ArrayBuffer(28));
  ds64.setBigUint64(8, BigInt(data.length), true);
  const parts = [
    ...(long ? [part('ds64', new Uint8Array(ds64.buffer), 28, little)] : []),
    part('fmt ', formatBytes, 16, little),
    ...(before === 0
      ? []
      : [part('LIST', new Uint8Array(before + (make.unpadded === true ? 0 : before & 1)).fill(0x50), before, little)]),
    part('data', data, size, little),
    ...(long ? [part('LIST', new Uint8Array(400).fill(0x51), 400, little)] : []),
  ];
  const riff = part(flavour, new Uint8Array(text('WAVE')), Math.min(0xffff_ffff, 4 + Buffer.concat(parts).length), little);
  return new Uint8Array(Buffer.concat([riff, ...parts]));
}

function samples(sound: Float64Array, channels: number, bytes: number, little: boolean): Uint8Array {
  const out = new DataView(new ArrayBuffer(sound.length * channels * bytes));
  sound.forEach((value, i) => {
    const wide = BigInt(Math.round(value * 2 ** 31)) << 32n;
    for (let channel = 0; channel < channels; channel++) {
      for (let byte = 0; byte < bytes; byte++) {
        const high = little ? bytes - 1 - byte : byte;
        out.setUint8((i * channels + channel) * bytes + byte, Number((wide >> BigInt(56 - 8 * high)) & 0xffn));
      }
    }
  });
  return new Uint8Array(out.buffer);
}

const text = (id: string): number[] => [...new TextEncoder().encode(id)];

function part(id: string, body: Uint8Array, size: number, little: boolean): Uint8Array {
  const out = new Uint8Array(8 + body.length);
  out.set(text(id));
  new DataView(out.buffer).setUint32(4, size, little);
  out.set(body, 8);
  return out;
}

function w64(id: string, body: Uint8Array, size: number | bigint = 24 + body.length): Uint8Array {
  const out = new Uint8Array(24 + Math.ceil(body.length / 8) * 8);
  out.set([...text(id), ...W64_TAIL]);
  new DataView(out.buffer).setBigUint64(16, BigInt(size), true);
  out.set(body, 24);
  return out;
}

/**
 * Frames of MPEG 1 layer I, mono, 32 kHz, 64 kbit/s (ISO 11172-3 §2.4.1.5): one subband of 15 bits alternates between
 * its ends, the others are silent.
 */
export function layerOneTone(frames: number): Uint8Array<ArrayBuffer> {
  const bytes = 96; // 12 × 64,000 / 32,000 slots of four bytes
  const frame = new Uint8Array(bytes);
  frame.set([0xff, 0xff, 0x28, 0xc0]);
  let bit = 32;
  const put = (value: number, bits: number) => {
    for (let i = bits - 1; i >= 0; i--, bit++)
      if (((value >> i) & 1) !== 0) frame[bit >> 3] = (frame[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  };
  for (let subband = 0; subband < 32; subband++) put(subband === 2 ? 14 : 0, 4);
  put(6, 6); // a scale factor of 0.5
  for (let i = 0; i < 12; i++) put(i % 2 === 0 ? 0x7000 : 0x0fff, 15);
  const out = new Uint8Array(frames * bytes);
  for (let i = 0; i < frames; i++) out.set(frame, i * bytes);
  return out;
}
