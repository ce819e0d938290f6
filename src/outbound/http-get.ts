/**
 * GET for audio: over the screened socket itself, so that the body is read only as fast as it is wanted (the far end's
 * socket is held back, nothing is buffered here) and the answers of streaming servers are understood. Redirects are
 * followed by hand, each hop screened like the first.
 */
import type { Socket } from 'node:net';
import { HTTP_BODY_TURN_MAX_BYTES, HTTP_INTERIM_RESPONSES_MAX } from '../limits.ts';
import type { ConnectRequest } from './connect.ts';
import {
  BodyReader,
  type Framing,
  framingOf,
  headEnd,
  MalformedResponse,
  mayBeResponse,
  parseHead,
  type ResponseHead,
} from './http-response.ts';
import { OutboundError } from './outbound.ts';

export interface GetRequest {
  readonly url: string;
  /** What the connection is for, which rests between look-ups (`LookUpRests`). Absent: the platform itself. */
  readonly owner?: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds for lookup, TCP and TLS of each hop. */
  readonly connectTimeoutMs: number;
  /** Milliseconds from the request to the end of the response's head, for each hop. */
  readonly responseTimeoutMs: number;
  /** Redirects to follow; one more is `rejected`. */
  readonly redirects: number;
  /** Ends the request, or the reading of its body, at any time. */
  readonly signal?: AbortSignal;
}

export interface IncomingBody {
  /**
   * The next bytes; undefined at the end. One call at a time. Rejects with `OutboundError`: unreachable where the
   * connection broke before the end, invalid_response where it is no HTTP any more.
   */
  read(): Promise<Uint8Array | undefined>;
  /** Closes the connection. A `read` under way rejects. Safe to call twice. */
  close(): void;
}

export interface GetResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly framing: Framing['by'];
  /** The URL of the hop that answered. */
  readonly url: string;
  /** Must be read to its end or closed. */
  readonly body: IncomingBody;
}

type Connect = (request: ConnectRequest) => Promise<Socket>;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Rejects with `OutboundError` only. `check` refuses what is no URL of ours. */
export async function httpGet(
  request: GetRequest,
  connect: Connect,
  check: (text: string, base?: URL) => URL,
): Promise<GetResponse> {
  let url = check(request.url);
  let status: number | undefined;
  try {
    for (let hop = 0; ; hop++) {
      const response = await once(url, request, connect);
      const location = response.headers.get('location');
      if (!REDIRECTS.has(response.status) || location === null) return response;
      response.body.close();
      status = response.status;
      if (hop >= request.redirects) throw new OutboundError('rejected', 'too many redirects');
      url = check(encoded(location), url);
    }
  } catch (error) {
    throw error instanceof OutboundError && status !== undefined
      ? new OutboundError(error.failure, error.message, status)
      : error;
  }
}

/** Encodes the bytes that some servers leave as they are: a URI reference is of ASCII (RFC 9110 §10.2.2). */
const encoded = (location: string): string =>
  location.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);

async function once(url: URL, request: GetRequest, connect: Connect): Promise<GetResponse> {
  const tls = url.protocol === 'https:';
  const socket = await connect({
    hostname: url.hostname,
    ...(request.owner === undefined ? {} : { owner: request.owner }),
    port: url.port === '' ? (tls ? 443 : 80) : Number(url.port),
    tls,
    timeoutMs: request.connectTimeoutMs,
    ...(request.signal === undefined ? {} : { signal: request.signal }),
  });
  const body = new SocketBody(socket, request.signal);
  const timer = setTimeout(() => body.fail(new OutboundError('timeout', 'no response in time')), request.responseTimeoutMs);
  try {
    const fields = {
      host: url.host,
      'user-agent': 'Sidetone',
      'accept-encoding': 'identity',
      ...request.headers,
      connection: 'close',
    };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    // A field's byte is a character here: what another answer gave goes back as it came.
    socket.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1');
    const head = await body.head();
    return { status: head.status, headers: head.headers, framing: body.framing, url: url.href, body };
  } catch (error) {
    body.close();
    throw asOutbound(error);
  } finally {
    clearTimeout(timer);
  }
}

const asOutbound = (error: unknown): OutboundError => {
  if (error instanceof OutboundError) return error;
  if (error instanceof MalformedResponse) return new OutboundError('invalid_response', error.message);
  return new OutboundError('unreachable', 'the connection failed');
};

