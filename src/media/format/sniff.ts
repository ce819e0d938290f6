/** Tells the format of a file by its first bytes, never by its name or media type. Pure. */
import { afterTags } from './leading-tags.ts';
import { nextFrame } from './mpeg-framer.ts';
import { TransportDemux } from './mpeg-ts.ts';
import { WavContainer } from './wav-container.ts';

/**
 * The formats that the decoding thread reads. `mpegts` is MPEG audio in an MPEG transport stream, as in segments of
 * HLS.
 */
export type AudioKind = 'wav' | 'mpeg' | 'opus' | 'vorbis' | 'flac' | 'mpegts';
/** A text that names sources: M3U (HLS included) or PLS. */
export type SourceKind = AudioKind | 'playlist';

/**
 * The result of a look at the first bytes. `more` means that they do not decide it yet. The bytes before `from` are of
 * no use; `from` may lie beyond the bytes that are there.
 */
type Sniffed =
  | { readonly found: 'more'; readonly from: number }
  | { readonly found: SourceKind; readonly from: number }
  | { readonly found: 'unsupported' };

/**
 * Bytes in which two MPEG frame headers that agree are looked for: a live stream begins in the middle of a frame, a
 * file may begin with rubbish.
 */
const MPEG_SEARCH_BYTES = 64 * 1024;
const TRANSPORT_PACKET_BYTES = 188;
/** Bytes in which a transport stream must name its audio; it repeats its tables ten times a second. */
const TRANSPORT_SEARCH_BYTES = 1024 * 1024;
/** No format is told apart by fewer bytes. */
const LEAST_BYTES = 12;

const ascii = (bytes: Uint8Array, at: number, text: string): boolean =>
  [...text].every((letter, i) => bytes[at + i] === letter.charCodeAt(0));

/** Recognises a source. `whole` means that nothing follows these bytes. */
export function sniff(bytes: Uint8Array, whole: boolean): Sniffed {
  const undecided = (from: number): Sniffed => (whole ? { found: 'unsupported' } : { found: 'more', from });
  const from = afterTags(bytes);
  if (from === undefined) return undecided(0);
  const rest = bytes.subarray(from);
  if (rest.length < LEAST_BYTES) return undecided(from);
  const found = byMagic(rest) ?? mpeg(rest, whole);
  if (found === 'more') return undecided(from);
  if (found === 'unsupported') return { found };
  return typeof found === 'number' ? { found: 'mpeg', from: from + found } : { found, from };
}

/** Recognises the formats that begin with a signature. Undefined when there is none. */
function byMagic(bytes: Uint8Array): SourceKind | 'more' | 'unsupported' | undefined {
  if (['RIFF', 'RIFX', 'RF64', 'BW64', 'riff'].some((id) => ascii(bytes, 0, id))) return wav(bytes);
  if (ascii(bytes, 0, 'fLaC')) return 'flac';
  if (ascii(bytes, 0, 'OggS')) return ogg(bytes);
  if (isPlaylist(bytes)) return 'playlist';
  if (OTHERS.some(([at, id]) => ascii(bytes, at, id)) || isAdts(bytes)) return 'unsupported';
  if (bytes[0] !== 0x47) return undefined;
  if (bytes.length <= 2 * TRANSPORT_PACKET_BYTES) return 'more';
  return bytes[TRANSPORT_PACKET_BYTES] === 0x47 && bytes[2 * TRANSPORT_PACKET_BYTES] === 0x47 ? transport(bytes) : undefined;
}

function transport(bytes: Uint8Array): 'mpegts' | 'more' | 'unsupported' {
  const demux = new TransportDemux();
  const audio = demux.push(bytes);
  if (demux.unsupported || bytes.length > TRANSPORT_SEARCH_BYTES) return 'unsupported';
  return audio.length > 0 ? 'mpegts' : 'more';
}

/**
 * Signatures of formats that are not read, so that nothing in them is taken for MPEG audio: MP4, Matroska, AIFF, AMR,
 * Sun audio, ADIF, MIDI, ASF.
 */
const OTHERS: readonly (readonly [number, string])[] = [
  [4, 'ftyp'],
  [0, '\x1a\x45\xdf\xa3'],
  [0, 'FORM'],
  [0, '#!AMR'],
  [0, '.snd'],
  [0, 'ADIF'],
  [0, 'MThd'],
  [0, '\x30\x26\xb2\x75'],
];

/**
 * AAC in ADTS (ISO 13818-7 §6.2): its header looks like that of MPEG audio but for the layer, and names the length of
 * its frame.
 */
function isAdts(bytes: Uint8Array): boolean {
  const begins = (at: number) => bytes[at] === 0xff && ((bytes[at + 1] ?? 0) & 0xf6) === 0xf0;
  const [, , , fourth = 0, fifth = 0, sixth = 0] = bytes;
  const next = ((fourth & 3) << 11) | (fifth << 3) | (sixth >> 5);
  return begins(0) && (next + 2 > bytes.length || begins(next));
}

function wav(bytes: Uint8Array): 'wav' | 'more' | 'unsupported' {
  const container = new WavContainer();
  container.push(bytes);
  if (container.state === 'head') return 'more';
  return container.state === 'unsupported' ? 'unsupported' : 'wav';
}

/** The first packet of an Ogg stream names its codec (RFC 3533 §6, RFC 7845 §5.1). */
function ogg(bytes: Uint8Array): AudioKind | 'more' | 'unsupported' {
  const packet = 27 + (bytes[26] ?? 0);
  if (bytes.length < packet + 8) return 'more';
  if (ascii(bytes, packet, 'OpusHead')) return 'opus';
  if (ascii(bytes, packet, '\x01vorbis')) return 'vorbis';
  return ascii(bytes, packet, '\x7fFLAC') ? 'flac' : 'unsupported';
}

function isPlaylist(bytes: Uint8Array): boolean {
  const text = new TextDecoder().decode(bytes.subarray(0, 64)).trimStart().toLowerCase();
  return text.startsWith('#extm3u') || text.startsWith('[playlist]') || /^https?:\/\//.test(text);
}

/** Finds the first of two frames that agree. */
function mpeg(bytes: Uint8Array, whole: boolean): number | 'more' | 'unsupported' {
  const place = nextFrame(bytes, 0, { locked: false, like: undefined, whole });
  if (place.at > MPEG_SEARCH_BYTES) return 'unsupported';
  if ('length' in place) return place.at;
  return whole ? 'unsupported' : 'more';
}
