/** Sources that were opened together, in the order they are heard. */

import { Semaphore } from '../../bounds/semaphore.ts';
import { SOURCE_ADMISSION_MS, SOURCES_OPENING_MAX } from '../../limits.ts';
import type { SourceRefused } from '../audio.ts';
import { openSource, type SourceTerms } from '../source/open-source.ts';
import type { OpenedSource } from '../source/source-list.ts';
import { FilesSource } from './files-source.ts';
import { type PcmSource, type PcmTerms, Playable } from './pcm-source.ts';

class OpenPlaylist extends Playable {
  readonly urls: readonly string[];
  readonly sources: readonly OpenedSource[];

  constructor(urls: readonly string[], sources: readonly OpenedSource[]) {
    super();
    this.urls = urls;
    this.sources = sources;
  }

  source(terms: PcmTerms): PcmSource {
    return new FilesSource(this.sources, terms);
  }

  release(): void {
    for (const source of this.sources) source.release();
  }
}

/** Opens every URL, some at once; the refused one of lowest index is told, the others are let go. */
export async function openPlaylist(terms: SourceTerms, urls: readonly string[]): Promise<OpenPlaylist | SourceRefused> {
  const deadline = AbortSignal.timeout(SOURCE_ADMISSION_MS);
  const opening = new Semaphore(SOURCES_OPENING_MAX, urls.length);
  const open = async (url: string) =>
    (await opening.run(deadline, () => openSource(terms, url, deadline))) ?? ({ reason: 'timeout', retryable: true } as const);
  const opened = await Promise.all(urls.map(open));
  const sources = opened.flatMap((each) => ('reason' in each ? [] : [each]));
  const index = opened.findIndex((each) => 'reason' in each);
  const refused = opened[index];
  if (refused !== undefined && 'reason' in refused) {
    for (const source of sources) source.release();
    return { refused: urls.length > 1 ? { ...refused, source_index: index } : refused };
  }
  sources.forEach((source, at) => {
    source.hold(at === 0);
  });
  return new OpenPlaylist(urls, sources);
}
