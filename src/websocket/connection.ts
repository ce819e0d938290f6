/**
 * One connection to an application's WebSocket server: opened through the screen, kept alive, read no faster than its
 * audio can be taken. The framing and the handshake are those of the package `ws`, on a socket that was connected to a
 * screened address.
 *
 *   opening ─101→ open ─close frame, keepalive, error→ closed        (each connection ends in exactly one `onFailed` or `onClosed`)
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../clock.ts';
import type { WebSocketClosed, WebSocketError, WebSocketFailure } from '../event/websocket-event.ts';
import {
  HTTP_INTERIM_RESPONSES_MAX,
  WEBSOCKET_CLOSE_WAIT_MS,
  WEBSOCKET_FRAGMENTS_MAX,
  WEBSOCKET_MESSAGE_MAX_BYTES,
  WEBSOCKET_PING_MS,
  WEBSOCKET_PINGS_MISSED_MAX,
  WEBSOCKET_SLICE_BYTES,
  WEBSOCKET_TEXT_MAX_BYTES,
  WEBSOCKET_UNREAD_MAX_BYTES,
} from '../limits.ts';
import type { Connect } from '../outbound/connect.ts';
import { OutboundError, type OutboundFailure } from '../outbound/outbound.ts';
import { type ClientOptions, WebSocket } from './ws.ts';

export interface ConnectionOptions {
  readonly url: URL;
  readonly appUuid: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly subprotocol: string | undefined;
  readonly connectTimeoutMs: number;
  readonly connect: Connect;
  readonly clock: Clock;
  /** `subprotocol` is what the server agreed to, `""` when it named none. */
  onOpen(subprotocol: string): void;
  onFailed(reason: WebSocketFailure, error: WebSocketError): void;
  /**
   * Takes audio. Returns false where there is no room now: the same bytes are offered again after `resume`, and nothing
   * is read before.
   */
  onBinary(bytes: Uint8Array): boolean;
  /** Takes a text message, under the same rule. */
  onText(text: string): boolean;
  /** Whether text messages mean anything. Where they do not they are dropped unread, whatever their length. */
  readsText(): boolean;
  onClosed(reason: WebSocketClosed, code: number): void;
}

/** A part that was read and is not taken yet: a slice of a binary message, or a text message. */
type Part = Uint8Array | string;

const NORMAL = 1000;
const PROTOCOL_ERROR = 1002;
const NO_STATUS = 1005;
const ABNORMAL = 1006;
const TOO_BIG = 1009;

/** The close code that `ws` sends for its errors (RFC 6455 §7.4.1). */
const CODE_OF_ERROR: Readonly<Record<string, number>> = {
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: TOO_BIG,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: TOO_BIG,
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
};

