/**
 * Reads a key from the body of INFO: `application/dtmf-relay` (Signal=, Duration=) or `application/dtmf` (the key
 * alone).
 */
import { DTMF_DURATION_DEFAULT_MS, DTMF_DURATION_MAX_MS, INFO_KEYS_AT_ONCE, INFO_KEYS_PER_SEC } from '../../limits.ts';

/** No body with a key is as long as this. */
const BODY_MAX_BYTES = 256;
const decoder = new TextDecoder();
const KEY = /^[0-9*#A-D]$/;
/** Keys 10 and 11 of RFC 4733, which some peers write as numbers. */
const NUMBERED: ReadonlyMap<string, string> = new Map([
  ['10', '*'],
  ['11', '#'],
]);

/** The key of an INFO. Undefined when it carries none. */
export function digitOfInfo(
  contentType: string,
  body: Uint8Array,
): { readonly digit: string; readonly durationMs: number } | undefined {
  if (body.length > BODY_MAX_BYTES) return undefined;
  const text = decoder.decode(body);
  if (contentType === 'application/dtmf') return key(text.trim(), undefined);
  if (contentType !== 'application/dtmf-relay') return undefined;
  const signal = /^[ \t]*Signal[ \t]*=[ \t]*([^\s]{1,2})[ \t]*\r?$/im.exec(text)?.[1];
  const duration = /^[ \t]*Duration[ \t]*=[ \t]*([0-9]{1,6})[ \t]*\r?$/im.exec(text)?.[1];
  return signal === undefined ? undefined : key(signal, duration);
}

function key(text: string, duration: string | undefined): { readonly digit: string; readonly durationMs: number } | undefined {
  const digit = NUMBERED.get(text) ?? text.toUpperCase();
  if (!KEY.test(digit)) return undefined;
  const durationMs = duration === undefined ? DTMF_DURATION_DEFAULT_MS : Math.min(Number(duration), DTMF_DURATION_MAX_MS);
  return { digit, durationMs };
}

/**
 * The keys of one call by INFO. Each is an event that is stored, so of a flood no more are taken than anybody presses.
 */
export class InfoKeys {
  #left = INFO_KEYS_AT_ONCE;
  #at = -Infinity;

  /** Takes one, where there may be one more at `now`, in milliseconds. */
  take(now: number): boolean {
    this.#left = Math.min(INFO_KEYS_AT_ONCE, this.#left + ((now - this.#at) * INFO_KEYS_PER_SEC) / 1000);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
