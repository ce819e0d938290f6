/**
 * The face of a leg whose audio is bytes in and out of this process instead of RTP: what a WebSocket Session speaks
 * through.
 */

import type { LegAudio, LegCounters } from '../audio.ts';

/**
 * Raw mono audio (interface, Sessions): little-endian PCM16 at 8000, 16000, 24000 or 48000 Hz, or G.711 mu-law at 8000
 * Hz.
 */
export interface StreamFormat {
  readonly encoding: 'pcm_s16le' | 'mulaw';
  readonly rateHz: number;
}

export interface StreamLegOptions {
  /** The format of the frames that `onFrame` is given. */
  readonly fromSession: StreamFormat;
  /** The format of the audio that `write` takes. */
  readonly toSession: StreamFormat;
  /** 20 ms of what the Session says to the stream, silence included, one for each tick. */
  onFrame(frame: Uint8Array): void;
  /** Called after a refused `write`, when there is room again. */
  onRoom(): void;
  /** A buffer that was not empty has been played out and has stayed empty for 200 ms. */
  onPlayed(durationMs: number): void;
  /** All that was written before this mark has been heard. */
  onMark(name: string): void;
}

export interface StreamLeg extends LegAudio {
  /**
   * Audio to the Session, of any size; an odd byte waits for the next. It is played in real time from a buffer of 60 s.
   * False: there is no room and nothing was taken; `onRoom` follows.
   */
  write(bytes: Uint8Array): boolean;
  /** Drops what is buffered, within a frame. Marks not reached yet are told at once. */
  clear(): void;
  /** Stops the playing of what is buffered, and of what is written from now on, or goes on with it. */
  pause(on: boolean): void;
  /** Adds a mark after the audio so far. Returns false when too many marks are waiting. */
  mark(name: string): boolean;
  close(): Promise<LegCounters>;
}
