/** The header of an MPEG audio frame, layers II and III (ISO 11172-3 §2.4.1.3, ISO 13818-3), and the encoder's own frame before the first. Pure. */

export interface MpegFrame {
  /** Of the whole frame, header included. */
  readonly bytes: number;
  readonly samples: number;
  readonly hz: number;
  /** Where an encoder's tag lies, if this is the frame that has one. */
  readonly tagAt: number;
}

const V1_L3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const V1_L2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
const V2_L23 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const RATES = [44_100, 48_000, 32_000];

/** The frame whose header is at `at`; undefined where there is none. Free format is none. */
export function mpegFrame(bytes: Uint8Array, at: number): MpegFrame | undefined {
  const sync = bytes[at] ?? 0;
  const second = bytes[at + 1] ?? 0;
  const third = bytes[at + 2] ?? 0;
  const fourth = bytes[at + 3] ?? 0;
  if (sync !== 0xff || (second & 0xe0) !== 0xe0) return undefined;
  const version = (second >> 3) & 3; // 0: 2.5, 2: 2, 3: 1
  const layer = (second >> 1) & 3; // 1: III, 2: II
  if (version === 1 || layer === 0 || layer === 3) return undefined;
  const rate = RATES[(third >> 2) & 3];
  const bitrate = (version === 3 ? (layer === 1 ? V1_L3 : V1_L2) : V2_L23)[third >> 4];
  if (rate === undefined || bitrate === undefined || bitrate === 0) return undefined;
  const hz = version === 3 ? rate : version === 2 ? rate / 2 : rate / 4;
  const samples = layer === 1 && version !== 3 ? 576 : 1152;
  const mono = fourth >> 6 === 3;
  const side = version === 3 ? (mono ? 17 : 32) : mono ? 9 : 17;
  return {
    bytes: Math.floor(((samples / 8) * bitrate * 1000) / hz) + ((third >> 1) & 1),
    samples,
    hz,
    tagAt: 4 + ((second & 1) === 0 ? 2 : 0) + side,
  };
}

/** What the encoder says of the whole: its frame is no sound. */
export interface EncoderTag {
  /** Audio frames that follow; 0 where it does not say. */
  readonly frames: number;
  /** Samples before the first that was meant, and after the last; undefined where it does not say. */
  readonly delay: number | undefined;
  readonly padding: number;
}

/** The tag ("Xing", or "Info" of a constant bit rate, with LAME's part) in the frame at `at`; undefined where there is none. */
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

/** Length of the ID3v2 tag at `at`, 0 where there is none; undefined where more bytes are needed to tell. */
export function id3Bytes(bytes: Uint8Array, at: number): number | undefined {
  if (bytes[at] !== 0x49 || bytes[at + 1] !== 0x44 || bytes[at + 2] !== 0x33) return bytes.length - at < 3 ? undefined : 0;
  if (bytes.length - at < 10) return undefined;
  const [flags = 0, a = 0, b = 0, c = 0, d = 0] = bytes.subarray(at + 5, at + 10);
  return 10 + ((flags & 0x10) !== 0 ? 10 : 0) + ((a & 0x7f) << 21) + ((b & 0x7f) << 14) + ((c & 0x7f) << 7) + (d & 0x7f);
}
