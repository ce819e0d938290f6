/**
 * Keys that a far end sends in two ways, by SIP INFO beside telephone-events or tones: each is told once, the first
 * time that it comes. What comes in the audio is known at its end, and the tone of it some 300 ms later.
 */
import { SIP_TWIN_KEY_MS, SIP_TWIN_KEYS_MAX } from '../../limits.ts';

interface Key {
  readonly digit: string;
  /** ms, when it was known. */
  readonly at: number;
}

/** Takes the first of them that is the same key, no longer ago than `ms`. False: there is none. */
function taken(keys: Key[], digit: string, now: number, ms: number): boolean {
  const place = keys.findIndex((each) => each.digit === digit && now - each.at <= ms);
  if (place >= 0) keys.splice(place, 1);
  return place >= 0;
}

export class TwinKeys {
  /** Keys that were told and have met no twin yet. */
  readonly #byInfo: Key[] = [];
  readonly #byAudio: Key[] = [];

  /** Whether a key that came by INFO was told already, as it came in the audio. */
  isToldByAudio(digit: string, now: number): boolean {
    return taken(this.#byAudio, digit, now, SIP_TWIN_KEY_MS) || this.#keep(this.#byInfo, digit, now);
  }

  /** Whether a key that came in the audio, and lasted for `durationMs`, was told already, as it came by INFO. */
  isToldByInfo(digit: string, durationMs: number, now: number): boolean {
    return taken(this.#byInfo, digit, now, durationMs + SIP_TWIN_KEY_MS) || this.#keep(this.#byAudio, digit, now);
  }

  /** Whether a key that goes down in the audio now was told already, as it came by INFO. */
  isPressToldByInfo(digit: string, now: number): boolean {
    return this.#byInfo.some((each) => each.digit === digit && now - each.at <= SIP_TWIN_KEY_MS);
  }

  #keep(keys: Key[], digit: string, at: number): false {
    if (keys.push({ digit, at }) > SIP_TWIN_KEYS_MAX) keys.shift();
    return false;
  }
}
