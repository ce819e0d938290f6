/**
 * An HTTP/1 response as it comes out of a socket (RFC 9112), and what old streaming servers send for one:
 *
 *   HTTP/1.1 200 OK | ICY 200 OK      status line
 *   name: value …                     head, ended by an empty line (a bare LF will do)
 *   length | chunked | until close    body (§6.3)
 *
 * Pure: bytes in, bytes out. Left out: obsolete line folding (refused), trailers (read and dropped), content codings
 * (the caller's to refuse).
 */
import { HTTP_CHUNK_LINE_MAX_BYTES, HTTP_RESPONSE_HEAD_MAX_BYTES } from '../limits.ts';

export interface ResponseHead {
  readonly status: number;
  readonly headers: Headers;
}

/** The way in which the end of a body is told. */
export type Framing = { readonly by: 'length'; readonly bytes: number } | { readonly by: 'chunked' } | { readonly by: 'close' };

/** The bytes that came are no HTTP. */
export class MalformedResponse extends Error {
  override readonly name = 'MalformedResponse';
}

const LF = 10;

/**
 * Finds the end of the head, after its empty line. Undefined while it has not come. Throws `MalformedResponse` past the
 * limit.
 */
export function headEnd(bytes: Uint8Array): number | undefined {
  for (let at = bytes.indexOf(LF); at !== -1 && at < HTTP_RESPONSE_HEAD_MAX_BYTES; at = bytes.indexOf(LF, at + 1)) {
    if (bytes[at + 1] === LF) return at + 2;
    if (bytes[at + 1] === 13 && bytes[at + 2] === LF) return at + 3;
  }
  if (bytes.length >= HTTP_RESPONSE_HEAD_MAX_BYTES) throw new MalformedResponse('a head that does not end');
  return undefined;
}

/** Whether the first bytes can still become a status line. */
export function mayBeResponse(bytes: Uint8Array): boolean {
  const text = latin1(bytes.subarray(0, 7));
  return ['HTTP/1.', 'ICY '].some((start) => start.startsWith(text) || text.startsWith(start));
}

const STATUS_LINE = /^(?:HTTP\/1\.[0-9]|ICY) +([1-5][0-9][0-9])(?: [^\r\n]*)?$/;
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Parses a head, the bytes up to `headEnd`. Lines that are no fields are left out. Throws `MalformedResponse`. */
export function parseHead(bytes: Uint8Array): ResponseHead {
  const [first = '', ...lines] = latin1(bytes).split(/\r?\n/);
  const status = STATUS_LINE.exec(first)?.[1];
  if (status === undefined) throw new MalformedResponse('no status line');
  const headers = new Headers();
  for (const line of lines) {
    // RFC 9112 §2.2: a CR that does not end a line makes a response invalid.
    if (line.includes('\r')) throw new MalformedResponse('a CR within a line');
    if (/^[ \t]/.test(line)) throw new MalformedResponse('a folded line');
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).trimEnd();
    // Streaming servers write field names with blanks in them; what is not a field is not needed. Cut by hand: a
    // pattern with blanks on both sides of the value took minutes for a line of 20,000 blanks.
    if (FIELD_NAME.test(name) && !line.includes('\0')) headers.append(name, line.slice(colon + 1));
  }
  return { status: Number(status), headers };
}

/** RFC 9112 §6.3, for the answer to a GET. */
export function framingOf({ status, headers }: ResponseHead): Framing {
  if (status < 200 || status === 204 || status === 304) return { by: 'length', bytes: 0 };
  const coding = headers.get('transfer-encoding');
  if (coding !== null) {
    if (coding.toLowerCase() !== 'chunked') throw new MalformedResponse('an unknown transfer coding');
    return { by: 'chunked' };
  }
  const length = headers.get('content-length');
  if (length === null) return { by: 'close' };
  const values = new Set(length.split(',').map((value) => value.trim()));
  const [only = ''] = values;
  if (values.size !== 1 || !/^[0-9]{1,15}$/.test(only)) throw new MalformedResponse('a length that is none');
  return { by: 'length', bytes: Number(only) };
}

/** The body inside what a socket gives. */
export class BodyReader {
  readonly #framing: Framing;
  #left: number;
  #line = '';
  #part: 'size' | 'data' | 'data end' | 'trailer' = 'size';
  #ended: boolean;

  constructor(framing: Framing) {
    this.#framing = framing;
    this.#left = framing.by === 'length' ? framing.bytes : 0;
    this.#ended = framing.by === 'length' && framing.bytes === 0;
  }

  /** The last byte of the body has been given. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The connection is closed: whether the body was whole. */
  get wholeAtClose(): boolean {
    return this.#ended || this.#framing.by === 'close';
  }

  /** The body's bytes among `bytes`; what follows the body is dropped. Throws `MalformedResponse`. */
  take(bytes: Uint8Array): Uint8Array[] {
    if (this.#framing.by === 'close') return [bytes];
    if (this.#framing.by === 'length') {
      const part = bytes.subarray(0, this.#left);
      this.#left -= part.length;
      this.#ended = this.#left === 0;
      return [part];
    }
    return this.#unchunk(bytes);
  }

  /** RFC 9112 §7.1. */
  #unchunk(bytes: Uint8Array): Uint8Array[] {
    const parts: Uint8Array[] = [];
    for (let at = 0; at < bytes.length && !this.#ended; ) {
      if (this.#part === 'data') {
        const part = bytes.subarray(at, at + this.#left);
        parts.push(part);
        at += part.length;
        this.#left -= part.length;
        if (this.#left === 0) this.#part = 'data end';
        continue;
      }
      const end = bytes.indexOf(LF, at);
      this.#line += latin1(bytes.subarray(at, end === -1 ? bytes.length : end));
      if (this.#line.length > HTTP_CHUNK_LINE_MAX_BYTES) throw new MalformedResponse('a chunk line that does not end');
      if (end === -1) break;
      at = end + 1;
      const line = this.#line.replace(/\r$/, '');
      this.#line = '';
      this.#lineEnds(line);
    }
    return parts;
  }

  #lineEnds(line: string): void {
    if (this.#part === 'trailer') {
      this.#ended = line === '';
    } else if (this.#part === 'data end') {
      if (line !== '') throw new MalformedResponse('a chunk longer than its size');
      this.#part = 'size';
    } else {
      const size = /^([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?$/.exec(line)?.[1];
      if (size === undefined) throw new MalformedResponse('a chunk without a size');
      this.#left = Number.parseInt(size, 16);
      this.#part = this.#left === 0 ? 'trailer' : 'data';
    }
  }
}

const latin1 = (bytes: Uint8Array): string => {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
};
