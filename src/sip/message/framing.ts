/**
 * Cuts messages out of a byte stream (RFC 3261 §18.3): each is as long as its Content-Length says. A double CRLF
 * between messages is a keepalive (RFC 5626 §3.5.1) that is answered with a single one.
 */
import { SIP_BODY_MAX_BYTES, SIP_HEAD_MAX_BYTES } from '../../limits.ts';
import { parseDecimal } from './message.ts';
import { headEnd } from './parser.ts';

type Frame =
  | { readonly type: 'message'; readonly bytes: Uint8Array }
  | { readonly type: 'ping' }
  /**
   * The stream cannot be followed any more, because a message is too large, its length is no number, or line ends come
   * instead of one. Close the connection.
   */
  | { readonly type: 'broken'; readonly why: string };

const decoder = new TextDecoder();

/** The name of a Content-Length field, whole or compact. White space before the colon may be folded. */
const LENGTH_NAME = /\r\n(?:content-length|l)(?:[^\S\r\n]|\r\n[ \t])*:/gi;

/** The Content-Length in a head. 0 when there is none, undefined when it is unusable. */
function contentLength(head: Uint8Array): number | undefined {
  const text = decoder.decode(head);
  let found: number | undefined;
  for (const name of text.matchAll(LENGTH_NAME)) {
    const rest = text.slice(name.index + name[0].length);
    // A line that begins with a blank goes on with the field before it (RFC 3261 §7.3.1).
    const value = rest.slice(0, rest.search(/\r\n(?![ \t])/)).replaceAll(/\r\n[ \t]+/g, ' ');
    const length = parseDecimal(value.trim(), SIP_BODY_MAX_BYTES);
    if (length === undefined || (found !== undefined && found !== length)) return undefined;
    found = length;
  }
  return found ?? 0;
}

/** The reader of one connection. It holds what was pushed and not yet read: at most one message and one push. */
export class StreamFraming {
  #held: Uint8Array = new Uint8Array(0);
  /** The place in `#held` that the next frame begins at. */
  #at = 0;
  /** The place up to which the end of a head has been looked for. */
  #searched = 0;
  #broken = false;

  /** Takes bytes in any cut. Read the frames that they complete with `next` before the next push. */
  push(bytes: Uint8Array): void {
    if (this.#broken) return;
    const left = this.#held.length - this.#at;
    if (left === 0) this.#held = bytes;
    else {
      const joined = new Uint8Array(left + bytes.length);
      joined.set(this.#held.subarray(this.#at));
      joined.set(bytes, left);
      this.#held = joined;
    }
    this.#searched = Math.max(0, this.#searched - this.#at);
    this.#at = 0;
  }

  /**
   * The next frame, or undefined when more bytes are needed. After `broken` there are no more frames. Pings in a row
   * are one.
   */
  next(): Frame | undefined {
    if (this.#broken) return undefined;
    const start = this.#at;
    const pinged = this.#skipKeepalives();
    const held = this.#held;
    const from = this.#at;
    if (from - start > SIP_HEAD_MAX_BYTES) return this.#break('too many line ends');
    if (pinged) return { type: 'ping' };
    const end = headEnd(held, Math.max(from, this.#searched));
    const headBytes = (end < 0 ? held.length : end) - from;
    if (headBytes > SIP_HEAD_MAX_BYTES) return this.#break('head too large');
    if (end < 0) {
      this.#searched = Math.max(from, held.length - 3);
      return undefined;
    }
    const length = contentLength(held.subarray(from, end));
    if (length === undefined) return this.#break('bad Content-Length');
    if (held.length < end + length) return undefined;
    this.#at = end + length;
    this.#searched = this.#at;
    // A copy: the transport may reuse its buffer, and a body is kept beyond this call.
    return { type: 'message', bytes: held.slice(from, this.#at) };
  }

  /**
   * Skips line ends between messages, and stops where there are more than any message has bytes in its head. True when
   * there was a keepalive among them, which asks for an answer.
   */
  #skipKeepalives(): boolean {
    const held = this.#held;
    let at = this.#at;
    let pinged = false;
    const most = at + SIP_HEAD_MAX_BYTES;
    while (at <= most && held[at] === 0x0d && held[at + 1] === 0x0a) {
      if (held[at + 2] === 0x0d && held[at + 3] === 0x0a) {
        pinged = true;
        at += 4;
      } else if (at + 2 < held.length && held[at + 2] !== 0x0d) at += 2;
      else if (at + 3 < held.length) at += 2;
      else break;
    }
    this.#at = at;
    return pinged;
  }

  #break(why: string): Frame {
    this.#broken = true;
    this.#held = new Uint8Array(0);
    this.#at = 0;
    return { type: 'broken', why };
  }
}
