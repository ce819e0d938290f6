/**
 * One connection to an application's WebSocket server: opened through the screen, kept alive, read no faster than its audio can be taken.
 *
 *   opening ─101→ open ─close frame, keepalive, error→ closed        (each connection ends in exactly one `onFailed` or `onClosed`)
 */
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Clock } from '../clock.ts';
import type { WebSocketClosed, WebSocketError, WebSocketFailure } from '../event/websocket-event.ts';
import { WEBSOCKET_CLOSE_WAIT_MS, WEBSOCKET_PING_MS, WEBSOCKET_PINGS_MISSED_MAX, WEBSOCKET_UNREAD_MAX_BYTES } from '../limits.ts';
import type { Connect } from '../outbound/connect.ts';
import { headEnd, parseHead } from '../outbound/http-response.ts';
import { OutboundError, type OutboundFailure } from '../outbound/outbound.ts';
import { closePayload, FrameError, type FramePart, FrameReader, writeFrame } from './frame.ts';
import { handshakeAnswer, handshakeRequest } from './handshake.ts';

export interface ConnectionOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly subprotocol: string | undefined;
  readonly connectTimeoutMs: number;
  readonly connect: Connect;
  readonly clock: Clock;
  onOpen(subprotocol: string): void;
  onFailed(reason: WebSocketFailure, error: WebSocketError): void;
  /** False, as of `onText`: there is no room for these bytes now. They are offered again after `resume`, and nothing is read before. */
  onBinary(bytes: Uint8Array): boolean;
  onText(text: string): boolean;
  onClosed(reason: WebSocketClosed, code: number): void;
}

const ABNORMAL = 1006;
const NORMAL = 1000;

