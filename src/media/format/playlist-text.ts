/** Texts that name sources: M3U (RFC 8216 where it is HLS) and PLS. Pure. */
import { HLS_SEGMENTS_MAX, PLAYLIST_ENTRIES_MAX, PLAYLIST_LINES_MAX, PLAYLIST_NAME_MAX_CHARS } from '../../limits.ts';

/** One segment of HLS: a resource, or a part of one. */
interface HlsSegment {
  /** The resource, or undefined where none is fetched: a gap, or a name that is no http(s) URL. Each has its number. */
  readonly url: string | undefined;
  /** The bytes of the resource that are the segment; undefined where it is the whole. */
  readonly part: { readonly from: number; readonly bytes: number } | undefined;
  /** Format and codec may be others from here on (RFC 8216 §4.3.2.3). */
  readonly discontinuity: boolean;
}

/** One media playlist of HLS. */
export interface HlsMedia {
  readonly type: 'media';
  readonly segments: readonly HlsSegment[];
  /** Number of the first segment, of up to 64 bits: some servers take the time in nanoseconds. */
  readonly sequence: bigint;
  readonly targetSec: number;
  /** Nothing is added any more. */
  readonly ended: boolean;
}

export type PlaylistText =
  | HlsMedia
  /** The URLs of the variants of an HLS stream, the one to be played first. */
  | { readonly type: 'variants'; readonly urls: readonly string[] }
  | { readonly type: 'entries'; readonly urls: readonly string[] }
  /** Encrypted segments, or ones that need a head of their own (fragmented MP4). */
  | { readonly type: 'unsupported' }
  | { readonly type: 'too many entries' };

const TARGET_MIN_SEC = 1;
const TARGET_MAX_SEC = 60;

/** Reads a playlist that was found at `base`. Entries that are no http(s) URL, file paths among them, are left out. */
export function parsePlaylist(text: string, base: string): PlaylistText {
  const split = text.split(/\r\n|\r|\n/, PLAYLIST_LINES_MAX + 1);
  if (split.length > PLAYLIST_LINES_MAX) return { type: 'too many entries' };
  const lines = split.map((line) => line.replace(/^\uFEFF/, '').trim());
  const first = lines.find((line) => line !== '')?.toLowerCase() ?? '';
  if (first === '[playlist]')
    return entries(
      lines.flatMap((line) => /^file\d+\s*=\s*(\S.*)$/i.exec(line)?.[1] ?? []),
      base,
    );
  if (lines.some((line) => line.startsWith('#EXT-X-STREAM-INF'))) return variants(lines, base);
  if (lines.some((line) => line.startsWith('#EXT-X-TARGETDURATION'))) return media(lines, base);
  return entries(
    lines.filter((line) => line !== '' && !line.startsWith('#')),
    base,
  );
}

function entries(names: readonly string[], base: string): PlaylistText {
  if (names.length > PLAYLIST_ENTRIES_MAX) return { type: 'too many entries' };
  return { type: 'entries', urls: names.flatMap((name) => httpUrl(name, base) ?? []) };
}

/**
 * The variants, the cheapest first: a telephone hears no difference. One without video comes before one with it, and
 * before all come those of sound alone (RFC 8216 §4.3.4.1), which may be other languages: first the author's default.
 */
function variants(lines: readonly string[], base: string): PlaylistText {
  const found: { readonly name: string; readonly cost: number }[] = [];
  // From the end, so that the name which follows a variant is known: a search from each variant is quadratic.
  let name: string | undefined;
  for (const line of lines.toReversed()) {
    if (line !== '' && !line.startsWith('#')) name = line;
    if (!line.startsWith('#EXT-X-STREAM-INF:')) continue;
    const bandwidth = Number(/[:,]BANDWIDTH=(\d+)/.exec(line)?.[1] ?? 0);
    const video = /RESOLUTION=|CODECS="[^"]*(avc|hvc|hev|vp0?9|av01)/i.test(line);
    if (name !== undefined) found.push({ name, cost: bandwidth + (video ? 1e12 : 0) });
  }
  const renditions = lines.flatMap((line) => {
    const name = /^#EXT-X-MEDIA:.*TYPE=AUDIO/.test(line) ? /URI="([^"]+)"/.exec(line)?.[1] : undefined;
    return name === undefined ? [] : { name, cost: /[:,]DEFAULT=YES/.test(line) ? 0 : 1 };
  });
  const byCost = [renditions, found.reverse()].flatMap((each) => each.sort((a, b) => a.cost - b.cost));
  const names = byCost.map(({ name }) => name);
  if (names.length > PLAYLIST_ENTRIES_MAX) return { type: 'too many entries' };
  return { type: 'variants', urls: names.flatMap((each) => httpUrl(each, base) ?? []) };
}

