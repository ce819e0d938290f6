/**
 * One download of one URL. It is read only as fast as it is wanted, and servers tire of a download that is read at the pace of speech: where the
 * connection breaks, the rest is asked for (RFC 9110 §14.2), so that whoever reads sees one body without a seam.
 */
import { SOURCE_MAX_BYTES, SOURCE_STALL_MS } from '../../limits.ts';
import type { GetResponse, IncomingBody } from '../../outbound/http-get.ts';
import { type AudioOutbound, Refusal, requestAudio, within } from './opening.ts';

export interface DownloadTarget {
  readonly outbound: AudioOutbound;
  readonly url: string;
  /** Ends the request, or the reading of its body, at any time. */
  readonly signal: AbortSignal;
}

export class Download {
  /** The first answer. Its validators and fields hold for the whole, however often the rest was asked for. */
  readonly response: GetResponse;
  readonly #target: DownloadTarget;
  #body: IncomingBody;
  #read = 0;
  /** The byte at which the download was last resumed. */
  #resumedAt = 0;
  #closed = false;

  private constructor(target: DownloadTarget, response: GetResponse) {
    this.#target = target;
    this.response = response;
    this.#body = response.body;
  }

  /** Asks for the URL. `headers` may make the request conditional. Rejects with `Refusal`, also where the length is over the limit. */
  static async open(target: DownloadTarget, headers: Readonly<Record<string, string>>): Promise<Download> {
    const response = await requestAudio(target.outbound, target.url, headers, target.signal);
    if (Number(response.headers.get('content-length') ?? 0) > SOURCE_MAX_BYTES) {
      response.body.close();
      throw new Refusal('rejected', false, response.status);
    }
    return new Download(target, response);
  }

  /**
   * The next bytes; undefined at the end. One call at a time. Rejects where the download breaks and cannot be resumed, stalls for
   * `SOURCE_STALL_MS`, is closed, or goes past `SOURCE_MAX_BYTES`.
   */
  async next(): Promise<Uint8Array | undefined> {
    for (;;) {
      const body = this.#body;
      let value: Uint8Array | undefined;
      try {
        value = await within(
          body.read(),
          SOURCE_STALL_MS,
          () => body.close(),
          () => new Refusal('timeout', true, 200),
        );
      } catch (error) {
        if (!(await this.#resume())) throw error;
        continue;
      }
      if (value === undefined) return undefined;
      this.#read += value.length;
      if (this.#read > SOURCE_MAX_BYTES) throw new Refusal('rejected', false, 200);
      return value;
    }
  }

  /** Closes the connection. Safe to call twice; a `next` under way rejects. */
  close(): void {
    this.#closed = true;
    this.#body.close();
  }

  /** Asks for the rest. It is not asked for twice at the same byte, and only where the server can tell that the content is still the same. */
  async #resume(): Promise<boolean> {
    const { headers } = this.response;
    const at = this.#read;
    const validator = headers.get('etag') ?? headers.get('last-modified') ?? undefined;
    if (this.#closed || headers.get('accept-ranges') !== 'bytes' || at <= this.#resumedAt) return false;
    if (validator === undefined || validator.startsWith('W/')) return false;
    this.#resumedAt = at;
    const { outbound, url, signal } = this.#target;
    const range = { range: `bytes=${at}-`, 'if-range': validator };
    const rest = await requestAudio(outbound, url, range, signal).catch(() => undefined);
    if (rest === undefined) return false;
    if (rest.status !== 206 || rest.headers.get('content-range')?.startsWith(`bytes ${at}-`) !== true || this.#closed) {
      rest.body.close();
      return false;
    }
    this.#body = rest.body;
    return true;
  }
}
