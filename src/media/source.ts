/**
 * One URL of a playlist. It is opened at admission, up to its first audio. A small one is then held in memory whole; of a large one the first
 * keeps its connection (read only as fast as it is heard), and a later one is let go and fetched again at its turn, because no server holds
 * an idle connection for the minutes that the sources before it play.
 */
import {
  SOURCE_FIRST_BYTE_MS,
  SOURCE_HEAD_MAX_BYTES,
  SOURCE_HELD_MAX_BYTES,
  SOURCE_HELD_TOTAL_MAX_BYTES,
  SOURCE_MAX_BYTES,
  SOURCE_REDIRECTS_MAX,
  SOURCE_STALL_MS,
} from '../limits.ts';
import { type Outbound, OutboundError, type OutboundFailure } from '../outbound/outbound.ts';
import type { SourceDetail, SourceReason } from '../problem.ts';
import type { SourceKind } from './decode-worker.ts';
import { native } from './native.ts';
import { sniff } from './sniff.ts';

type Bytes = Uint8Array<ArrayBufferLike>;

/** The source was admitted and then failed: its connection, its size or its content. */
export class SourceLost extends Error {
  override readonly name = 'SourceLost';
}

/** Why a source was not admitted. */
class Refusal extends Error {
  readonly detail: SourceDetail;
  constructor(reason: SourceReason, retryable: boolean, upstreamStatus?: number) {
    super(reason);
    this.detail = { reason, retryable, ...(upstreamStatus === undefined ? {} : { upstream_status: upstreamStatus }) };
  }
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

const FAILURE: Readonly<Record<OutboundFailure, readonly [SourceReason, boolean]>> = {
  rejected: ['rejected', false],
  timeout: ['timeout', true],
  unreachable: ['unreachable', true],
  dns: ['unreachable', true],
  tls: ['unreachable', true],
  invalid_response: ['invalid_response', false],
};

/** Contract §3, `detail.reason`, for an answer that is not 200. */
function refusalOfStatus(status: number): Refusal {
  if (status === 404 || status === 410) return new Refusal('not_found', false, status);
  if (status === 401 || status === 403) return new Refusal('access_denied', false, status);
  if (status >= 500) return new Refusal('invalid_response', true, status);
  if (status >= 400) return new Refusal('rejected', false, status);
  return new Refusal('invalid_response', false, status);
}

export class Source {
  readonly #outbound: Outbound;
  readonly #url: string;
  readonly #held: HeldBytes;
  readonly #abort = new AbortController();
  #kind: SourceKind = 'wav';
  #chunks: Bytes[] = [];
  #heldBytes = 0;
  #read = 0;
  /** The rest of the body, while its connection is kept. */
  #reader: ReadableStreamDefaultReader<Bytes> | undefined;
  #complete = false;
  #filling: Promise<void> | undefined;
  /** Somebody reads `bytes`: filling is no longer ahead of need, and a break is heard. */
  #wanted = false;
  #broken = false;

  constructor(outbound: Outbound, url: string, held: HeldBytes) {
    this.#outbound = outbound;
    this.#url = url;
    this.#held = held;
  }

  get kind(): SourceKind {
    return this.#kind;
  }

  /** Opens the source up to its first audio. Undefined where it is admitted. */
  async admit(signal: AbortSignal): Promise<SourceDetail | undefined> {
    const cancel = () => this.#abort.abort();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      await this.#connect();
      await this.#sniff();
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
    this.#filling = this.#fill(first).catch(() => {
      this.#dropConnection();
      if (this.#wanted) this.#broken = true;
      else this.#forget(); // fetched again at its turn; what it then says decides
    });
  }

