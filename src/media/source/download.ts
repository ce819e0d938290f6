/**
 * One download of one URL. It is read only as fast as it is wanted, and servers tire of a download that is read at the
 * pace of speech: where the connection breaks, the rest is asked for (RFC 9110 §14.2), so that whoever reads sees one
 * body without a seam.
 */

import { withTimeLimit } from '../../bounds/time-limit.ts';
import { type Clock, systemClock } from '../../clock.ts';
import {
  SOURCE_FIRST_BYTE_MS,
  SOURCE_LEAST_BYTES,
  SOURCE_LEAST_MS,
  SOURCE_MAX_BYTES,
  SOURCE_RESUME_LEAST_BYTES,
  SOURCE_STALL_MS,
} from '../../limits.ts';
import type { GetResponse, IncomingBody } from '../../outbound/http-get.ts';
import { INFLATE_STEP_BYTES, Inflater, mayBeDeflated } from './inflater.ts';
import { type AudioOutbound, Refusal, refusalOf, requestAudio } from './opening.ts';

export interface DownloadTarget {
  readonly outbound: AudioOutbound;
  readonly url: string;
  /** The bytes that are asked for; undefined: all. More may come, where all begins where the part does. */
  readonly part?: { readonly from: number; readonly bytes: number } | undefined;
  /** Ends the request, or the reading of its body, at any time. */
  readonly signal: AbortSignal;
  /** The most that is read, packed and unpacked; a live stream has no such limit. */
  readonly maxBytes?: number;
  /** This exists for tests. */
  readonly clock?: Clock;
}

const system = systemClock();

const CODINGS = new Set(['gzip', 'x-gzip', 'deflate']);

export class Download {
  /** The first answer. Its validators and fields hold for the whole, however often the rest was asked for. */
  readonly response: GetResponse;
  readonly #target: DownloadTarget;
  readonly #maxBytes: number;
  /** The content coding of the body. Undefined when there is none, or once the bytes tell otherwise. */
  #coding: string | undefined;
  #inflater: Inflater | undefined;
  /** Coded bytes that wait to be inflated. */
  #coded: Uint8Array = new Uint8Array(0);
  #unpacked = 0;
  #body: IncomingBody;
  #read = 0;
  /** The byte of the resource at which the first answer begins. */
  readonly #from: number;
  /** The bytes from there to the end, where the first answer told the length of the whole. */
  readonly #total: number | undefined;
  /** The first byte from which the rest may be asked for: a server that gives crumbs is not asked for each of them. */
  #resumableFrom: number;
  #closed = false;
  /** The milliseconds that bytes were waited for, and the bytes that came meanwhile, since the rate was last judged. */
  #waitedMs = 0;
  #cameBytes = 0;