function media(lines: readonly string[], base: string): PlaylistText {
  const number = (tag: string): number =>
    Number(lines.find((line) => line.startsWith(`${tag}:`))?.slice(tag.length + 1) ?? 0) || 0;
  const encrypted = lines.some((line) => line.startsWith('#EXT-X-KEY:') && !/METHOD=NONE/.test(line));
  if (encrypted || lines.some((line) => line.startsWith('#EXT-X-MAP:'))) return { type: 'unsupported' };
  const named = namedSegments(lines);
  if (named === undefined) return { type: 'unsupported' };
  const ended = lines.includes('#EXT-X-ENDLIST');
  if (ended && named.length > HLS_SEGMENTS_MAX) return { type: 'too many entries' };
  // A stream without an end is heard from its last segments on. Some keep hours of those before.
  const passed = ended ? 0 : Math.max(0, named.length - PLAYLIST_ENTRIES_MAX);
  const sequence = lines.map((line) => /^#EXT-X-MEDIA-SEQUENCE:[ \t]*(\d{1,20})$/.exec(line)?.[1]).find(Boolean) ?? 0;
  return {
    type: 'media',
    segments: named.slice(passed).map(({ name, isGap, part, discontinuity }) => ({
      url: isGap ? undefined : httpUrl(name, base),
      part,
      discontinuity,
    })),
    sequence: BigInt(sequence) + BigInt(passed),
    targetSec: Math.min(TARGET_MAX_SEC, Math.max(TARGET_MIN_SEC, number('#EXT-X-TARGETDURATION'))),
    ended,
  };
}

interface NamedSegment {
  readonly name: string;
  readonly isGap: boolean;
  readonly part: HlsSegment['part'];
  readonly discontinuity: boolean;
}

/** The segments in order; undefined where a part is named that begins nowhere (RFC 8216 §4.3.2.2). */
function namedSegments(lines: readonly string[]): NamedSegment[] | undefined {
  const segments: NamedSegment[] = [];
  let range: string | undefined;
  let isGap = false;
  let discontinuity = false;
  for (const line of lines) {
    if (line.startsWith('#EXT-X-BYTERANGE:')) range = line.slice(line.indexOf(':') + 1).trim();
    if (line === '#EXT-X-GAP') isGap = true;
    if (line === '#EXT-X-DISCONTINUITY') discontinuity = true;
    if (line === '' || line.startsWith('#')) continue;
    const part = range === undefined ? undefined : partOf(range, line, segments.at(-1));
    if (range !== undefined && part === undefined) return undefined;
    segments.push({ name: line, isGap, part, discontinuity });
    range = undefined;
    isGap = false;
    discontinuity = false;
  }
  return segments;
}

/** Reads `bytes[@from]`. Without `from` the part follows that of the segment before, which is of the same resource. */
function partOf(range: string, name: string, before: NamedSegment | undefined): HlsSegment['part'] {
  const [, bytes, named] = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(range) ?? [];
  const follows = before?.part !== undefined && before.name === name ? before.part.from + before.part.bytes : undefined;
  const from = named === undefined ? follows : Number(named);
  return bytes === undefined || from === undefined ? undefined : { from, bytes: Number(bytes) };
}

/**
 * The http(s) URL that `name` stands for; undefined where it is a file path, of another scheme, or too long: a host of
 * 300,000 labels takes 3 s to be read.
 */
function httpUrl(name: string, base: string): string | undefined {
  if (name.length > PLAYLIST_NAME_MAX_CHARS || name.includes('\\')) return undefined;
  const url = URL.parse(name, base);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') ? url.href : undefined;
}
