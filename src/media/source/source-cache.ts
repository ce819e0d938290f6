/**
 * Small sources that were heard before, by URL, with the validators their server gave (RFC 9111 §4.3). Each use asks
 * the server whether they are still the same; the least recently used go first.
 */
import { SOURCE_CACHE_MAX_BYTES, SOURCE_CACHE_MAX_ENTRIES } from '../../limits.ts';
import type { AudioKind } from '../format/sniff.ts';

export interface CachedSource {
  readonly kind: AudioKind;
  readonly chunks: readonly Uint8Array[];
  readonly bytes: number;
  /** The URL that answered after redirects. The validators are of that resource. */
  readonly finalUrl: string;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
}

export class SourceCache {
  readonly #entries = new Map<string, CachedSource>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get(url: string): CachedSource | undefined {
    const entry = this.#entries.get(url);
    if (entry === undefined) return undefined;
    this.#entries.delete(url);
    this.#entries.set(url, entry);
    return entry;
  }

  /** Keeps it where there is a validator to ask with and room for it; anything else of that URL is forgotten. */
  set(url: string, entry: CachedSource): void {
    this.delete(url);
    if ((entry.etag === undefined && entry.lastModified === undefined) || entry.bytes > SOURCE_CACHE_MAX_BYTES) return;
    this.#entries.set(url, entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= SOURCE_CACHE_MAX_BYTES && this.#entries.size <= SOURCE_CACHE_MAX_ENTRIES) break;
      this.delete(oldest);
    }
  }

  delete(url: string): void {
    const entry = this.#entries.get(url);
    if (entry === undefined) return;
    this.#entries.delete(url);
    this.#bytes -= entry.bytes;
  }
}

/** The fields that make a request for it conditional. */
export const conditions = (entry: CachedSource): Record<string, string> => ({
  ...(entry.etag === undefined ? {} : { 'if-none-match': entry.etag }),
  ...(entry.lastModified === undefined ? {} : { 'if-modified-since': entry.lastModified }),
});

/** Whether a response may be kept for whoever asks for the same URL (RFC 9111 §3). */
export function mayKeep(headers: Headers): boolean {
  const control = headers.get('cache-control')?.toLowerCase() ?? '';
  return !/\b(no-store|private)\b/.test(control) && !headers.has('vary');
}