export class WebSocketConnection {
  readonly #options: ConnectionOptions;
  readonly #abort = new AbortController();
  #phase: 'opening' | 'open' | 'closing' | 'closed' = 'opening';
  #socket: Socket | undefined;
  #webSocket: WebSocket | undefined;
  #subprotocol = '';
  readonly #held: Part[] = [];
  /** There is no room for what is held. */
  #full = false;
  /** An answer to a ping is on its way. */
  #isAnswering = false;
  /** The newest ping that is to be answered when the answer before is gone. */
  #ping: Uint8Array | undefined;
  /** Bytes of messages that came after our close frame. */
  #late = 0;
  #missed = 0;
  #bytesRead = 0;
  /** The code of the rule that the far end broke. */
  #broken: number | undefined;
  #cancelTimer = () => {};

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#phase === 'open' || this.#phase === 'closing';
  }

  /** Connects and shakes hands, within `connectTimeoutMs` together. Never rejects. */
  async open(): Promise<void> {
    const { url, appUuid, connect, connectTimeoutMs, clock } = this.#options;
    const tls = url.protocol === 'wss:';
    const port = url.port === '' ? (tls ? 443 : 80) : Number(url.port);
    const deadline = clock.now() + connectTimeoutMs;
    try {
      const signal = this.#abort.signal;
      const timeoutMs = connectTimeoutMs;
      const socket = await connect({ hostname: url.hostname, owner: `WebSockets of ${appUuid}`, port, tls, timeoutMs, signal });
      if (this.#phase !== 'opening') socket.destroy();
      else this.#shake(socket, deadline);
    } catch (error) {
      const [reason, bucket] = failureOf(error instanceof OutboundError ? error.failure : 'unreachable');
      this.#fail(reason, bucket);
    }
  }

  #shake(socket: Socket, deadline: number): void {
    const { url, headers, subprotocol, clock } = this.#options;
    this.#socket = socket;
    socket.on('error', () => {});
    this.#cancelTimer = clock.at(deadline, () => this.#fail('connect_timeout', 'timeout'));
    const options: ClientOptions & { readonly closeTimeout: number } = {
      headers: { ...headers },
      createConnection: () => socket,
      finishRequest: (request) => this.#ask(request),
      perMessageDeflate: false,
      followRedirects: false,
      // A pong is bounded below. One event a turn of the event loop: a flood of tiny frames holds up nobody else.
      autoPong: false,
      allowSynchronousEvents: false,
      maxPayload: WEBSOCKET_MESSAGE_MAX_BYTES,
      maxFragments: WEBSOCKET_FRAGMENTS_MAX,
      closeTimeout: WEBSOCKET_CLOSE_WAIT_MS,
    };
    const webSocket = new WebSocket(url, subprotocol === undefined ? [] : [subprotocol], options);
    this.#webSocket = webSocket;
    webSocket.on('upgrade', (response) => this.#answered(response));
    webSocket.on('unexpected-response', (_request, { statusCode = 0 }) => {
      // A redirect is not followed: where audio goes is for the application to say.
      this.#fail('handshake_rejected', statusCode >= 500 ? 'http_5xx' : statusCode >= 400 ? 'http_4xx' : 'policy');
    });
    webSocket.on('open', () => this.#opened());
    webSocket.on('message', (data: Buffer, isBinary) => this.#received(data, isBinary));
    webSocket.on('ping', (payload) => this.#pinged(payload));
    webSocket.on('error', (error) => this.#failed(error));
    webSocket.on('close', (code) => this.#ended(code));
  }

  /** Sends the request, and gives it up where interim responses (1xx) come without an end. */
  #ask(request: ClientRequest): void {
    let interim = 0;
    request.on('information', () => {
      if (++interim > HTTP_INTERIM_RESPONSES_MAX) this.#fail('handshake_rejected', 'internal');
    });
    request.end();
  }

  /**
   * Looks at the 101 before `ws` does, which refuses two things that RFC 6455 §4.1 lets a server do, and takes one that
   * it does not.
   */
  #answered({ headers, httpVersion }: IncomingMessage): void {
    const { subprotocol } = this.#options;
    if (httpVersion !== '1.1') this.#fail('handshake_rejected', 'internal');
    if (headers['sec-websocket-extensions'] === '') delete headers['sec-websocket-extensions'];
    this.#subprotocol = headers['sec-websocket-protocol'] ?? '';
    if (subprotocol !== undefined) headers['sec-websocket-protocol'] ??= subprotocol;
  }

  #opened(): void {
    if (this.#phase !== 'opening') return;
    this.#phase = 'open';
    this.#cancelTimer();
    this.#keepAlive();
    this.#options.onOpen(this.#subprotocol);
  }

  #failed(error: Error): void {
    const code = 'code' in error ? String(error.code) : '';
    if (this.#phase === 'opening') this.#fail('handshake_rejected', NETWORK_ERROR.test(code) ? 'network' : 'internal');
    else if (code.startsWith('WS_ERR_')) this.#broken = CODE_OF_ERROR[code] ?? PROTOCOL_ERROR;
  }

  #received(data: Buffer, isBinary: boolean): void {
    const isLate = this.#phase !== 'open' || this.#broken !== undefined;
    if (isLate) this.#tooLate(data.length);
    if (isLate || (!isBinary && !this.#options.readsText())) return;
    if (!isBinary && data.length > WEBSOCKET_TEXT_MAX_BYTES) {
      this.#broken = TOO_BIG;
      this.#webSocket?.close(TOO_BIG);
      return;
    }
    // A frame of audio for which there is room, as nearly all are, needs no queue.
    const isPlain = isBinary && this.#held.length === 0 && data.length <= WEBSOCKET_SLICE_BYTES;
    if (isPlain && this.#options.onBinary(data)) return;
    if (!isBinary) this.#held.push(data.toString('utf8'));
    else
      for (let at = 0; at < data.length; at += WEBSOCKET_SLICE_BYTES)
        this.#held.push(data.subarray(at, at + WEBSOCKET_SLICE_BYTES));
    this.#deliver();
  }

  /** What was on its way before our close frame is read for the sake of its answer, but no more than that can be. */
  #tooLate(bytes: number): void {
    this.#late += bytes;
    if (this.#late > WEBSOCKET_MESSAGE_MAX_BYTES) this.#webSocket?.terminate();
  }

  #deliver(): void {
    const { onBinary, onText } = this.#options;
    let taken = 0;
    for (const part of this.#held) {
      if (this.#phase !== 'open') break;
      const isTaken = typeof part === 'string' ? onText(part) : onBinary(part);
      if (!isTaken) break;
      taken += 1;
    }
    this.#held.splice(0, taken);
    this.#full = this.#phase === 'open' && this.#held.length > 0;
    this.#flow();
  }

  /**
   * Reads, or does not: not without room for what is held, and not from a far end that leaves the answer to its ping
   * unread.
   */
  #flow(): void {
    if (this.#phase !== 'open') return;
    if (this.#full || this.#isAnswering) this.#webSocket?.pause();
    else this.#webSocket?.resume();
  }

  /** There is room again. */
  resume(): void {
    if (this.#full) this.#deliver();
  }

  /** Answers a ping, or, while the answer to one is on its way, the newest of those that come meanwhile. */
  #pinged(payload: Uint8Array): void {
    if (this.#phase !== 'open') return;
    if (this.#isAnswering) this.#ping = payload;
    else this.#pong(payload);
  }

  /** The callback tells when the answer is gone. `drain` is told only of a socket that is behind by 64 KiB or more. */
  #pong(payload: Uint8Array): void {
    this.#isAnswering = true;
    this.#webSocket?.pong(payload, undefined, () => {
      const next = this.#ping;
      this.#ping = undefined;
      this.#isAnswering = false;
      if (next !== undefined) this.#pinged(next);
      this.#flow();
    });
    this.#flow();
  }

  /** Sends audio to the far end, unless it does not read. Returns false where the audio was left out. */
  send(bytes: Uint8Array): boolean {
    if (this.#phase !== 'open' || !this.#reads) return false;
    this.#webSocket?.send(bytes);
    return true;
  }

  /** Sends a text message, which is left out where the far end does not read. */
  sendText(text: string): void {
    if (this.#phase === 'open' && this.#reads) this.#webSocket?.send(text);
  }

  get #reads(): boolean {
    return (this.#webSocket?.bufferedAmount ?? 0) <= WEBSOCKET_UNREAD_MAX_BYTES;
  }

  /** Closes the connection, or gives the attempt up; then nothing more is told of an attempt. */
  close(): void {
    if (this.#phase === 'opening') {
      this.#phase = 'closed';
      this.#giveUp();
      return;
    }
    if (this.#phase !== 'open') return;
    this.#phase = 'closing';
    this.#held.length = 0;
    this.#cancelTimer();
    this.#webSocket?.close(NORMAL);
    // The answer to our close may still have to be read.
    this.#webSocket?.resume();
    const { clock } = this.#options;
    this.#cancelTimer = clock.at(clock.now() + WEBSOCKET_CLOSE_WAIT_MS, () => this.#ended(NORMAL));
  }

  #fail(reason: WebSocketFailure, error: WebSocketError): void {
    if (this.#phase !== 'opening') return;
    this.#phase = 'closed';
    this.#giveUp();
    this.#options.onFailed(reason, error);
  }

  #giveUp(): void {
    this.#abort.abort();
    this.#cancelTimer();
    this.#webSocket?.terminate();
    this.#socket?.destroy();
  }

  /** The connection is over, with the code of the far end's close frame or one of RFC 6455 §7.1.5. */
  #ended(code: number): void {
    if (this.#phase === 'opening') this.#fail('handshake_rejected', 'network');
    if (this.#phase === 'closed') return;
    const isMine = this.#phase === 'closing';
    this.#phase = 'closed';
    this.#held.length = 0;
    this.#cancelTimer();
    const { clock, onClosed } = this.#options;
    // A far end that does not take our close frame is not waited for.
    clock.at(clock.now() + WEBSOCKET_CLOSE_WAIT_MS, () => this.#webSocket?.terminate());
    if (isMine) onClosed('local_closed', NORMAL);
    else if (this.#broken !== undefined) onClosed('protocol_error', this.#broken);
    else onClosed(code === ABNORMAL ? 'network_error' : 'remote_closed', code === 0 ? NO_STATUS : code);
  }

  /** Sends a ping every 20 s. What is not read cannot answer, so none is missed while reading waits for room. */
  #keepAlive(): void {
    const { clock, onClosed } = this.#options;
    this.#cancelTimer = clock.at(clock.now() + WEBSOCKET_PING_MS, () => {
      if (this.#phase !== 'open') return;
      const { bytesRead = 0 } = this.#socket ?? {};
      if (bytesRead !== this.#bytesRead) this.#missed = 0;
      this.#bytesRead = bytesRead;
      if (this.#missed >= WEBSOCKET_PINGS_MISSED_MAX) {
        this.#phase = 'closed';
        this.#webSocket?.terminate();
        onClosed('keepalive_timeout', ABNORMAL);
        return;
      }
      if (!this.#full) this.#missed += 1;
      this.#webSocket?.ping();
      this.#keepAlive();
    });
  }
}

const NETWORK_ERROR = /^(ECONNRESET|EPIPE|ECONNABORTED|ETIMEDOUT)$/;

function failureOf(failure: OutboundFailure): [WebSocketFailure, WebSocketError] {
  switch (failure) {
    case 'rejected':
      return ['connection_precondition_failed', 'policy'];
    case 'timeout':
      return ['connect_timeout', 'timeout'];
    case 'dns':
      return ['dns_failed', 'network'];
    case 'tls':
      return ['tls_failed', 'tls'];
    case 'invalid_response':
      return ['handshake_rejected', 'internal'];
    case 'unreachable':
      return ['connection_refused', 'network'];
  }
}
