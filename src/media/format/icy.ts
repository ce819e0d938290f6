/**
 * Metadata inside the audio of a streaming server ("ICY"): after each `interval` bytes of audio one byte that tells how
 * many blocks of 16 bytes of text follow. They are taken out. Pure.
 */
import { ICY_INTERVAL_MAX_BYTES, ICY_INTERVAL_MIN_BYTES } from '../../limits.ts';

export class IcyStripper {
  readonly #interval: number;
  #audio: number;
  #text = 0;

  constructor(interval: number) {
    this.#interval = interval;
    this.#audio = interval;
  }

  /** The audio among `bytes`. */
  strip(bytes: Uint8Array): Uint8Array {
    const out = new Uint8Array(bytes.length);
    let made = 0;
    for (let at = 0; at < bytes.length; ) {
      if (this.#text > 0) {
        const skipped = Math.min(this.#text, bytes.length - at);
        this.#text -= skipped;
        at += skipped;
      } else if (this.#audio === 0) {
        this.#text = (bytes[at] ?? 0) * 16;
        this.#audio = this.#interval;
        at++;
      } else {
        const part = bytes.subarray(at, at + this.#audio);
        out.set(part, made);
        made += part.length;
        at += part.length;
        this.#audio -= part.length;
      }
    }
    return out.subarray(0, made);
  }
}

/** The interval a response names: undefined where there is none, or one that makes no sense. */
export function icyInterval(headers: Headers): number | undefined {
  const interval = Number(headers.get('icy-metaint') ?? 0);
  const makesSense = interval >= ICY_INTERVAL_MIN_BYTES && interval <= ICY_INTERVAL_MAX_BYTES;
  return Number.isInteger(interval) && makesSense ? interval : undefined;
}
