/**
 * The subprotocol `sidetone.v1` (an extension): raw audio as without it, and JSON text messages beside it, only where
 * the server agreed to them.
 *
 *   platform → server   start, mark_played, dtmf, member_joined, member_left, speech_started, speech_ended, error
 *   server → platform   clear, mark, pause, resume, send_dtmf, transfer, hangup
 *
 * Anything else a server sends is answered with an `error`, so that a misspelt order is not taken for an obeyed one.
 */

import type { BotOrder, RoomNews } from '../call/ports/leg.ts';
import { BOT_ORDERS_MAX, WEBSOCKET_MARK_MAX_CHARS } from '../limits.ts';
import type { StreamFormat } from '../media/leg/stream.ts';
import { type Dialect, type DialectOptions, isMarkName, objectOf } from './dialect.ts';

export const SUBPROTOCOL = 'sidetone.v1';

const NO_OBJECT = 'a text message must be a JSON object';
const NO_NAME = `mark: name must be a string of at most ${WEBSOCKET_MARK_MAX_CHARS} characters`;
const NO_TYPE = 'type must be clear, mark, pause, resume, send_dtmf, transfer or hangup';

export class ControlledAudio implements Dialect {
  readonly readsText = true;
  readonly #options: DialectOptions;
  /** Orders that are being obeyed. */
  #pending = 0;
  /** The server has paused what it said. */
  #paused = false;

  constructor(options: DialectOptions) {
    this.#options = options;
  }

  /** The first message: what the audio is, and what the application has to say to its bot. */
  start(): void {
    const { sessionUuid, fromSession, toSession, parameters, phoneSessionUuid } = this.#options;
    this.#say({
      type: 'start',
      session_uuid: sessionUuid,
      ...(phoneSessionUuid === undefined ? {} : { phone_session_uuid: phoneSessionUuid }),
      media_format: { from_session: shown(fromSession), to_session: shown(toSession) },
      parameters,
    });
  }

  frame(bytes: Uint8Array): void {
    this.#options.sendBinary(bytes);
  }

  /** All that was written before the mark has been heard, or was cleared. */
  played(name: string): void {
    this.#say({ type: 'mark_played', name });
  }

  hear(news: RoomNews): void {
    this.#say(news);
  }

  stop(): void {}

  binary(bytes: Uint8Array): boolean {
    const isTaken = this.#options.write(bytes);
    // Nothing behind it is read until there is room, a `resume` or `clear` neither.
    if (!isTaken && this.#paused) {
      this.#pause(false);
      this.#say({ type: 'error', message: 'pause: the buffer is full, so that it plays on' });
    }
    return isTaken;
  }

  #pause(on: boolean): void {
    this.#paused = on;
    this.#options.pause(on);
  }

  text(text: string): boolean {
    const message: Message | undefined = objectOf(text);
    switch (message?.type) {
      case 'clear':
        this.#options.clear();
        return true;
      case 'pause':
      case 'resume':
        this.#pause(message.type === 'pause');
        return true;
      case 'mark':
        this.#mark(message.name);
        return true;
      case 'hangup':
      case 'transfer':
      case 'send_dtmf':
        void this.#order(message.type, message);
        return true;
      default:
        this.#say({ type: 'error', message: message === undefined ? NO_OBJECT : NO_TYPE });
        return true;
    }
  }

  #mark(name: unknown): void {
    if (!isMarkName(name)) this.#say({ type: 'error', message: NO_NAME });
    else if (!this.#options.mark(name)) this.played(name);
  }

  async #order(type: BotOrder['type'], message: Message): Promise<void> {
    const order = orderOf(type, message);
    if (typeof order === 'string') return this.#say({ type: 'error', message: order });
    if (this.#pending >= BOT_ORDERS_MAX) return this.#say({ type: 'error', message: `${type}: too many orders at once` });
    this.#pending += 1;
    const refused = await this.#options.order(order).finally(() => {
      this.#pending -= 1;
    });
    if (refused !== undefined) this.#say({ type: 'error', message: `${type}: ${refused}` });
  }

  #say(message: Readonly<Record<string, unknown>>): void {
    this.#options.send(JSON.stringify(message));
  }
}

/** The order that a message gives, or what is wrong with it. */
function orderOf(type: BotOrder['type'], { session_uuid: sessionUuid, to, digits }: Message): BotOrder | string {
  if (sessionUuid !== undefined && typeof sessionUuid !== 'string') return `${type}: session_uuid must be a string`;
  if (type === 'hangup') return { type, sessionUuid };
  if (type === 'transfer') return typeof to === 'string' ? { type, sessionUuid, to } : 'transfer: to must be a string';
  return typeof digits === 'string' ? { type, sessionUuid, digits } : 'send_dtmf: digits must be a string';
}

const shown = ({ encoding, rateHz }: StreamFormat) => ({ encoding, sample_rate: rateHz });

interface Message {
  readonly type?: unknown;
  readonly name?: unknown;
  readonly session_uuid?: unknown;
  readonly to?: unknown;
  readonly digits?: unknown;
}
