/** Opens a URL of a file playback up to its first audio, whatever it turns out to be. */
import { PLAYLIST_DEPTH_MAX, PLAYLIST_ENTRIES_MAX } from '../../limits.ts';
import type { SourceDetail } from '../../problem.ts';
import { parsePlaylist } from '../format/playlist-text.ts';
import type { DownloadTarget } from './download.ts';
import type { MemoryShare } from './held-bytes.ts';
import { HlsSource } from './hls-source.ts';
import { type AudioOutbound, Refusal } from './opening.ts';
import type { SharedContents } from './shared-contents.ts';
import { type PlaylistFound, Source } from './source.ts';
import { type OpenedSource, SourceList } from './source-list.ts';

export interface SourceTerms {
  readonly outbound: AudioOutbound;
  readonly held: MemoryShare;
  readonly contents: SharedContents;
  /** The bytes of a file that is read on at once, to be shared. */
  readonly sharedMaxBytes: number;
}

/** The number of entries that the playlists of one URL may still name. */
interface Budget {
  entries: number;
}

/** The source, or why it was refused. */
export async function openSource(terms: SourceTerms, url: string, signal: AbortSignal): Promise<OpenedSource | SourceDetail> {
  try {
    return await open(terms, url, [], { entries: PLAYLIST_ENTRIES_MAX }, signal);
  } catch (error) {
    if (signal.aborted) return { reason: 'timeout', retryable: true };
    if (error instanceof Refusal) return error.detail;
    return { reason: 'preparation_failed', retryable: true };
  }
}

/** Opens a URL. `within` are the playlists that led here, from the outermost on. */
async function open(
  terms: SourceTerms,
  url: string,
  within: readonly string[],
  budget: Budget,
  signal: AbortSignal,
): Promise<OpenedSource> {
  const source = new Source(terms.outbound, url, terms.held, terms.contents, terms.sharedMaxBytes);
  const found = await source.admit(signal);
  if (found === undefined) return source;
  return await openPlaylistText(terms, found, within, budget, signal);
}

async function openPlaylistText(
  terms: SourceTerms,
  found: PlaylistFound,
  within: readonly string[],
  budget: Budget,
  signal: AbortSignal,
): Promise<OpenedSource> {
  const list = parsePlaylist(found.text, found.url);
  if (list.type === 'unsupported') throw new Refusal('unsupported', false, 200);
  if (list.type === 'media') {
    const target: DownloadTarget = { outbound: terms.outbound, url: found.url, signal };
    return await HlsSource.open(target, list, terms.held);
  }
  if (list.type === 'too many entries' || within.length >= PLAYLIST_DEPTH_MAX) throw new Refusal('rejected', false, 200);
  const chain = [...within, found.url];
  budget.entries -= list.urls.length;
  if (budget.entries < 0 || list.urls.some((url) => chain.includes(url))) throw new Refusal('rejected', false, 200);
  if (list.urls.length === 0) throw new Refusal('unsupported', false, 200);
  const entry = (url: string, until: AbortSignal) => open(terms, url, chain, budget, until);
  if (list.type === 'entries') return await SourceList.open(list.urls, entry, signal);
  let refusal: unknown;
  for (const url of list.urls) {
    try {
      return await entry(url, signal);
    } catch (error) {
      refusal ??= error;
      if (signal.aborted) break;
    }
  }
  throw refusal;
}
