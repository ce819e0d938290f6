/**
 * WebSocket framing, the client's side (RFC 6455 §5). Pure: bytes in, parts of messages out.
 *
 *   0               1               2 …
 *   FIN RSV opcode  MASK length(7)  [length 16 | 64]  payload        (a server's frames are not masked, §5.1)
 *
 * Our own because a message to the Session may be of any size: its payload is handed on as it comes, where libraries keep a message whole.
 * Left out: extensions (none is offered, so RSV bits are an error), the server's side.
 */
import { WEBSOCKET_TEXT_MAX_BYTES } from '../limits.ts';

export type FramePart =
  /** A piece of a binary message; `last` when the message is over. */
  | { readonly type: 'binary'; readonly bytes: Uint8Array; readonly last: boolean }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'ping'; readonly bytes: Uint8Array }
  | { readonly type: 'pong' }
  /** 1005: the frame had no code (§7.1.5). */
  | { readonly type: 'close'; readonly code: number };

/** The server broke the protocol; `code` is what the connection is closed with (§7.4.1). */
export class FrameError extends Error {
  override readonly name = 'FrameError';
  readonly code: 1002 | 1007 | 1009;
  constructor(code: 1002 | 1007 | 1009, message: string) {
    super(message);
    this.code = code;
  }
}

const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const CONTROL_MAX_BYTES = 125;

export class FrameReader {
  #head = new Uint8Array(0);
  /** What the payload under way belongs to. */
  #opcode = -1;
  #fin = false;
  #left = 0;
  /** The data message under way, over its fragments. */
  #message: 'text' | 'binary' | undefined;
  /** A text message, and a control frame that may come between its fragments, until each is whole. */
  #kept: Uint8Array[] = [];
  #keptBytes = 0;
  readonly #control: Uint8Array[] = [];

  /** Throws `FrameError`; after that the reader is of no more use. */
  push(bytes: Uint8Array): FramePart[] {
    const parts: FramePart[] = [];
    let at = 0;
    while (at < bytes.length || (this.#opcode !== -1 && this.#left === 0)) {
      if (this.#opcode === -1) {
        at = this.#readHead(bytes, at);
        continue;
      }
      const piece = bytes.subarray(at, at + this.#left);
      at += piece.length;
      this.#left -= piece.length;
      this.#payload(piece, parts);
      if (this.#left === 0) this.#opcode = -1;
    }
    return parts;
  }

  /** The frame's head, which may come in pieces. Returns where the payload begins, or the end of `bytes`. */
  #readHead(bytes: Uint8Array, at: number): number {
    const missing = (known: number) => Math.max(0, known - this.#head.length);
    const take = (count: number) => {
      const piece = bytes.subarray(at, at + count);
      this.#head = concat([this.#head, piece]);
      at += piece.length;
    };
    take(missing(2));
    if (this.#head.length < 2) return at;
    const [first = 0, second = 0] = this.#head;
    if ((second & 0x80) !== 0) throw new FrameError(1002, 'a masked frame from a server');
    const short = second & 0x7f;
    const size = short === 126 ? 4 : short === 127 ? 10 : 2;
    take(missing(size));
    if (this.#head.length < size) return at;
    const view = new DataView(this.#head.buffer, this.#head.byteOffset, size);
    const length = short === 126 ? view.getUint16(2) : short === 127 ? Number(view.getBigUint64(2)) : short;
    this.#head = new Uint8Array(0);
    this.#begin(first, length);
    return at;
  }

  #begin(first: number, length: number): void {
    const opcode = first & 0x0f;
    this.#fin = (first & 0x80) !== 0;
    if ((first & 0x70) !== 0) throw new FrameError(1002, 'a reserved bit without an extension');
    if (!Number.isSafeInteger(length)) throw new FrameError(1009, 'a frame of no sensible length');
    if (opcode >= OPCODE.close) {
      if (opcode > OPCODE.pong) throw new FrameError(1002, 'an unknown opcode');
      if (!this.#fin || length > CONTROL_MAX_BYTES) throw new FrameError(1002, 'a control frame that is long or fragmented');
    } else if (opcode === OPCODE.continuation) {
      if (this.#message === undefined) throw new FrameError(1002, 'a continuation of nothing');
    } else if (opcode === OPCODE.text || opcode === OPCODE.binary) {
      if (this.#message !== undefined) throw new FrameError(1002, 'a message within a message');
      this.#message = opcode === OPCODE.text ? 'text' : 'binary';
    } else throw new FrameError(1002, 'an unknown opcode');
    this.#opcode = opcode;
    this.#left = length;
  }

  #payload(piece: Uint8Array, parts: FramePart[]): void {
    const over = this.#left === 0;
    if (this.#opcode >= OPCODE.close) {
      // A control frame may come between the fragments of a message: its payload is kept apart by being short and whole in itself.
      this.#control.push(piece.slice());
      if (!over) return;
      const whole = concat(this.#control.splice(0));
      parts.push(controlPart(this.#opcode, whole));
      return;
    }
    const last = over && this.#fin;
    if (this.#message === 'binary') {
      parts.push({ type: 'binary', bytes: piece, last });
    } else {
      this.#keptBytes += piece.length;
      if (this.#keptBytes > WEBSOCKET_TEXT_MAX_BYTES) throw new FrameError(1009, 'a text message that is too long');
      this.#kept.push(piece.slice());
      if (last) parts.push({ type: 'text', text: utf8(concat(this.#kept.splice(0))) });
    }
    if (!last) return;
    this.#message = undefined;
    this.#keptBytes = 0;
  }
}

function controlPart(opcode: number, payload: Uint8Array): FramePart {
  if (opcode === OPCODE.ping) return { type: 'ping', bytes: payload };
  if (opcode === OPCODE.pong) return { type: 'pong' };
  if (payload.length === 0) return { type: 'close', code: 1005 };
  const code = ((payload[0] ?? 0) << 8) | (payload[1] ?? 0);
  const known =
    (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006) || (code >= 3000 && code <= 4999);
  if (payload.length === 1 || !known) throw new FrameError(1002, 'a close frame without a valid code');
  utf8(payload.subarray(2));
  return { type: 'close', code };
}

/** One whole frame, masked with the four bytes of `mask` (§5.3), ready to be sent. */
export function writeFrame(
  kind: 'text' | 'binary' | 'close' | 'ping' | 'pong',
  payload: Uint8Array,
  mask: Uint8Array,
): Uint8Array {
  const { length } = payload;
  const head = length <= 125 ? 2 : length <= 0xffff ? 4 : 10;
  const frame = new Uint8Array(head + 4 + length);
  frame[0] = 0x80 | OPCODE[kind];
  frame[1] = 0x80 | (head === 2 ? length : head === 4 ? 126 : 127);
  const view = new DataView(frame.buffer);
  if (head === 4) view.setUint16(2, length);
  if (head === 10) view.setBigUint64(2, BigInt(length));
  frame.set(mask.subarray(0, 4), head);
  for (let at = 0; at < length; at++) frame[head + 4 + at] = (payload[at] ?? 0) ^ (mask[at & 3] ?? 0);
  return frame;
}

/** The payload of a close frame. */
export const closePayload = (code: number): Uint8Array => Uint8Array.of(code >> 8, code & 0xff);

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new FrameError(1007, 'text that is no UTF-8');
  }
}

function concat(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
