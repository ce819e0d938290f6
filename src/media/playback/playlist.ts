/** Sources that were opened together, in the order they are heard. */

import { Semaphore } from '../../bounds/semaphore.ts';
import { SOURCE_ADMISSION_MS, SOURCE_HELD_MAX_BYTES, SOURCE_SHARED_MAX_BYTES, SOURCES_OPENING_MAX } from '../../limits.ts';
import type { SourceDetail } from '../../problem.ts';
import type { SourceRefused } from '../audio.ts';
import type { HeldBytes } from '../source/held-bytes.ts';
import { openSource, type SourceTerms } from '../source/open-source.ts';
import { audioFor } from '../source/opening.ts';
import type { OpenedSource } from '../source/source-list.ts';
import type { SourceTurns } from '../source/source-turns.ts';
import { FilesSource } from './files-source.ts';
import { OpenStream } from './live-stream.ts';
import { type PcmSource, type PcmTerms, Playable } from './pcm-source.ts';
import type { SharedSounds } from './shared-sounds.ts';

class OpenPlaylist extends Playable {
  readonly urls: readonly string[];
  readonly sources: readonly OpenedSource[];
  readonly #sounds: SharedSounds;
  readonly #appUuid: string;

  constructor(urls: readonly string[], sources: readonly OpenedSource[], sounds: SharedSounds, appUuid: string) {
    super();
    this.#appUuid = appUuid;
    this.urls = urls;
    this.sources = sources;
    this.#sounds = sounds;
  }

  source(terms: PcmTerms): PcmSource {
    return new FilesSource(this.sources, { ...terms, decoders: terms.decoders.of(this.#appUuid) }, this.#sounds);
  }

  release(): void {
    for (const source of this.sources) source.release();
  }
}

export interface PlaylistTerms extends Omit<SourceTerms, 'held' | 'sharedMaxBytes'> {
  readonly held: HeldBytes;
  readonly turns: SourceTurns;
  readonly sounds: SharedSounds;
}

/** It was not the application's turn in time. */
const BUSY: SourceDetail = { reason: 'preparation_failed', retryable: true };

/**
 * Opens every URL, some at once, when it is the application's turn; the refused one of lowest index is told, the others
 * are let go.
 */
export async function openPlaylist(
  terms: PlaylistTerms,
  urls: readonly string[],
  appUuid: string,
): Promise<OpenPlaylist | SourceRefused> {
  const deadline = AbortSignal.timeout(SOURCE_ADMISSION_MS);
  const opened = await terms.turns.playlist(appUuid, deadline, () => openAll(terms, urls, appUuid, deadline));
  return opened ?? { refused: BUSY };
}

async function openAll(
  terms: PlaylistTerms,
  urls: readonly string[],
  appUuid: string,
  deadline: AbortSignal,
): Promise<OpenPlaylist | SourceRefused> {
  const opening = new Semaphore(SOURCES_OPENING_MAX, urls.length);
  const all = Promise.withResolvers<void>();
  const held = terms.held.of(appUuid);
  const outbound = audioFor(appUuid, terms.outbound);
  const termsOf = (at: number): SourceTerms => ({
    ...terms,
    outbound,
    held,
    sharedMaxBytes: at === 0 ? SOURCE_SHARED_MAX_BYTES : SOURCE_HELD_MAX_BYTES,
  });
  /** Opens a source. Its turn lasts for as long as it has a connection that nobody hears. */
  const open = (url: string, at: number): Promise<OpenedSource | SourceDetail> =>
    new Promise((resolve, reject) => {
      const job = async () => {
        const source = await openSource(termsOf(at), url, deadline);
        resolve(source);
        if ('reason' in source) return;
        const isHeld = source.hold(at === 0);
        await (at === 0 ? all.promise : isHeld);
      };
      terms.turns.connection(appUuid, deadline, job).then(() => resolve(BUSY), reject);
    });
  const late: SourceDetail = { reason: 'timeout', retryable: true };
  const inTurn = async (url: string, at: number) => (await opening.run(deadline, () => open(url, at))) ?? late;
  const opened = await Promise.all(urls.map(inTurn)).finally(() => all.resolve());
  const sources = opened.flatMap((each) => ('reason' in each ? [] : [each]));
  const index = opened.findIndex((each) => 'reason' in each);
  const refused = opened[index];
  if (refused !== undefined && 'reason' in refused) {
    for (const source of sources) source.release();
    return { refused: urls.length > 1 ? { ...refused, source_index: index } : refused };
  }
  return new OpenPlaylist(urls, sources, terms.sounds, appUuid);
}

/** Opens a live stream when it is the application's turn. */
export async function openStream(terms: PlaylistTerms, url: string, appUuid: string): Promise<OpenStream | SourceRefused> {
  const stream = new OpenStream({ outbound: audioFor(appUuid, terms.outbound), held: terms.held.of(appUuid), url });
  const deadline = AbortSignal.timeout(SOURCE_ADMISSION_MS);
  const inTurn = () => terms.turns.connection(appUuid, deadline, async () => (await stream.admit()) ?? stream);
  return (await terms.turns.playlist(appUuid, deadline, inTurn)) ?? { refused: BUSY };
}
