/**
 * The subprotocol `sidetone.v1` (an extension): raw audio as without it, and JSON text messages beside it, only where
 * the server agreed to them.
 *
 *   platform → server   start, mark_played, dtmf            server → platform   clear, mark
 *
 * Anything else a server sends is ignored.
 */
import { WEBSOCKET_MARK_MAX_CHARS } from '../limits.ts';
import type { StreamFormat } from '../media/leg/stream.ts';
import type { Dialect, DialectOptions } from './dialect.ts';

export const SUBPROTOCOL = 'sidetone.v1';

export class ControlledAudio implements Dialect {
  readonly #options: DialectOptions;

  constructor(options: DialectOptions) {
    this.#options = options;
  }

  /** The first message: what the audio is. */
  start(): void {
    const { sessionUuid, fromSession, toSession } = this.#options;
    this.#say({
      type: 'start',
      session_uuid: sessionUuid,
      media_format: { from_session: shown(fromSession), to_session: shown(toSession) },
    });
  }

  frame(bytes: Uint8Array): void {
    this.#options.sendBinary(bytes);
  }

  /** All that was written before the mark has been heard, or was cleared. */
  played(name: string): void {
    this.#say({ type: 'mark_played', name });
  }

  digit(digit: string, durationMs: number): void {
    this.#say({ type: 'dtmf', digit, duration_ms: durationMs });
  }

  stop(): void {}

  binary(bytes: Uint8Array): boolean {
    return this.#options.write(bytes);
  }

  text(text: string): boolean {
    const message = parse(text);
    if (message?.type === 'clear') this.#options.clear();
    const name = message?.name;
    if (message?.type !== 'mark' || typeof name !== 'string' || name.length > WEBSOCKET_MARK_MAX_CHARS) return true;
    if (!this.#options.mark(name)) this.played(name);
    return true;
  }

  #say(message: Readonly<Record<string, unknown>>): void {
    this.#options.send(JSON.stringify(message));
  }
}

const shown = ({ encoding, rateHz }: StreamFormat) => ({ encoding, sample_rate: rateHz });

function parse(text: string): { readonly type?: unknown; readonly name?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
