/** Texts that name sources: M3U (RFC 8216 where it is HLS) and PLS. Pure. */
import { PLAYLIST_ENTRIES_MAX } from '../../limits.ts';

/** One media playlist of HLS. */
export interface HlsMedia {
  readonly type: 'media';
  readonly segments: readonly string[];
  /** Number of the first segment. */
  readonly sequence: number;
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
  const lines = text.split(/\r\n|\r|\n/).map((line) => line.replace(/^\uFEFF/, '').trim());
  const first = lines.find((line) => line !== '')?.toLowerCase() ?? '';
  if (first === '[playlist]')
    return entries(
      lines.flatMap((line) => /^file\d+\s*=\s*(.+)$/i.exec(line)?.[1] ?? []),
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

/** The variants, the cheapest first: a telephone hears no difference. One without video comes before one with it. */
function variants(lines: readonly string[], base: string): PlaylistText {
  const found: { readonly url: string; readonly cost: number }[] = [];
  for (const [index, line] of lines.entries()) {
    if (!line.startsWith('#EXT-X-STREAM-INF:')) continue;
    const name = lines.slice(index + 1).find((next) => next !== '' && !next.startsWith('#'));
    const url = name === undefined ? undefined : httpUrl(name, base);
    const bandwidth = Number(/[:,]BANDWIDTH=(\d+)/.exec(line)?.[1] ?? 0);
    const video = /RESOLUTION=|CODECS="[^"]*(avc|hvc|hev|vp0?9|av01)/i.test(line);
    if (url !== undefined) found.push({ url, cost: bandwidth + (video ? 1e12 : 0) });
  }
  const renditions = lines.flatMap((line) => {
    const name = /^#EXT-X-MEDIA:.*TYPE=AUDIO/.test(line) ? /URI="([^"]+)"/.exec(line)?.[1] : undefined;
    return name === undefined ? [] : (httpUrl(name, base) ?? []);
  });
  const urls = [...renditions, ...found.sort((a, b) => a.cost - b.cost).map(({ url }) => url)];
  return urls.length > PLAYLIST_ENTRIES_MAX ? { type: 'too many entries' } : { type: 'variants', urls };
}

function media(lines: readonly string[], base: string): PlaylistText {
  const number = (tag: string): number =>
    Number(lines.find((line) => line.startsWith(`${tag}:`))?.slice(tag.length + 1) ?? 0) || 0;
  const encrypted = lines.some((line) => line.startsWith('#EXT-X-KEY:') && !/METHOD=NONE/.test(line));
  if (encrypted || lines.some((line) => line.startsWith('#EXT-X-MAP:'))) return { type: 'unsupported' };
  const names = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (names.length > PLAYLIST_ENTRIES_MAX) return { type: 'too many entries' };
  return {
    type: 'media',
    segments: names.flatMap((name) => httpUrl(name, base) ?? []),
    sequence: Math.max(0, Math.floor(number('#EXT-X-MEDIA-SEQUENCE'))),
    targetSec: Math.min(TARGET_MAX_SEC, Math.max(TARGET_MIN_SEC, number('#EXT-X-TARGETDURATION'))),
    ended: lines.includes('#EXT-X-ENDLIST'),
  };
}

/** The http(s) URL that `name` stands for; undefined where it is a file path or of another scheme. */
function httpUrl(name: string, base: string): string | undefined {
  if (name.includes('\\')) return undefined;
  const url = URL.parse(name, base);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') ? url.href : undefined;
}
