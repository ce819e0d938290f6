/** Sources that were opened together, in the order they are heard. */
import { SOURCE_ADMISSION_MS } from '../../limits.ts';
import type { SourceRefused } from '../engine.ts';
import type { AudioOutbound } from '../source/opening.ts';
import { type HeldBytes, Source } from '../source/source.ts';
import type { SourceCache } from '../source/source-cache.ts';
import { FilesReel } from './files-source.ts';
import { Playable, type Reel, type ReelTerms } from './pcm-source.ts';

export class OpenPlaylist extends Playable {
  readonly urls: readonly string[];
  readonly sources: readonly Source[];

  constructor(urls: readonly string[], sources: readonly Source[]) {
    super();
    this.urls = urls;
    this.sources = sources;
  }

  reel(terms: ReelTerms): Reel {
    return new FilesReel(this.sources, terms);
  }

  release(): void {
    for (const source of this.sources) source.release();
  }
}

/** Opens every URL at once; the refused one of lowest index is told, the others are let go. */
export async function openPlaylist(
  outbound: AudioOutbound,
  urls: readonly string[],
  held: HeldBytes,
  cache?: SourceCache,
): Promise<OpenPlaylist | SourceRefused> {
  const sources = urls.map((url) => new Source(outbound, url, held, cache));
  const deadline = AbortSignal.timeout(SOURCE_ADMISSION_MS);
  const refusals = await Promise.all(sources.map((source) => source.admit(deadline)));
  const index = refusals.findIndex((refusal) => refusal !== undefined);
  const detail = refusals[index];
  if (detail !== undefined) {
    for (const source of sources) source.release();
    return { refused: urls.length > 1 ? { ...detail, source_index: index } : detail };
  }
  sources.forEach((source, at) => {
    source.hold(at === 0);
  });
  return new OpenPlaylist(urls, sources);
}
