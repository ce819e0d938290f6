/**
 * The subprotocol `sidetone.v1` (an extension): JSON text messages beside the audio, only where the application's server agreed to it.
 *
 *   platform → server   start, mark_played            server → platform   clear, mark
 *
 * Anything else a server sends is ignored, as text is without the subprotocol.
 */
import { WEBSOCKET_MARK_MAX_CHARS } from '../limits.ts';
import type { StreamFormat } from '../media/stream.ts';

export const SUBPROTOCOL = 'sidetone.v1';

export interface ControlOptions {
  send(text: string): void;
  clear(): void;
  mark(name: string): boolean;
}

export class ControlMessages {
  readonly #options: ControlOptions;

  constructor(options: ControlOptions) {
    this.#options = options;
  }

  /** The first message: what the audio is. */
  start(sessionUuid: string, fromSession: StreamFormat, toSession: StreamFormat): void {
    this.#say({
      type: 'start',
      session_uuid: sessionUuid,
      media_format: { from_session: shown(fromSession), to_session: shown(toSession) },
    });
  }

  /** What was written before the mark has been heard, or was cleared. */
  played(name: string): void {
    this.#say({ type: 'mark_played', name });
  }

  hear(text: string): void {
    const message = parse(text);
    if (message?.type === 'clear') this.#options.clear();
    const name = message?.name;
    if (message?.type !== 'mark' || typeof name !== 'string' || name.length > WEBSOCKET_MARK_MAX_CHARS) return;
    if (!this.#options.mark(name)) this.#say({ type: 'mark_played', name });
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
