/**
 * The form of every message between nodes: JSON under an HMAC-SHA256 of a key derived from MASTER_KEY. What another
 * sends, or a message of ours that somebody sends again, is dropped.
 *
 *   43 characters of base64url ‖ {"s": subject, "f": sender, "n": nonce, "t": milliseconds, "r"?: nonce of the request,
 *   "b": body}
 *
 * `t` is in the clock of the node that a request is for, as its sender knows it from a ping (`offset.ts`).
 */
import { createHmac, hkdfSync, randomUUID, timingSafeEqual } from 'node:crypto';
import { NODE_MESSAGE_AGE_MAX_MS, NODE_NONCES_MAX } from '../../limits.ts';

const MAC_CHARS = 43;

export interface Envelope {
  readonly subject: string;
  readonly from: string;
  readonly nonce: string;
  /** The time of the message; undefined where the sender does not know our clock yet, which only a ping may do. */
  readonly time: number | undefined;
  /** The nonce of the request that this answers; `""`: it answers none. */
  readonly answers: string;
  readonly body: unknown;
}

export interface Sealed {
  readonly text: string;
  readonly nonce: string;
}

export class Envelopes {
  readonly #key: Uint8Array;
  readonly #from: string;
  readonly #seen = new Set<string>();

  constructor(masterKey: Uint8Array, from: string) {
    this.#key = new Uint8Array(hkdfSync('sha256', masterKey, new Uint8Array(0), 'sidetone: messages between nodes', 32));
    this.#from = from;
  }

  seal(subject: string, body: unknown, time?: number, answers = ''): Sealed {
    const nonce = randomUUID();
    const json = JSON.stringify({
      s: subject,
      f: this.#from,
      n: nonce,
      t: time,
      r: answers === '' ? undefined : answers,
      b: body,
    });
    return { text: this.#mac(json) + json, nonce };
  }

  /** Opens a message. The result is undefined where it is not one of ours, or not for this subject. */
  open(subject: string, text: string): Envelope | undefined {
    const json = text.slice(MAC_CHARS);
    const mac = Buffer.from(text.slice(0, MAC_CHARS));
    const right = Buffer.from(this.#mac(json));
    if (mac.length !== right.length || !timingSafeEqual(mac, right)) return undefined;
    const { s, f, n, t, r, b } = JSON.parse(json);
    if (s !== subject) return undefined;
    return { subject, from: f, nonce: n, time: t, answers: r ?? '', body: b };
  }

  /**
   * Tells whether a message comes for the first time, and not long after it was sent. News have no time, as they are
   * for many clocks: what they say is looked up, or holds however often it is told.
   */
  isFresh({ nonce, time }: Envelope, now: number): boolean {
    if (this.#seen.has(nonce) || (time !== undefined && Math.abs(now - time) > NODE_MESSAGE_AGE_MAX_MS)) return false;
    this.#seen.add(nonce);
    if (this.#seen.size > NODE_NONCES_MAX)
      for (const oldest of this.#seen) {
        this.#seen.delete(oldest);
        break;
      }
    return true;
  }

  #mac(json: string): string {
    return createHmac('sha256', this.#key).update(json).digest('base64url');
  }
}