/** A socket that is read on demand: it is paused whenever a chunk is here that nobody has asked for. */
class SocketBody implements IncomingBody {
  readonly #socket: Socket;
  readonly #signal: AbortSignal | undefined;
  readonly #abort = () => this.fail(new OutboundError('timeout', 'given up'));
  #chunks: Uint8Array[] = [];
  /** The first of them is the rest of one of which a part was taken in this turn. */
  #cut = false;
  #ended = false;
  #error: OutboundError | undefined;
  #wake: (() => void) | undefined;
  #reader: BodyReader | undefined;
  #framing: Framing = { by: 'close' };

  constructor(socket: Socket, signal: AbortSignal | undefined) {
    this.#socket = socket;
    this.#signal = signal;
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length)); // a view: a copy costs new pages
      socket.pause();
      this.#turn();
    });
    socket.on('end', () => this.#over(undefined));
    socket.on('close', () => this.#over(undefined));
    socket.on('error', (error: Error & { code?: string }) =>
      this.#over(new OutboundError('unreachable', error.code ?? 'the connection broke')),
    );
    if (signal?.aborted === true) this.#abort();
    else signal?.addEventListener('abort', this.#abort, { once: true });
  }

  get framing(): Framing['by'] {
    return this.#framing.by;
  }

  /** Reads to the end of the head, past interim responses. */
  async head(): Promise<ResponseHead> {
    let held = new Uint8Array(0);
    for (let interim = 0; ; ) {
      const end = headEnd(held);
      if (end !== undefined) {
        const head = parseHead(held.subarray(0, end));
        held = held.slice(end);
        if (head.status < 200) {
          if (++interim > HTTP_INTERIM_RESPONSES_MAX) throw new MalformedResponse('interim responses that do not end');
          continue;
        }
        this.#framing = framingOf(head);
        // A length that is told twice is told once, and one that does not count is not told (RFC 9112 §6.3).
        if (this.#framing.by === 'length') head.headers.set('content-length', String(this.#framing.bytes));
        else head.headers.delete('content-length');
        this.#reader = new BodyReader(this.#framing);
        this.#chunks.unshift(held);
        return head;
      }
      const chunk = await this.#chunk();
      if (chunk === undefined)
        throw held.length === 0
          ? new OutboundError('unreachable', 'closed without an answer')
          : new MalformedResponse('an answer cut short');
      const longer = new Uint8Array(held.length + chunk.length);
      longer.set(held);
      longer.set(chunk, held.length);
      held = longer;
      if (!mayBeResponse(held)) throw new MalformedResponse('no HTTP');
    }
  }

  async read(): Promise<Uint8Array | undefined> {
    const reader = this.#reader;
    if (reader === undefined) throw new OutboundError('invalid_response', 'no head');
    try {
      for (;;) {
        if (reader.ended) {
          this.close();
          return undefined;
        }
        const chunk = await this.#piece();
        if (chunk === undefined) {
          if (reader.wholeAtClose) return undefined;
          throw new OutboundError('unreachable', 'the connection ended before the body did');
        }
        const parts = reader.take(chunk).filter((part) => part.length > 0);
        const [only] = parts;
        if (only === undefined) continue;
        return parts.length === 1 ? only : new Uint8Array(Buffer.concat(parts));
      }
    } catch (error) {
      this.close();
      throw asOutbound(error);
    }
  }

  close(): void {
    this.fail(new OutboundError('unreachable', 'closed here'));
  }

  /** Ends the reading; the first reason counts. */
  fail(error: OutboundError): void {
    this.#chunks = [];
    this.#over(error);
  }

  /**
   * Returns what came. Of a chunked body it returns no more in one turn of the event loop than the budget, because tiny
   * chunks cost much for each byte.
   */
  async #piece(): Promise<Uint8Array | undefined> {
    if (this.#cut) await new Promise(setImmediate);
    this.#cut = false;
    const chunk = await this.#chunk();
    if (chunk === undefined || this.#framing.by !== 'chunked' || chunk.length <= HTTP_BODY_TURN_MAX_BYTES) return chunk;
    this.#chunks.unshift(chunk.subarray(HTTP_BODY_TURN_MAX_BYTES));
    this.#cut = true;
    return chunk.subarray(0, HTTP_BODY_TURN_MAX_BYTES);
  }

  async #chunk(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) return chunk;
      if (this.#error !== undefined) throw this.#error;
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        this.#socket.resume();
      });
    }
  }

  #turn(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  #over(error: OutboundError | undefined): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#socket.destroy();
    this.#turn();
  }
}
