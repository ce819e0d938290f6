/** The dialect of one connection: how audio and everything beside it is written. */
import { extentOf } from '../bounds/nesting.ts';
import type { BotOrder, RoomNews } from '../call/ports/leg.ts';
import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX, WEBSOCKET_MARK_MAX_CHARS } from '../limits.ts';
import type { StreamFormat } from '../media/leg/stream.ts';

export interface DialectOptions {
  readonly sessionUuid: string;
  readonly appUuid: string;
  readonly fromSession: StreamFormat;
  readonly toSession: StreamFormat;
  readonly parameters: Readonly<Record<string, string>>;
  readonly phoneSessionUuid: string | undefined;
  /** Obeys the bot, and resolves with the reason where it is refused. */
  order(order: BotOrder): Promise<string | undefined>;
  send(text: string): void;
  sendBinary(bytes: Uint8Array): void;
  /** Audio to the Session; false: there is no room for it now. */
  write(bytes: Uint8Array): boolean;
  clear(): void;
  /** Stops the playing of what was written, or goes on with it. */
  pause(on: boolean): void;
  /** Adds a mark after the audio so far. Returns false when too many marks wait. */
  mark(name: string): boolean;
}

export interface Dialect {
  /** The connection is open. */
  start(): void;
  /** 20 ms of the Session's audio. */
  frame(bytes: Uint8Array): void;
  /** A mark has been reached. */
  played(name: string): void;
  /** Something happened in the Session's Room, or a key was pressed on its phone Session. */
  hear(news: RoomNews): void;
  /** We are about to close. */
  stop(): void;
  /** Takes what came. Returns false when there is no room now: it is offered again later. */
  binary(bytes: Uint8Array): boolean;
  /** Text messages are read; else they are ignored. */
  readonly readsText: boolean;
  text(text: string): boolean;
}

/** The interface's own: raw audio in binary messages, and text means nothing. */
export class RawAudio implements Dialect {
  readonly readsText = false;
  readonly #options: DialectOptions;

  constructor(options: DialectOptions) {
    this.#options = options;
  }

  start(): void {}
  played(): void {}
  hear(): void {}
  stop(): void {}

  frame(bytes: Uint8Array): void {
    this.#options.sendBinary(bytes);
  }

  binary(bytes: Uint8Array): boolean {
    return this.#options.write(bytes);
  }

  text(): boolean {
    return true;
  }
}

/** Code points, not the units of UTF-16. */
const MARK_NAME = new RegExp(`^[\\s\\S]{0,${WEBSOCKET_MARK_MAX_CHARS}}$`, 'u');

/** Tells whether a mark may have that name. */
export const isMarkName = (name: unknown): name is string => typeof name === 'string' && MARK_NAME.test(name);

/**
 * The object of a JSON text message. Undefined where the text is no JSON, no object, nested too deep, or of more fields
 * than all messages have: a megabyte of them takes 50 ms to be read.
 */
export function objectOf(text: string): object | undefined {
  try {
    const { depth, members } = extentOf(text);
    if (depth > JSON_DEPTH_MAX || members > JSON_MEMBERS_MAX) return undefined;
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
