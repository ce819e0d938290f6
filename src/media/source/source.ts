/**
 * One URL of a playlist. It is opened at admission, up to its first audio. A small one is then held in memory whole; of a large one the first
 * keeps its connection (read only as fast as it is heard), and a later one is let go and fetched again at its turn, because no server holds
 * an idle connection for the minutes that the sources before it play.
 */
import { SOURCE_HELD_MAX_BYTES, SOURCE_HELD_TOTAL_MAX_BYTES, SOURCE_MAX_BYTES, SOURCE_STALL_MS } from '../../limits.ts';
import type { GetResponse, IncomingBody } from '../../outbound/http-get.ts';
import type { SourceDetail } from '../../problem.ts';
import type { SourceKind } from '../decode/decode-worker.ts';
import { type AudioOutbound, Refusal, recognise, requestAudio, within } from './opening.ts';
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
  #read = 0;
  #response: GetResponse | undefined;
  /** The rest of the body, while its connection is kept. */
  #body: IncomingBody | undefined;
  #complete = false;
  #filling: Promise<void> | undefined;
  /** Somebody reads `bytes`: filling is no longer ahead of need, and a break is heard. */
  #wanted = false;
  #broken = false;
  #reading = 0;
  /** The byte at which the download was last taken up again. */
  #resumedAt = 0;

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
    const body = this.#body;
    this.#filling = this.#fill(first).catch(() => {
      if (this.#body !== body) return; // read from elsewhere by now
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
    if (this.#body === undefined) {
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
        chunk = await this.#next();
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
    const response = await requestAudio(this.#outbound, this.#url, headers, this.#abort.signal);
    this.#read = 0;
    this.#resumedAt = 0;
    this.#response = response;
    this.#body = response.body;
    if (Number(response.headers.get('content-length') ?? 0) > SOURCE_MAX_BYTES) {
      this.#dropConnection();
      throw new Refusal('rejected', false, response.status);
    }
    return response;
  }

  async #recognise(): Promise<void> {
    const { kind, head, ended } = await recognise(async () => {
      const chunk = await this.#next();
      if (chunk !== undefined && !this.#keep(chunk.length)) throw new Refusal('preparation_failed', true);
      return chunk;
    });
    this.#kind = kind;
    this.#chunks = [head];
    if (ended) this.#completed();
  }

  async #fill(first: boolean): Promise<void> {
    while (!this.#complete && !this.#wanted && this.#heldBytes <= SOURCE_HELD_MAX_BYTES) {
      const body = this.#body;
      const chunk = await this.#next();
      if (this.#abort.signal.aborted || this.#body !== body) return;
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
    const response = this.#response;
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

  /** The next piece of the body; undefined at its end. Rejects where it breaks, stalls, or goes past the limit. */
  async #next(): Promise<Bytes | undefined> {
    const body = this.#body;
    if (body === undefined) return undefined;
    const late = () => new Refusal('timeout', true, 200);
    let value: Bytes | undefined;
    try {
      value = await within(body.read(), SOURCE_STALL_MS, () => body.close(), late);
    } catch (error) {
      if (this.#body !== body || !(await this.#resume())) throw error;
      return await this.#next();
    }
    if (value === undefined) return undefined;
    this.#read += value.length;
    if (this.#read > SOURCE_MAX_BYTES) throw new Refusal('rejected', false, 200);
    return value;
  }

  /**
   * Asks for the rest after a break (RFC 9110 §14.2): servers tire of a download that is read at the pace of speech. Not twice at the same byte, and
   * only of the same content.
   */
  async #resume(): Promise<boolean> {
    const broken = this.#response;
    const at = this.#read;
    const validator = broken?.headers.get('etag') ?? broken?.headers.get('last-modified') ?? undefined;
    const ranges = broken?.headers.get('accept-ranges') === 'bytes' || broken?.status === 206;
    if (!ranges || validator === undefined || validator.startsWith('W/') || at <= this.#resumedAt) return false;
    this.#resumedAt = at;
    const before = this.#body;
    const rest = await requestAudio(
      this.#outbound,
      this.#url,
      { range: `bytes=${at}-`, 'if-range': validator },
      this.#abort.signal,
    ).catch(() => undefined);
    if (rest === undefined) return false;
    if (rest.status !== 206 || rest.headers.get('content-range')?.startsWith(`bytes ${at}-`) !== true || this.#body !== before) {
      rest.body.close();
      return false;
    }
    this.#response = rest;
    this.#body = rest.body;
    return true;
  }

  #keep(bytes: number): boolean {
    if (!this.#held.take(bytes)) return false;
    this.#heldBytes += bytes;
    return true;
  }

  #dropConnection(): void {
    this.#body?.close();
    this.#body = undefined;
  }

  #forget(): void {
    this.#chunks = [];
    this.#held.give(this.#heldBytes);
    this.#heldBytes = 0;
  }
}
