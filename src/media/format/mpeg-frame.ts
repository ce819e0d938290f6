/**
 * The header of an MPEG audio frame, layers I to III (ISO 11172-3 §2.4.1.3, ISO 13818-3 and the extension "MPEG 2.5"),
 * what an encoder says of the whole in the frame before the first, and tags that stand before the frames. Pure.
 */

export interface MpegFrame {
  /** Bytes of the whole frame, header included; 0 for free format (bit rate index 0), whose header does not say. */
  readonly bytes: number;
  readonly samples: number;
  readonly hz: number;
  /** The offset of the encoder's tag, if this is the frame that has one. */
  readonly tagAt: number;
  /** Layer, 1 to 3. */
  readonly layer: number;
  /** A padding slot in bytes that the header adds; it is part of `bytes`. */
  readonly padding: number;
}

// kbit/s by the bit rate index.
const V1_L1 = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448];
const V1_L2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
const V1_L3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const V2_L1 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256];
const V2_L23 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const RATES = [44_100, 48_000, 32_000];

/**
 * The longest frame of free format that is looked for: 640 kbit/s at 32 kHz (ISO 11172-3 §2.4.2.3 leaves it open;
 * mpg123 reads up to 3,456).
 */
const FREE_FORMAT_MAX_BYTES = 3_456;
export const MPEG_HEADER_BYTES = 4;

/** The frame whose header is at `at`; undefined where there is none. */
export function mpegFrame(bytes: Uint8Array, at: number): MpegFrame | undefined {
  const second = bytes[at + 1] ?? 0;
  const third = bytes[at + 2] ?? 0;
  if (bytes[at] !== 0xff || (second & 0xe0) !== 0xe0 || at + MPEG_HEADER_BYTES > bytes.length) return undefined;
  const version = (second >> 3) & 3; // 0: MPEG 2.5, 2: MPEG 2, 3: MPEG 1
  const layer = 4 - ((second >> 1) & 3);
  if (version === 1 || layer === 4) return undefined;
  const v1 = version === 3;
  const rate = RATES[(third >> 2) & 3];
  const kbits = (v1 ? [V1_L1, V1_L2, V1_L3] : [V2_L1, V2_L23, V2_L23])[layer - 1]?.[third >> 4];
  if (rate === undefined || kbits === undefined) return undefined;
  const hz = v1 ? rate : version === 2 ? rate / 2 : rate / 4;
  const samples = layer === 1 ? 384 : layer === 3 && !v1 ? 576 : 1152;
  const slot = layer === 1 ? 4 : 1;
  const padding = ((third >> 1) & 1) * slot;
  const slots = Math.floor(((samples / 8 / slot) * kbits * 1000) / hz);
  const mono = (bytes[at + 3] ?? 0) >> 6 === 3;
  const side = v1 ? (mono ? 17 : 32) : mono ? 9 : 17;
  return {
    bytes: kbits === 0 ? 0 : slots * slot + padding,
    samples,
    hz,
    tagAt: MPEG_HEADER_BYTES + ((second & 1) === 0 ? 2 : 0) + side,
    layer,
    padding,
  };
}

/** Whether the headers at two places are of one stream: the same version, layer and sampling rate. */
export function agree(bytes: Uint8Array, one: number, other: number): boolean {
  return (
    bytes[other] === 0xff &&
    ((bytes[one + 1] ?? 0) & 0xfe) === ((bytes[other + 1] ?? 0) & 0xfe) &&
    ((bytes[one + 2] ?? 0) & 0x0c) === ((bytes[other + 2] ?? 0) & 0x0c) &&
    mpegFrame(bytes, other) !== undefined
  );
}

/**
 * The length of frames of free format from the header at `at`: the distance to the next header that agrees with it and
 * is free too, less the padding. 0 where there is none within reach, undefined where more bytes are needed to tell.
 */
export function freeFormatBytes(bytes: Uint8Array, at: number, padding: number): number | undefined {
  const last = at + FREE_FORMAT_MAX_BYTES;
  for (let next = at + 24; next <= last; next++) {
    if (next + MPEG_HEADER_BYTES > bytes.length) return undefined;
    if (agree(bytes, at, next) && (bytes[next + 2] ?? 0) >> 4 === 0) return next - at - padding;
  }
  return 0;
}

/** The encoder's tag, which describes the whole file. Its frame is no sound. */
interface EncoderTag {
  /** Audio frames that follow; 0 where it does not say. */
  readonly frames: number;
  /** Samples before the first that was meant, and after the last; undefined where it does not say. */
  readonly delay: number | undefined;
  readonly padding: number;
}

/**
 * The tag ("Xing", or "Info" of a constant bit rate, with LAME's part) in the frame at `at`; undefined where there is
 * none.
 */
export function encoderTag(bytes: Uint8Array, at: number, frame: MpegFrame): EncoderTag | undefined {
  let here = at + frame.tagAt;
  const end = at + frame.bytes;
  const name = String.fromCharCode(...bytes.subarray(here, here + 4));
  if (end > bytes.length || here + 8 > end || (name !== 'Xing' && name !== 'Info')) return undefined;
  const word = (offset: number) => new DataView(bytes.buffer, bytes.byteOffset + offset, 4).getUint32(0);
  const flags = word(here + 4);
  here += 8;
  let frames = 0;
  if ((flags & 1) !== 0 && here + 4 <= end) {
    frames = word(here);
    here += 4;
  }
  here += ((flags & 2) !== 0 ? 4 : 0) + ((flags & 4) !== 0 ? 100 : 0) + ((flags & 8) !== 0 ? 4 : 0);
  if (here + 24 > end || (bytes[here] ?? 0) === 0) return { frames, delay: undefined, padding: 0 };
  const [a = 0, b = 0, c = 0] = bytes.subarray(here + 21, here + 24);
  return { frames, delay: (a << 4) | (b >> 4), padding: ((b & 15) << 8) | c };
}
