/**
 * One URL of a playlist. It is opened at admission, up to its first audio. A small one is then held in memory whole; of a large one the first
 * keeps its connection (read only as fast as it is heard), and a later one is let go and fetched again at its turn, because no server holds
 * an idle connection for the minutes that the sources before it play.
 */
import { SOURCE_HELD_MAX_BYTES, SOURCE_HELD_TOTAL_MAX_BYTES } from '../../limits.ts';
import type { GetResponse } from '../../outbound/http-get.ts';
import type { SourceDetail } from '../../problem.ts';
import type { SourceKind } from '../decode/decode-worker.ts';
import { Download } from './download.ts';
import { type AudioOutbound, Refusal, recognise } from './opening.ts';
import { type CachedSource, conditions, mayKeep, SourceCache } from './source-cache.ts';

type Bytes = Uint8Array<ArrayBufferLike>;

/** The source was admitted and then failed: its connection, its size or its content. */
export class SourceLost extends Error {
  override readonly name = 'SourceLost';
}

/** Memory that held sources of one engine may use together. */
export class HeldBytes {
  #used = 0;
  take(bytes: number): boolean {
    if (this.#used + bytes > SOURCE_HELD_TOTAL_MAX_BYTES) return false;
    this.#used += bytes;
    return true;
  }
  give(bytes: number): void {
    this.#used -= bytes;
  }
  get used(): number {
    return this.#used;
  }
}

export class Source {
  readonly #outbound: AudioOutbound;
  readonly #url: string;
  readonly #held: HeldBytes;
  readonly #cache: SourceCache;
  readonly #abort = new AbortController();
  #kind: SourceKind = 'wav';
  #chunks: readonly Bytes[] = [];
  #heldBytes = 0;
  /** The rest of the content, while its connection is kept. */
  #download: Download | undefined;
  #complete = false;
  #filling: Promise<void> | undefined;
  /** Somebody reads `bytes`: filling is no longer ahead of need, and a break is heard. */
  #wanted = false;
  #broken = false;
  #reading = 0;

  constructor(outbound: AudioOutbound, url: string, held: HeldBytes, cache = new SourceCache()) {
    this.#outbound = outbound;
    this.#url = url;
    this.#held = held;
    this.#cache = cache;
  }

  get kind(): SourceKind {
    return this.#kind;
  }