  /** The file's bytes from its start. Each use after the first reads memory or fetches again. Throws `SourceLost`. */
  async *bytes(): AsyncGenerator<Bytes> {
    this.#wanted = true; // what is being filled is heard as it comes
    let told = 0;
    const untold = () => this.#chunks[told++];
    for (let chunk = untold(); chunk !== undefined; chunk = untold()) yield chunk;
    told--;
    await this.#filling;
    this.#filling = undefined;
    for (let chunk = untold(); chunk !== undefined; chunk = untold()) yield chunk;
    if (this.#complete) return;
    if (this.#broken) throw new SourceLost('the connection broke or stalled');
    this.#forget();
    if (this.#reader === undefined) {
      try {
        await this.#connect();
      } catch {
        throw new SourceLost('gone when it was fetched again');
      }
    }
    for (;;) {
      let chunk: Bytes | undefined;
      try {
        chunk = await this.#next();
      } catch {
        this.#dropConnection();
        throw new SourceLost('the connection broke, stalled or went past its limit');
      }
      if (chunk === undefined) return;
      yield chunk;
    }
  }

  /** Gives the connection and the memory back. Safe to call twice. */
  release(): void {
    this.#abort.abort();
    this.#dropConnection();
    this.#forget();
    this.#complete = false;
  }

  async #connect(): Promise<void> {
    this.#broken = false;
    const response = await this.#outbound
      .fetch({
        url: this.#url,
        method: 'GET',
        headers: { accept: 'audio/wav, audio/mpeg, audio/*;q=0.9, */*;q=0.1' },
        responseTimeoutMs: SOURCE_FIRST_BYTE_MS,
        redirects: SOURCE_REDIRECTS_MAX,
        signal: this.#abort.signal,
      })
      .catch((error: unknown) => {
        if (error instanceof OutboundError) throw new Refusal(...FAILURE[error.failure]);
        throw error;
      });
    this.#read = 0;
    this.#reader = response.body?.getReader();
    if (response.status !== 200) {
      this.#dropConnection();
      throw refusalOfStatus(response.status);
    }
    if (Number(response.headers.get('content-length') ?? 0) > SOURCE_MAX_BYTES) {
      this.#dropConnection();
      throw new Refusal('rejected', false, response.status);
    }
  }

  async #sniff(): Promise<void> {
    let head = new Uint8Array(4_096);
    let length = 0;
    let lookAt = 0;
    for (;;) {
      let chunk: Bytes | undefined;
      try {
        chunk = await this.#next();
      } catch (error) {
        throw error instanceof Refusal ? error : new Refusal('unreachable', true, 200);
      }
      if (chunk !== undefined) {
        if (!this.#held.take(chunk.length)) throw new Refusal('preparation_failed', true);
        this.#heldBytes += chunk.length;
        if (length + chunk.length > head.length) {
          const longer = new Uint8Array(2 * (length + chunk.length));
          longer.set(head.subarray(0, length));
          head = longer;
        }
        head.set(chunk, length);
        length += chunk.length;
        if (length < lookAt) continue;
      }
      const found = sniff(head.subarray(0, length), chunk === undefined, native.wavProbe);
      if (found === 'unsupported' || (found === 'more' && length > SOURCE_HEAD_MAX_BYTES))
        throw new Refusal('unsupported', false, 200);
      lookAt = length * 1.25; // so that a head in crumbs is not looked through for each
      if (found === 'more') continue;
      this.#kind = found;
      this.#complete = chunk === undefined;
      this.#chunks = [head.slice(0, length)];
      return;
    }
  }

  async #fill(first: boolean): Promise<void> {
    while (!this.#complete && !this.#wanted && this.#heldBytes <= SOURCE_HELD_MAX_BYTES) {
      const chunk = await this.#next();
      if (this.#abort.signal.aborted) return;
      if (chunk === undefined) {
        this.#complete = true;
        return;
      }
      this.#chunks.push(chunk);
      if (!this.#held.take(chunk.length)) break;
      this.#heldBytes += chunk.length;
    }
    if (this.#complete || this.#wanted || first) return;
    this.#dropConnection();
    this.#forget();
  }

  /** The next piece of the body; undefined at its end. Rejects where it breaks, stalls, or goes past the limit. */
  async #next(): Promise<Bytes | undefined> {
    const reader = this.#reader;
    if (reader === undefined) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stalled = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Refusal('timeout', true, 200)), SOURCE_STALL_MS);
    });
    try {
      const { done, value } = await Promise.race([reader.read(), stalled]);
      if (done) {
        this.#reader = undefined;
        return undefined;
      }
      this.#read += value.length;
      if (this.#read > SOURCE_MAX_BYTES) throw new Refusal('rejected', false, 200);
      return value;
    } finally {
      clearTimeout(timer);
    }
  }

  #dropConnection(): void {
    this.#reader?.cancel().catch(() => {});
    this.#reader = undefined;
  }

  #giveHeld(): void {
    this.#held.give(this.#heldBytes);
    this.#heldBytes = 0;
  }

  #forget(): void {
    this.#chunks = [];
    this.#giveHeld();
  }
}
