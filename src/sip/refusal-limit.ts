/**
 * Limits the answers to sources that we do not know, so that we are no amplifier and no address book: so many a second
 * for each source, and so many in all. Beyond that a request is ignored. A source is an IPv4 address or an IPv6 /64.
 * Other work that strangers ask for, as TLS handshakes, is limited in the same way.
 */

import { SIP_REFUSALS_MAX, SIP_REFUSALS_PER_SOURCE, SIP_REFUSED_SOURCES_MAX } from '../limits.ts';
import { sourceOf } from './source.ts';

interface Bucket {
  tokens: number;
  /** The time at which `tokens` was right, in milliseconds. */
  at: number;
}

export class RefusalLimit {
  /** The buckets of the sources heard last, the one heard longest ago first. */
  readonly #sources = new Map<string, Bucket>();
  readonly #perSource: number;
  readonly #most: number;
  readonly #all: Bucket;

  /** Answers a second for each source, and in all. */
  constructor(perSource = SIP_REFUSALS_PER_SOURCE, most = SIP_REFUSALS_MAX) {
    this.#perSource = perSource;
    this.#most = most;
    this.#all = { tokens: most, at: 0 };
  }

  /**
   * Whether a refusal may be sent to `host` now, in milliseconds. A refusal that may be sent is counted. With a `name`
   * it counts for that name at the source only.
   */
  allow(host: string, now: number, name = ''): boolean {
    const key = `${sourceOf(host)} ${name}`;
    const bucket = this.#sources.get(key) ?? { tokens: this.#perSource, at: now };
    this.#sources.delete(key);
    this.#sources.set(key, bucket);
    if (this.#sources.size > SIP_REFUSED_SOURCES_MAX) {
      const [oldest] = this.#sources.keys();
      if (oldest !== undefined) this.#sources.delete(oldest);
    }
    refill(bucket, this.#perSource, now);
    refill(this.#all, this.#most, now);
    if (bucket.tokens < 1 || this.#all.tokens < 1) return false;
    bucket.tokens--;
    this.#all.tokens--;
    return true;
  }

  /** The number of sources that are remembered. */
  get size(): number {
    return this.#sources.size;
  }
}

/** Fills a bucket at `capacity` tokens a second, up to `capacity`. */
function refill(bucket: Bucket, capacity: number, now: number): void {
  bucket.tokens = Math.min(capacity, bucket.tokens + (Math.max(0, now - bucket.at) * capacity) / 1000);
  bucket.at = now;
}
