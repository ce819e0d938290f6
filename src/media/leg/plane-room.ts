/** One room on the main thread. It lives on one worker; legs that join move there. */
import type { DecoderThread } from '../decode/decoder.ts';
import type { MediaRecording, MediaRoom, PlaybackControl, PlayOptions, RecordOptions, RoomNotice } from '../engine.ts';
import { Playbacks } from '../playback/playbacks.ts';
import { type RecordingEars, Recordings } from '../recording/recordings.ts';
import type { LegEars, MediaWorker } from '../worker/media-worker.ts';
import type { NoticeRecord } from '../worker/notice.ts';

/** Sources are decoded at this rate for a room: its members may come to be of any. */
const ROOM_PLAYBACK_HZ = 16_000;

export interface PlaneRoomOptions {
  readonly number: number;
  readonly worker: MediaWorker;
  readonly decoders: DecoderThread;
  readonly notify: (notice: RoomNotice) => void;
  readonly nextPlayback: () => number;
  readonly nextNumber: () => number;
  readonly recordings: RecordingEars;
  /** The room is over; called once. */
  readonly closed: () => void;
}

export class PlaneRoom implements MediaRoom, LegEars {
  readonly number: number;
  readonly worker: MediaWorker;
  readonly #playbacks: Playbacks;
  readonly #recordings: Recordings;
  readonly #notify: (notice: RoomNotice) => void;
  readonly #closed: () => void;
  #closing: Promise<void> | undefined;
  #finished: (() => void) | undefined;
  #over = false;

  constructor(options: PlaneRoomOptions) {
    this.number = options.number;
    this.worker = options.worker;
    this.#notify = options.notify;
    this.#closed = options.closed;
    this.#playbacks = new Playbacks({
      id: options.number,
      order: (order) => this.worker.order(order),
      decoders: options.decoders,
      notify: options.notify,
      nextPlayback: options.nextPlayback,
    });
    this.#recordings = new Recordings({
      id: options.number,
      order: (order) => this.worker.order(order),
      notify: options.notify,
      nextNumber: options.nextNumber,
      ears: options.recordings,
    });
    this.worker.attach(this.number, this);
    this.worker.order({ type: 'open room', leg: this.number });
  }

  play(options: PlayOptions): void {
    this.#playbacks.play(options, ROOM_PLAYBACK_HZ);
  }

  stopPlayback(operationUuid: string): void {
    this.#playbacks.stop(operationUuid);
  }

  controlPlayback(operationUuid: string, control: PlaybackControl): void {
    this.#playbacks.control(operationUuid, control);
  }

  setPlaybackVolume(percent: number): void {
    this.worker.order({ type: 'playback volume', leg: this.number, percent: bounded(percent) });
  }

  record(options: RecordOptions): MediaRecording {
    return this.#recordings.record(options);
  }

  setVoiceActivity(on: boolean): void {
    this.worker.order({ type: 'voices', leg: this.number, on });
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#finished = resolve;
      this.#playbacks.close();
      this.#recordings.close();
      if (this.#over) resolve();
      else this.worker.order({ type: 'close room', leg: this.number });
    });
    return this.#closing;
  }

  notice(record: NoticeRecord): void {
    this.#playbacks.notice(record);
  }

  /** Closed, or lost with its worker. */
  get over(): boolean {
    return this.#over;
  }

  closed(): void {
    if (this.#over) return;
    this.#over = true;
    this.worker.detach(this.number);
    this.#closed();
    this.#finished?.();
  }

  lost(): void {
    if (this.#over) return;
    this.#playbacks.lost();
    this.#recordings.lost();
    this.#notify({ type: 'room.lost' });
    this.closed();
  }

  opened(): void {}

  stayed(): void {}
}

/** Percent as the plane takes it. */
export const bounded = (percent: number): number => Math.min(200, Math.max(0, Math.round(percent) || 0));
