/** What a file is, told by its first bytes and never by its name or media type. Pure. */
import type { SourceKind } from './decode-worker.ts';

/** `more`: these bytes do not decide it yet. */
export type Sniffed = SourceKind | 'more' | 'unsupported';

const ID3_HEADER_BYTES = 10;
/** Garbage some encoders leave between ID3 and the first frame. */
const MP3_SEARCH_BYTES = 4096;

const ascii = (bytes: Uint8Array, at: number, text: string): boolean =>
  [...text].every((letter, i) => bytes[at + i] === letter.charCodeAt(0));

/** `probeWav` is `wavProbe` of the addon: 0 more, 1 audio, 2 empty, 3 not a WAV we read. `whole`: nothing follows these bytes. */
export function sniff(bytes: Uint8Array, whole: boolean, probeWav: (head: Uint8Array) => number): Sniffed {
  const undecided = whole ? 'unsupported' : 'more';
  if (bytes.length < 12) return undecided;
  if (ascii(bytes, 0, 'RIFF')) {
    const probe = ascii(bytes, 8, 'WAVE') ? probeWav(bytes) : 3;
    return probe === 0 ? undecided : probe === 3 ? 'unsupported' : 'wav';
  }
  let start = 0;
  while (ascii(bytes, start, 'ID3')) {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.subarray(start + 6, start + ID3_HEADER_BYTES);
    const footer = ((bytes[start + 5] ?? 0) & 0x10) !== 0 ? ID3_HEADER_BYTES : 0;
    start += ID3_HEADER_BYTES + footer + ((a & 0x7f) << 21) + ((b & 0x7f) << 14) + ((c & 0x7f) << 7) + (d & 0x7f);
    if (start + ID3_HEADER_BYTES > bytes.length) return undecided;
  }
  const tagged = start > 0;
  const last = tagged ? start + MP3_SEARCH_BYTES : start;
  for (let at = start; at <= last; at++) {
    if (at + 4 > bytes.length) return undecided;
    const length = mp3FrameBytes(bytes, at);
    if (length === 0) continue;
    if (at + length + 4 > bytes.length) {
      if (!whole) return 'more';
      return at + length <= bytes.length ? 'mp3' : tagged ? 'mp3' : 'unsupported';
    }
    if (mp3FrameBytes(bytes, at + length) > 0) return 'mp3'; // one sync word is chance, two in step are a stream
  }
  return 'unsupported';
}

const V1_L3 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const V1_L2 = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
const V2_L23 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const RATES = [44_100, 48_000, 32_000];

/** Length of the MPEG audio frame (layer II or III, ISO 11172-3 §2.4.1.3) whose header is at `at`; 0 where there is none. */
function mp3FrameBytes(bytes: Uint8Array, at: number): number {
  const [sync = 0, second = 0, third = 0] = bytes.subarray(at, at + 3);
  if (sync !== 0xff || (second & 0xe0) !== 0xe0) return 0;
  const version = (second >> 3) & 3; // 0: 2.5, 2: 2, 3: 1
  const layer = (second >> 1) & 3; // 1: III, 2: II
  if (version === 1 || layer === 0 || layer === 3) return 0;
  const rate = RATES[(third >> 2) & 3];
  const bitrate = (version === 3 ? (layer === 1 ? V1_L3 : V1_L2) : V2_L23)[third >> 4];
  if (rate === undefined || bitrate === undefined || bitrate === 0) return 0;
  const hz = version === 3 ? rate : version === 2 ? rate / 2 : rate / 4;
  const samplesOver8 = layer === 1 && version !== 3 ? 72 : 144;
  return Math.floor((samplesOver8 * bitrate * 1000) / hz) + ((third >> 1) & 1);
}
