/**
 * Cuts messages out of a byte stream (RFC 3261 §18.3): each is as long as its Content-Length says. A double CRLF between messages is a
 * keepalive (RFC 5626 §3.5.1) that is answered with a single one.
 */
import { SIP_BODY_MAX_BYTES, SIP_HEAD_MAX_BYTES } from '../../limits.ts';
import { canonicalName, parseDecimal } from './message.ts';
import { headEnd } from './parser.ts';

type Frame =
  | { readonly type: 'message'; readonly bytes: Uint8Array }
  | { readonly type: 'ping' }
  /** The stream cannot be followed any more, because a message is too large or its length is no number. Close the connection. */
  | { readonly type: 'broken'; readonly why: string };

const decoder = new TextDecoder();

/** The Content-Length in a head. 0 when there is none, undefined when it is unusable. */
function contentLength(head: Uint8Array): number | undefined {
  let found: number | undefined;
  for (const line of decoder.decode(head).split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon < 0 || canonicalName(line.slice(0, colon).trim()) !== 'content-length') continue;
    const length = parseDecimal(line.slice(colon + 1).trim(), SIP_BODY_MAX_BYTES);
    if (length === undefined || (found !== undefined && found !== length)) return undefined;
    found = length;
  }
  return found ?? 0;
}

/** The reader of one connection. It holds at most the bytes of one message. */
export class StreamFraming {
  #held: Uint8Array = new Uint8Array(0);
  #searched = 0;
  #broken = false;

  /** Takes bytes in any cut and returns the frames that they complete. After `broken` it returns no more frames. */
  push(bytes: Uint8Array): Frame[] {
    if (this.#broken) return [];
    if (this.#held.length === 0) this.#held = bytes;
    else {
      const joined = new Uint8Array(this.#held.length + bytes.length);
      joined.set(this.#held);
      joined.set(bytes, this.#held.length);
      this.#held = joined;
    }
    const frames: Frame[] = [];
    let at = 0;
    for (;;) {
      const held = this.#held;
      while (held[at] === 0x0d && held[at + 1] === 0x0a) {
        if (held[at + 2] === 0x0d && held[at + 3] === 0x0a) {
          frames.push({ type: 'ping' });
          at += 4;
        } else if (at + 2 < held.length && held[at + 2] !== 0x0d) at += 2;
        else if (at + 3 < held.length) at += 2;
        else break;
      }
      if (held[at] === 0x0d && held.length - at < 4) break;
      const end = headEnd(held, Math.max(at, this.#searched));
      const headBytes = (end < 0 ? held.length : end) - at;
      if (headBytes > SIP_HEAD_MAX_BYTES) return this.#break(frames, 'head too large');
      if (end < 0) {
        this.#searched = Math.max(at, held.length - 3);
        break;
      }
      const length = contentLength(held.subarray(at, end));
      if (length === undefined) return this.#break(frames, 'bad Content-Length');
      if (held.length < end + length) break;
      // A copy: the transport may reuse its buffer, and a body is kept beyond this call.
      frames.push({ type: 'message', bytes: held.slice(at, end + length) });
      at = end + length;
      this.#searched = 0;
    }
    this.#searched = Math.max(0, this.#searched - at);
    this.#held = this.#held.slice(at);
    return frames;
  }

  #break(frames: Frame[], why: string): Frame[] {
    this.#broken = true;
    this.#held = new Uint8Array(0);
    frames.push({ type: 'broken', why });
    return frames;
  }
}
