/**
 * Whether the audio of a far end is listened to for tones. It is
 * - when no telephone-event was agreed,
 * - until the far end has sent its first keys as telephone-events, because some trunks agree on them and send tones
 *   only,
 * - during a secure collection, because some trunks send both and a digit of a card must not pass unheard.
 *
 * The media plane tells a key that comes both ways once (native/plane/leg/inband_keys.h).
 */
import { SIP_LEG_EVENT_KEYS } from '../../limits.ts';

export class ToneListening {
  readonly #listen: (on: boolean) => void;
  #isSecure = false;
  /** Whether telephone-events were agreed. Undefined: no stream was agreed on yet. */
  #hasEvents: boolean | undefined;
  /** Keys that have come as telephone-events. */
  #events = 0;
  #isOn = false;

  /** `listen` is called with each change, never before a stream was agreed on. */
  constructor(listen: (on: boolean) => void) {
    this.#listen = listen;
  }

  /** A secure collection goes on, or has ended. */
  secure(on: boolean): void {
    this.#isSecure = on;
    this.#review();
  }

  /** The stream was agreed on, with telephone-events or without. */
  agreed(hasEvents: boolean): void {
    this.#hasEvents = hasEvents;
    this.#review();
  }

  /** A key was heard in the audio. */
  heard(method: 'rfc4733' | 'inband'): void {
    if (method === 'rfc4733') this.#events += 1;
    this.#review();
  }

  #review(): void {
    if (this.#hasEvents === undefined) return;
    const on = this.#isSecure || !this.#hasEvents || this.#events < SIP_LEG_EVENT_KEYS;
    if (on === this.#isOn) return;
    this.#isOn = on;
    this.#listen(on);
  }
}
