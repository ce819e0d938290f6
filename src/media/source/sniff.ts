/** What a file is, told by its first bytes and never by its name or media type. Pure. */
import type { SourceKind } from '../decode/decode-worker.ts';
import { mpegFrame } from './mpeg-frame.ts';

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
    const length = mpegFrame(bytes, at)?.bytes ?? 0;
    if (length === 0) continue;
    if (at + length + 4 > bytes.length) {
      if (!whole) return 'more';
      return at + length <= bytes.length ? 'mp3' : tagged ? 'mp3' : 'unsupported';
    }
    if (mpegFrame(bytes, at + length) !== undefined) return 'mp3'; // one sync word is chance, two in step are a stream
  }
  return 'unsupported';
}