  private constructor(target: DownloadTarget, response: GetResponse, coding: string | undefined) {
    this.#target = target;
    this.#maxBytes = target.maxBytes ?? SOURCE_MAX_BYTES;
    this.#coding = coding;
    this.response = response;
    this.#body = response.body;
    this.#from = response.status === 206 ? (target.part?.from ?? 0) : 0;
    const range = /^bytes 0-\d+\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1];
    const total = response.status === 206 ? range : response.headers.get('content-length');
    this.#total = total === undefined || total === null || target.part !== undefined ? undefined : Number(total);
    this.#resumableFrom = this.#from + 1;
  }

  /**
   * Asks for the URL. `headers` may make the request conditional. Rejects with `Refusal`, also where the length is over
   * the limit, and where a part is asked for and the answer begins elsewhere.
   */
  static async open(target: DownloadTarget, headers: Readonly<Record<string, string>>): Promise<Download> {
    const { part } = target;
    const asked = part === undefined ? headers : { ...headers, range: `bytes=${part.from}-${part.from + part.bytes - 1}` };
    const response = await requestAudio(target.outbound, target.url, asked, target.signal);
    const coding = response.headers.get('content-encoding')?.trim().toLowerCase() ?? '';
    const refuse = (reason: 'rejected' | 'unsupported') => {
      response.body.close();
      throw new Refusal(reason, false, response.status);
    };
    if (part !== undefined && !begins(response, part.from)) refuse('unsupported');
    if (Number(response.headers.get('content-length') ?? 0) > (target.maxBytes ?? SOURCE_MAX_BYTES)) refuse('rejected');
    if (coding !== '' && coding !== 'identity' && !CODINGS.has(coding)) refuse('unsupported');
    return new Download(target, response, CODINGS.has(coding) ? coding : undefined);
  }

  /** Whether what is read is unpacked from what comes. */
  get isCoded(): boolean {
    return this.#coding !== undefined;
  }

  /**
   * The next bytes; undefined at the end. One call at a time. Rejects where the download breaks and cannot be resumed,
   * stalls for `SOURCE_STALL_MS`, drips (`SOURCE_LEAST_BYTES`), is closed, or goes past its limit.
   */
  async next(): Promise<Uint8Array | undefined> {
    if (this.#coding === undefined && this.#coded.length === 0) return await this.#raw();
    for (;;) {
      if (this.#coded.length === 0) {
        const coded = await this.#raw();
        if (coded === undefined) return undefined;
        this.#coded = coded;
      }
      if (this.#inflater === undefined && !mayBeDeflated(this.#coded)) {
        const plain = this.#coded;
        this.#coded = new Uint8Array(0);
        this.#coding = undefined;
        return plain;
      }
      const bytes = await this.#inflate();
      if (bytes === undefined || bytes.length > 0) return bytes;
    }
  }

  /**
   * Leaves the next bytes out, by asking for the rest. False: the server gives no parts of what it has, or not now;
   * then nothing has changed. It is not called while a `next` is under way.
   */
  async leaveOut(bytes: number): Promise<boolean> {
    if (this.#coding !== undefined || (this.#total ?? Infinity) <= this.#read + bytes) return false;
    const before = this.#body;
    if (!(await this.#askFrom(this.#from + this.#read + bytes))) return false;
    before.close();
    this.#read += bytes;
    return true;
  }

  /** Closes the connection. Safe to call twice; a `next` under way rejects. */
  close(): void {
    this.#closed = true;
    this.#body.close();
    this.#inflater?.close();
  }

  /** Inflates a step; undefined where the coding is damaged from here on. */
  async #inflate(): Promise<Uint8Array | undefined> {
    this.#inflater ??= new Inflater();
    const step = this.#coded.subarray(0, INFLATE_STEP_BYTES);
    this.#coded = this.#coded.subarray(step.length);
    const bytes = await this.#inflater.push(step).catch(() => undefined);
    if (this.#closed) throw new Refusal('unreachable', true, this.response.status);
    this.#unpacked += bytes?.length ?? 0;
    if (this.#unpacked > this.#maxBytes) throw new Refusal('rejected', false, this.response.status);
    return bytes;
  }

  /** The next bytes as they came. */
  async #raw(): Promise<Uint8Array | undefined> {
    const { clock = system } = this.#target;
    for (;;) {
      const body = this.#body;
      const began = clock.now();
      let value: Uint8Array | undefined;
      try {
        const late = () => {
          body.close();
          throw new Refusal('timeout', true, this.response.status);
        };
        value = await withTimeLimit<Uint8Array | undefined>(
          body.read(),
          this.#read === 0 ? SOURCE_FIRST_BYTE_MS : SOURCE_STALL_MS,
          late,
          clock,
        );
      } catch (error) {
        if (!(await this.#resume())) throw refusalOf(error, this.response.status);
        continue;
      }
      if (value === undefined) {
        if (this.#read >= (this.#total ?? 0)) return undefined;
        if (await this.#resume()) continue;
        throw new Refusal('unreachable', true, this.response.status);
      }
      this.#read += value.length;
      if (this.#read > this.#maxBytes) throw new Refusal('rejected', false, this.response.status);
      this.#judge(clock.now() - began, value.length);
      return value;
    }
  }

  /** Rejects a source that drips. It is not asked for the rest: it would drip that, too. */
  #judge(waitedMs: number, bytes: number): void {
    this.#waitedMs += waitedMs;
    this.#cameBytes += bytes;
    if (this.#waitedMs < SOURCE_LEAST_MS) return;
    if (this.#cameBytes < SOURCE_LEAST_BYTES) {
      this.#body.close();
      throw new Refusal('timeout', true, this.response.status);
    }
    this.#waitedMs = 0;
    this.#cameBytes = 0;
  }

  /** Asks for the rest. */
  async #resume(): Promise<boolean> {
    return await this.#askFrom(this.#from + this.#read);
  }

  /** Reads from that byte on, where the server can tell that the content is still the same. */
  async #askFrom(at: number): Promise<boolean> {
    const { headers, status } = this.response;
    const validator = headers.get('etag') ?? headers.get('last-modified') ?? undefined;
    const ranges = headers.get('accept-ranges') === 'bytes' || status === 206;
    if (this.#closed || !ranges || at < this.#resumableFrom) return false;
    if (validator === undefined || validator.startsWith('W/')) return false;
    const { outbound, url, signal } = this.#target;
    const range = { range: `bytes=${at}-`, 'if-range': validator };
    const rest = await requestAudio(outbound, url, range, signal).catch(() => undefined);
    if (rest === undefined) return false;
    if (rest.status !== 206 || !begins(rest, at) || !this.#isRest(rest) || this.#closed) {
      rest.body.close();
      return false;
    }
    this.#resumableFrom = at + SOURCE_RESUME_LEAST_BYTES;
    this.#body = rest.body;
    return true;
  }

  /** Whether a part is of the content that the first answer began. Some servers do not know `If-Range`. */
  #isRest({ headers }: GetResponse): boolean {
    const first = this.response.headers;
    const names = ['content-encoding', first.has('etag') ? 'etag' : 'last-modified'];
    const length = headers.get('content-range')?.split('/')[1] ?? '*';
    const isAsLong = length === '*' || this.#total === undefined || Number(length) === this.#total;
    return isAsLong && names.every((name) => !headers.has(name) || headers.get(name) === first.get(name));
  }
}

/** Whether an answer begins at that byte of its resource. */
function begins({ status, headers }: GetResponse, at: number): boolean {
  return status === 206 ? headers.get('content-range')?.startsWith(`bytes ${at}-`) === true : at === 0;
}
