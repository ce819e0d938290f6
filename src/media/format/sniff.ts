/** Tells the format of a file by its first bytes, never by its name or media type. Pure. */
import { firstAdtsFrame } from './adts.ts';
import { afterTags } from './leading-tags.ts';
import { nextFrame } from './mpeg-framer.ts';
import { TransportDemux } from './mpeg-ts.ts';
import { WavContainer } from './wav-container.ts';

/**
 * The formats that the decoding thread reads. `aac` is AAC in ADTS; `mpegts` and `mpegts-aac` are MPEG audio and AAC in
 * an MPEG transport stream, as in segments of HLS. AAC is decoded only where its library is on the machine.
 */
export type AudioKind = 'wav' | 'mpeg' | 'opus' | 'vorbis' | 'flac' | 'aac' | 'mpegts' | 'mpegts-aac';
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
 * Bytes in which frame headers that agree, of MPEG audio or of AAC, are looked for: a live stream begins in the middle
 * of a frame, a file may begin with rubbish.
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
  const found = byMagic(rest);
  if (found === 'more') return undecided(from);
  if (found === 'unsupported') return { found };
  if (found !== undefined) return { found, from };
  const adts = firstAdtsFrame(rest.subarray(0, MPEG_SEARCH_BYTES), whole);
  if (adts !== undefined) return { found: 'aac', from: from + adts };
  const frame = mpeg(rest, whole);
  if (frame === 'more') return undecided(from);
  return frame === 'unsupported' ? { found: frame } : { found: 'mpeg', from: from + frame };
}

/** Recognises the formats that begin with a signature. Undefined when there is none. */
function byMagic(bytes: Uint8Array): SourceKind | 'more' | 'unsupported' | undefined {
  if (['RIFF', 'RIFX', 'RF64', 'BW64', 'riff'].some((id) => ascii(bytes, 0, id))) return wav(bytes);
  if (ascii(bytes, 0, 'fLaC')) return 'flac';
  if (ascii(bytes, 0, 'OggS')) return ogg(bytes);
  if (isPlaylist(bytes)) return 'playlist';
  if (OTHERS.some(([at, id]) => ascii(bytes, at, id))) return 'unsupported';
  if (bytes[0] !== 0x47) return undefined;
  if (bytes.length <= 2 * TRANSPORT_PACKET_BYTES) return 'more';
  return bytes[TRANSPORT_PACKET_BYTES] === 0x47 && bytes[2 * TRANSPORT_PACKET_BYTES] === 0x47 ? transport(bytes) : undefined;
}

function transport(bytes: Uint8Array): 'mpegts' | 'mpegts-aac' | 'more' | 'unsupported' {
  const demux = new TransportDemux();
  const audio = demux.push(bytes);
  if (demux.unsupported || bytes.length > TRANSPORT_SEARCH_BYTES) return 'unsupported';
  if (audio.length === 0) return 'more';
  return demux.kind === 'aac' ? 'mpegts-aac' : 'mpegts';
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