export class WebSocketConnection {
  readonly #options: ConnectionOptions;
  readonly #reader = new FrameReader();
  readonly #abort = new AbortController();
  #phase: 'opening' | 'open' | 'closing' | 'closed' = 'opening';
  #socket: Socket | undefined;
  /** Read but not taken yet, in order. */
  #held: FramePart[] = [];
  #paused = false;
  #missed = 0;
  #cancelTimer = () => {};
  /** Random bytes for masks, drawn many at a time. */
  #masks = randomBytes(0);

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#phase === 'open' || this.#phase === 'closing';
  }

  async open(): Promise<void> {
    const { url, connect, connectTimeoutMs, clock } = this.#options;
    const tls = url.protocol === 'wss:';
    const port = url.port === '' ? (tls ? 443 : 80) : Number(url.port);
    const deadline = clock.now() + connectTimeoutMs;
    try {
      const signal = this.#abort.signal;
      const socket = await connect({ hostname: url.hostname, port, tls, anyPort: true, timeoutMs: connectTimeoutMs, signal });
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
    const key = randomBytes(16).toString('base64');
    let head = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      head = Buffer.concat([head, chunk]);
      try {
        const end = headEnd(head);
        if (end === undefined) return;
        const answer = handshakeAnswer(parseHead(head.subarray(0, end)), { key, subprotocol });
        if ('refused' in answer) {
          this.#fail('handshake_rejected', answer.refused);
          return;
        }
        socket.off('data', onData);
        this.#opened(socket, answer.subprotocol, head.subarray(end));
      } catch {
        this.#fail('handshake_rejected', 'internal');
      }
    };
    socket.on('data', onData);
    socket.on('error', () => {});
    socket.once('close', () => {
      if (this.#phase === 'opening') this.#fail('handshake_rejected', 'network');
      else this.#close('network_error', ABNORMAL);
    });
    this.#cancelTimer = clock.at(deadline, () => this.#fail('connect_timeout', 'timeout'));
    socket.write(handshakeRequest({ url, key, subprotocol, headers }));
    socket.resume();
  }

  #opened(socket: Socket, subprotocol: string, rest: Uint8Array): void {
    this.#phase = 'open';
    this.#cancelTimer();
    this.#keepAlive();
    this.#options.onOpen(subprotocol);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    if (rest.length > 0) this.#read(rest);
  }

  #read(bytes: Uint8Array): void {
    if (this.#phase === 'closed') return;
    this.#missed = 0;
    try {
      this.#held.push(...this.#reader.push(bytes));
    } catch (error) {
      this.#refuse(error instanceof FrameError ? error.code : 1002);
      return;
    }
    this.#deliver();
  }

  #deliver(): void {
    for (let part = this.#held[0]; part !== undefined && this.#phase !== 'closed'; part = this.#held[0]) {
      if (this.#phase === 'open' && !this.#taken(part)) {
        this.#paused = true;
        this.#socket?.pause();
        return;
      }
      this.#held.shift();
      if (part.type === 'ping') this.#write('pong', part.bytes);
      if (part.type === 'close') {
        this.#farEndCloses(part.code);
        return;
      }
    }
  }

  #taken(part: FramePart): boolean {
    if (part.type === 'binary') return part.bytes.length === 0 || this.#options.onBinary(part.bytes);
    return part.type === 'text' ? this.#options.onText(part.text) : true;
  }

  /** There is room again. */
  resume(): void {
    if (!this.#paused || this.#phase === 'closed') return;
    this.#paused = false;
    this.#deliver();
    if (!this.#paused) this.#socket?.resume();
  }

  /** Audio to the far end; left out while it does not read. False: it was left out. */
  send(bytes: Uint8Array): boolean {
    if (this.#phase !== 'open' || (this.#socket?.writableLength ?? 0) > WEBSOCKET_UNREAD_MAX_BYTES) return false;
    this.#write('binary', bytes);
    return true;
  }

  sendText(text: string): void {
    if (this.#phase === 'open' && (this.#socket?.writableLength ?? 0) <= WEBSOCKET_UNREAD_MAX_BYTES) {
      this.#write('text', new TextEncoder().encode(text));
    }
  }

  /** Closes it, or gives the attempt up; then nothing more is told of an attempt. */
  close(): void {
    if (this.#phase === 'opening') {
      this.#phase = 'closed';
      this.#abort.abort();
      this.#cancelTimer();
      this.#socket?.destroy();
      return;
    }
    if (this.#phase !== 'open') return;
    this.#phase = 'closing';
    this.#write('close', closePayload(NORMAL));
    this.#wait(() => this.#close('local_closed', NORMAL));
    // What is still to be read may be the answer to our close.
    this.#held = [];
    this.#paused = false;
    this.#socket?.resume();
  }

  #farEndCloses(code: number): void {
    if (this.#phase === 'closing') {
      this.#close('local_closed', NORMAL);
      return;
    }
    this.#write('close', code === 1005 ? new Uint8Array(0) : closePayload(code));
    this.#close('remote_closed', code);
  }

  /** The far end broke the protocol. */
  #refuse(code: number): void {
    this.#write('close', closePayload(code));
    this.#close('protocol_error', code);
  }

  #fail(reason: WebSocketFailure, error: WebSocketError): void {
    if (this.#phase !== 'opening') return;
    this.#phase = 'closed';
    this.#abort.abort();
    this.#cancelTimer();
    this.#socket?.destroy();
    this.#options.onFailed(reason, error);
  }

  #close(reason: WebSocketClosed, code: number): void {
    if (this.#phase === 'closed' || this.#phase === 'opening') return;
    const mine = this.#phase === 'closing';
    this.#phase = 'closed';
    this.#held = [];
    this.#cancelTimer();
    // Lets a close frame out first; a far end that does not take it is not waited for.
    this.#socket?.end();
    this.#options.clock.at(this.#options.clock.now() + WEBSOCKET_CLOSE_WAIT_MS, () => this.#socket?.destroy());
    this.#options.onClosed(mine ? 'local_closed' : reason, mine ? NORMAL : code);
  }

  #wait(then: () => void): void {
    const { clock } = this.#options;
    this.#cancelTimer();
    this.#cancelTimer = clock.at(clock.now() + WEBSOCKET_CLOSE_WAIT_MS, then);
  }

  /** A ping every 20 s. What is not read cannot answer, so none is missed while reading waits for room. */
  #keepAlive(): void {
    const { clock } = this.#options;
    this.#cancelTimer = clock.at(clock.now() + WEBSOCKET_PING_MS, () => {
      if (this.#phase !== 'open') return;
      if (this.#missed >= WEBSOCKET_PINGS_MISSED_MAX) {
        this.#close('keepalive_timeout', ABNORMAL);
        this.#socket?.destroy();
        return;
      }
      if (!this.#paused) this.#missed++;
      this.#write('ping', new Uint8Array(0));
      this.#keepAlive();
    });
  }

  #write(kind: 'text' | 'binary' | 'close' | 'ping' | 'pong', payload: Uint8Array): void {
    if (this.#masks.length < 4) this.#masks = randomBytes(1024);
    const mask = this.#masks.subarray(0, 4);
    this.#masks = this.#masks.subarray(4);
    this.#socket?.write(writeFrame(kind, payload, mask));
  }
}

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