  /** Opens the source up to its first audio. Undefined where it is admitted. */
  async admit(signal: AbortSignal): Promise<SourceDetail | undefined> {
    const cancel = () => this.#abort.abort();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const known = this.#cache.get(this.#url);
      if (known !== undefined && (await this.#unchanged(known))) return undefined;
      if (known === undefined) await this.#connect({});
      await this.#recognise();
      return undefined;
    } catch (error) {
      const aborted = signal.aborted;
      this.release();
      if (aborted) return { reason: 'timeout', retryable: true };
      if (error instanceof Refusal) return error.detail;
      return { reason: 'preparation_failed', retryable: true };
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  /** After admission: reads on to the end where the source is small; otherwise keeps (`first`) or drops the connection. Never rejects. */
  hold(first: boolean): void {
    const download = this.#download;
    this.#filling = this.#fill(first).catch(() => {
      if (this.#download !== download) return; // The source is read from its start again by now.
      this.#dropConnection();
      if (this.#wanted) this.#broken = true;
      else this.#forget(); // fetched again at its turn; what it then says decides
    });
  }

  /** The file's bytes from its start. Each use after the first reads memory or fetches again, and ends the one before. Throws `SourceLost`. */
  async *bytes(): AsyncGenerator<Bytes> {
    this.interrupt();
    const reading = ++this.#reading;
    this.#wanted = true; // what is being filled is heard as it comes
    const still = () => {
      if (reading !== this.#reading) throw new SourceLost('read from elsewhere');
    };
    let told = 0;
    for (; told < this.#chunks.length; told++) yield this.#chunks[told] ?? new Uint8Array(0);
    still();
    await this.#filling;
    still();
    this.#filling = undefined;
    for (; told < this.#chunks.length; told++) yield this.#chunks[told] ?? new Uint8Array(0);
    still();
    if (this.#complete) return;
    if (this.#broken) throw new SourceLost('the connection broke or stalled');
    this.#forget();
    if (this.#download === undefined) {
      try {
        await this.#connect({});
      } catch {
        throw new SourceLost('gone when it was fetched again');
      }
      if (reading !== this.#reading) this.#dropConnection();
    }
    for (;;) {
      still();
      let chunk: Bytes | undefined;
      try {
        chunk = await this.#download?.next();
      } catch {
        if (reading === this.#reading) this.#dropConnection();
        throw new SourceLost('the connection broke, stalled or went past its limit');
      }
      still();
      if (chunk === undefined) return;
      yield chunk;
    }
  }

  /** Ends the reading under way; what is not held whole will be fetched again. */
  interrupt(): void {
    if (!this.#wanted) return;
    this.#reading++;
    this.#wanted = false;
    this.#broken = false;
    this.#filling = undefined;
    this.#dropConnection();
    if (!this.#complete) this.#forget();
  }

  /** Gives the connection and the memory back. Safe to call twice. */
  release(): void {
    this.#reading++;
    this.#abort.abort();
    this.#dropConnection();
    this.#forget();
    this.#complete = false;
  }

  /** Asks whether what is known is still so, and takes it then; else the connection is that of the new content. */
  async #unchanged(known: CachedSource): Promise<boolean> {
    const response = await this.#connect(conditions(known));
    if (response.status !== 304) return false;
    this.#dropConnection();
    if (response.url !== known.finalUrl) {
      await this.#connect({});
      return false;
    }
    this.#kind = known.kind;
    this.#chunks = known.chunks;
    this.#complete = true;
    return true;
  }

  async #connect(headers: Readonly<Record<string, string>>): Promise<GetResponse> {
    this.#broken = false;
    this.#download = await Download.open({ outbound: this.#outbound, url: this.#url, signal: this.#abort.signal }, headers);
    return this.#download.response;
  }

  async #recognise(): Promise<void> {
    const { kind, head, ended } = await recognise(async () => {
      const chunk = await this.#download?.next();
      if (chunk !== undefined && !this.#keep(chunk.length)) throw new Refusal('preparation_failed', true);
      return chunk;
    });
    this.#kind = kind;
    this.#chunks = [head];
    if (ended) this.#completed();
  }

  async #fill(first: boolean): Promise<void> {
    while (!this.#complete && !this.#wanted && this.#heldBytes <= SOURCE_HELD_MAX_BYTES) {
      const download = this.#download;
      const chunk = await download?.next();
      if (this.#abort.signal.aborted || this.#download !== download) return;
      if (chunk === undefined) {
        this.#completed();
        return;
      }
      this.#chunks = [...this.#chunks, chunk];
      if (!this.#keep(chunk.length)) break;
    }
    if (this.#complete || this.#wanted || first) return;
    this.#dropConnection();
    this.#forget();
  }

  #completed(): void {
    const response = this.#download?.response;
    this.#complete = true;
    this.#dropConnection();
    if (response === undefined) return;
    if (!mayKeep(response.headers)) {
      this.#cache.delete(this.#url);
      return;
    }
    this.#cache.set(this.#url, {
      kind: this.#kind,
      chunks: this.#chunks,
      bytes: this.#heldBytes,
      finalUrl: response.url,
      etag: response.headers.get('etag') ?? undefined,
      lastModified: response.headers.get('last-modified') ?? undefined,
    });
  }

  #keep(bytes: number): boolean {
    if (!this.#held.take(bytes)) return false;
    this.#heldBytes += bytes;
    return true;
  }

  #dropConnection(): void {
    this.#download?.close();
    this.#download = undefined;
  }

  #forget(): void {
    this.#chunks = [];
    this.#held.give(this.#heldBytes);
    this.#heldBytes = 0;
  }
}
