/** Sources that were opened together, in the order they are heard. */
import { SOURCE_ADMISSION_MS } from '../limits.ts';
import type { Outbound } from '../outbound/outbound.ts';
import type { Playlist, SourceRefused } from './engine.ts';
import { type HeldBytes, Source } from './source.ts';

export class OpenPlaylist implements Playlist {
  readonly urls: readonly string[];
  readonly sources: readonly Source[];

  constructor(urls: readonly string[], sources: readonly Source[]) {
    this.urls = urls;
    this.sources = sources;
  }

  release(): void {
    for (const source of this.sources) source.release();
  }
}

/** Opens every URL at once; the refused one of lowest index is told, the others are let go. */
export async function openPlaylist(
  outbound: Outbound,
  urls: readonly string[],
  held: HeldBytes,
): Promise<OpenPlaylist | SourceRefused> {
  const sources = urls.map((url) => new Source(outbound, url, held));
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
