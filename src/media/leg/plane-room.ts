/** One room on the main thread. It lives on one worker; legs that join move there. */

import type { PlaybackControl } from '../../machine/playback/playback.ts';
import type { MediaRecording, MediaRoom, Playlist, PlayOptions, RecordOptions, RoomNotice } from '../audio.ts';
import type { DecoderThread } from '../decode/decoder.ts';
import { Playbacks } from '../playback/playbacks.ts';
import { PlaneRecordings, type RecordingListeners } from '../recording/recordings.ts';
import type { MediaWorker, PlaneListener } from '../worker/media-worker.ts';
import type { NoticeRecord } from '../worker/notice.ts';
import { PlaneHoldMusic } from './hold-music.ts';

/** Sources are decoded at this rate for a room: its members may come to be of any. */
const ROOM_PLAYBACK_HZ = 16_000;

interface PlaneRoomOptions {
  readonly number: number;
  readonly worker: MediaWorker;
  readonly decoders: DecoderThread;
  readonly notify: (notice: RoomNotice) => void;
  readonly nextPlayback: () => number;
  readonly nextNumber: () => number;
  readonly recordings: RecordingListeners;
  /** The room is over; called once. */
  readonly closed: () => void;
}

export class PlaneRoom implements MediaRoom, PlaneListener {
  readonly number: number;
  readonly worker: MediaWorker;
  readonly #playbacks: Playbacks;
  readonly #recordings: PlaneRecordings;
  readonly #notify: (notice: RoomNotice) => void;
  readonly #closed: () => void;
  readonly #openMusic: () => PlaneHoldMusic;
  #music: PlaneHoldMusic | undefined;
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
      command: (command) => this.worker.command(command),
      decoders: options.decoders,
      notify: options.notify,
      nextPlayback: options.nextPlayback,
    });
    this.#recordings = new PlaneRecordings({
      id: options.number,
      command: (command) => this.worker.command(command),
      notify: options.notify,
      nextNumber: options.nextNumber,
      listeners: options.recordings,
    });
    const { number: room, worker, decoders, nextPlayback, nextNumber } = options;
    this.#openMusic = () => new PlaneHoldMusic({ room, number: nextNumber(), worker, decoders, nextPlayback });
    this.worker.attach(this.number, this);
    this.worker.command({ type: 'open room', leg: this.number });
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
    this.worker.command({ type: 'playback volume', leg: this.number, percent: wholePercent(percent) });
  }

  playMusic(playlist: Playlist, failed: (reason: string) => void): void {
    if (this.#closing !== undefined || this.#over) {
      playlist.release();
      return;
    }
    this.#music ??= this.#openMusic();
    this.#music.play(playlist, ROOM_PLAYBACK_HZ, failed);
  }

  stopMusic(): void {
    this.#music?.stop();
  }

  record(options: RecordOptions): MediaRecording {
    return this.#recordings.record(options);
  }

  setVoiceActivity(on: boolean): void {
    this.worker.command({ type: 'voices', leg: this.number, on });
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#finished = resolve;
      this.#playbacks.close();
      this.#music?.close();
      this.#recordings.close();
      if (this.#over) resolve();
      else this.worker.command({ type: 'close room', leg: this.number });
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
export const wholePercent = (percent: number): number => Math.min(200, Math.max(0, Math.round(percent) || 0));
