/**
 * An HLS stream with an end, as a source like any file: nothing of it is held, and each pass fetches its segments
 * again.
 */
import type { HlsMedia } from '../format/playlist-text.ts';
import type { AudioKind } from '../format/sniff.ts';
import { type AudioSource, SourceLost } from './audio-source.ts';
import type { DownloadTarget } from './download.ts';
import type { MemoryShare } from './held-bytes.ts';
import { HlsBody } from './hls.ts';
import { Refusal } from './opening.ts';
import { recognise } from './recognise.ts';

export class HlsSource implements AudioSource {
  readonly content = undefined;
  /** The kind with which it begins. */
  readonly #kind: AudioKind;
  readonly #target: DownloadTarget;
  readonly #media: HlsMedia;
  readonly #held: MemoryShare;
  readonly #abort: AbortController;
  #body: HlsBody | undefined;

  private constructor(target: DownloadTarget, media: HlsMedia, held: MemoryShare, kind: AudioKind, abort: AbortController) {
    this.#target = target;
    this.#media = media;
    this.#held = held;
    this.#kind = kind;
    this.#abort = abort;
  }

  get kind(): AudioKind {
    return this.#body?.kind ?? this.#kind;
  }

  /** Reads the stream up to its first audio, for whose head `held` has the memory. Rejects with `Refusal`. */
  static async open(target: DownloadTarget, media: HlsMedia, held: MemoryShare): Promise<HlsSource> {
    if (!media.ended || media.segments.length === 0) throw new Refusal('unsupported', false, 200);
    const body = new HlsBody(target, media, held);
    try {
      const { kind } = await recognise(() => body.next(), held);
      if (kind === 'playlist') throw new Refusal('unsupported', false, 200);
      const abort = new AbortController();
      return new HlsSource({ ...target, signal: abort.signal }, media, held, kind, abort);
    } finally {
      body.close();
    }
  }

  async hold(): Promise<void> {}

  async prepare(): Promise<void> {}

  async *bytes(): AsyncGenerator<Uint8Array> {
    this.interrupt();
    const body = new HlsBody(this.#target, this.#media, this.#held);
    this.#body = body;
    try {
      for (;;) {
        const chunk = await body.next().catch(() => {
          throw new SourceLost('the segments cannot be fetched');
        });
        if (body !== this.#body) throw new SourceLost('read from elsewhere');
        if (chunk === undefined) return;
        yield chunk;
      }
    } finally {
      body.close(); // Whoever has had enough waits for no more.
    }
  }

  interrupt(): void {
    this.#body?.close();
    this.#body = undefined;
  }

  release(): void {
    this.#abort.abort();
    this.interrupt();
  }
}
