/**
 * Twilio's Media Streams messages (an extension, `subprotocol: "twilio"`), so that a bot written for them works
 * unchanged: JSON text both ways, audio as mu-law at 8 kHz in base64. No subprotocol is offered in the handshake, as
 * Twilio offers none.
 *
 *   platform → server   connected, start, media, dtmf, mark, stop         server → platform   media, mark, clear
 */

import type { RoomNews } from '../call/ports/leg.ts';
import { type Dialect, type DialectOptions, isMarkName, objectOf } from './dialect.ts';

const FRAME_MS = 20;

export class TwilioMedia implements Dialect {
  readonly readsText = true;
  readonly #options: DialectOptions;
  readonly #streamSid: string;
  #sequence = 0;
  #chunk = 0;

  constructor(options: DialectOptions) {
    this.#options = options;
    this.#streamSid = `MZ${options.sessionUuid.replaceAll('-', '')}`;
  }

  start(): void {
    const { sessionUuid, appUuid, parameters, phoneSessionUuid } = this.#options;
    this.#options.send(JSON.stringify({ event: 'connected', protocol: 'Call', version: '1.0.0' }));
    this.#say('start', {
      start: {
        accountSid: appUuid,
        streamSid: this.#streamSid,
        callSid: phoneSessionUuid ?? sessionUuid,
        tracks: ['inbound'],
        mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 },
        customParameters: parameters,
      },
    });
  }

  frame(bytes: Uint8Array): void {
    this.#chunk++;
    const timestamp = String((this.#chunk - 1) * FRAME_MS);
    const payload = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
    this.#say('media', { media: { track: 'inbound', chunk: String(this.#chunk), timestamp, payload } });
  }

  played(name: string): void {
    this.#say('mark', { mark: { name } });
  }

  /** Twilio's messages know keys only. */
  hear(news: RoomNews): void {
    if (news.type === 'dtmf') this.#say('dtmf', { dtmf: { track: 'inbound_track', digit: news.digit } });
  }

  stop(): void {
    const { sessionUuid, appUuid, phoneSessionUuid } = this.#options;
    this.#say('stop', { stop: { accountSid: appUuid, callSid: phoneSessionUuid ?? sessionUuid } });
  }

  /** A binary message is none of Twilio's. */
  binary(): boolean {
    return true;
  }

  text(text: string): boolean {
    const message: Message | undefined = objectOf(text);
    switch (message?.event) {
      case 'media': {
        const payload = message.media?.payload;
        return typeof payload === 'string' ? this.#options.write(Buffer.from(payload, 'base64')) : true;
      }
      case 'mark': {
        const name = message.mark?.name;
        if (!isMarkName(name)) return true;
        if (!this.#options.mark(name)) this.played(name);
        return true;
      }
      case 'clear':
        this.#options.clear();
        return true;
      default:
        return true;
    }
  }

  #say(event: string, more: Readonly<Record<string, unknown>>): void {
    this.#sequence++;
    this.#options.send(JSON.stringify({ event, sequenceNumber: String(this.#sequence), ...more, streamSid: this.#streamSid }));
  }
}

interface Message {
  readonly event?: unknown;
  readonly media?: { readonly payload?: unknown };
  readonly mark?: { readonly name?: unknown };
}
