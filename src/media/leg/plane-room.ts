/**
 * One room on the main thread. It lives on one worker; legs that join move there. Where that worker is lost, so are the
 * members; the room itself begins anew on another worker as soon as it is used again.
 */

import type { PlaybackControl } from '../../machine/playback/playback.ts';
import type { MediaRecording, MediaRoom, Playlist, PlayOptions, RecordOptions, RoomNotice } from '../audio.ts';
import type { DecoderThread } from '../decode/decoder.ts';
import { Playbacks } from '../playback/playbacks.ts';
import { PlaneRecordings, type RecordingListeners } from '../recording/recordings.ts';
import type { MediaWorker, PlaneListener } from '../worker/media-worker.ts';
import type { NoticeRecord } from '../worker/notice.ts';
import type { WorkerCommand } from '../worker/worker-command.ts';
import { PlaneHoldMusic } from './hold-music.ts';

/** Sources are decoded at this rate for a room: its members may come to be of any. */
const ROOM_PLAYBACK_HZ = 16_000;

interface PlaneRoomOptions {
  readonly number: number;
  readonly worker: MediaWorker;
  /** The worker to go on with where its own is lost. Undefined when none ticks. */
  readonly another: () => MediaWorker | undefined;
  readonly decoders: DecoderThread;
  readonly notify: (notice: RoomNotice) => void;
  readonly nextPlayback: () => number;
  readonly nextNumber: () => number;
  readonly recordings: RecordingListeners;
  /** The room is over; called once. */
  readonly closed: () => void;
}

/** What a room has on one worker. */
interface Place {
  readonly worker: MediaWorker;
  readonly playbacks: Playbacks;
  readonly recordings: PlaneRecordings;
  music: PlaneHoldMusic | undefined;
}

export class PlaneRoom implements MediaRoom, PlaneListener {
  readonly number: number;
  readonly #options: PlaneRoomOptions;
  #place: Place;
  /** The worker of its place is gone. */
  #isLost = false;
  #detectsVoices = false;
  #closing: Promise<void> | undefined;
  #finished: (() => void) | undefined;
  #over = false;

  constructor(options: PlaneRoomOptions) {
    this.number = options.number;
    this.#options = options;
    this.#place = this.#open(options.worker);
  }

  #open(worker: MediaWorker): Place {
    const { number: id, decoders, notify, nextPlayback, nextNumber, recordings: listeners } = this.#options;
    const command = (given: WorkerCommand) => worker.command(given);
    worker.attach(id, this);
    command({ type: 'open room', leg: id });
    const playbacks = new Playbacks({ id, command, decoders, notify, nextPlayback });
    return {
      worker,
      playbacks,
      recordings: new PlaneRecordings({ id, command, notify, nextNumber, listeners }),
      music: undefined,
    };
  }

  /** Its place, on another worker where its own was lost and one ticks. */
  #here(): Place {
    const worker = this.#isLost && this.#closing === undefined ? this.#options.another() : undefined;
    if (worker === undefined) return this.#place;
    this.#isLost = false;
    this.#place = this.#open(worker);
    if (this.#detectsVoices) this.setVoiceActivity(true);
    return this.#place;
  }

  /** The worker that mixes it, where whoever joins has to be. Undefined when it is closed, or no worker ticks. */
  seat(): MediaWorker | undefined {
    const { worker } = this.#here();
    return this.#over || this.#isLost ? undefined : worker;
  }

  /** The worker that mixes it, or did until it was lost. */
  get worker(): MediaWorker {
    return this.#place.worker;
  }

  play(options: PlayOptions): void {
    this.#here().playbacks.play(options, ROOM_PLAYBACK_HZ);
  }

  stopPlayback(operationUuid: string): void {
    this.#place.playbacks.stop(operationUuid);
  }

  controlPlayback(operationUuid: string, control: PlaybackControl): void {
    this.#place.playbacks.control(operationUuid, control);
  }

  setPlaybackVolume(percent: number): void {
    this.worker.command({ type: 'playback volume', leg: this.number, percent: wholePercent(percent) });
  }

  playMusic(playlist: Playlist, failed: (reason: string) => void): void {
    const worker = this.#closing === undefined ? this.seat() : undefined;
    if (worker === undefined) {
      playlist.release();
      return;
    }
    const { number: room } = this;
    const { decoders, nextPlayback, nextNumber } = this.#options;
    this.#place.music ??= new PlaneHoldMusic({ room, number: nextNumber(), worker, decoders, nextPlayback });
    this.#place.music.play(playlist, ROOM_PLAYBACK_HZ, failed);
  }

  stopMusic(): void {
    this.#place.music?.stop();
  }

  record(options: RecordOptions): MediaRecording {
    return this.#here().recordings.record(options);
  }

  setVoiceActivity(on: boolean): void {
    this.#detectsVoices = on;
    this.worker.command({ type: 'voices', leg: this.number, on });
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#finished = resolve;
      const { playbacks, music, recordings } = this.#place;
      playbacks.close();
      music?.close();
      recordings.close();
      if (this.#isLost) this.closed();
      else this.worker.command({ type: 'close room', leg: this.number });
    });
    return this.#closing;
  }

  notice(record: NoticeRecord): void {
    this.#place.playbacks.notice(record);
  }

  closed(): void {
    if (this.#over) return;
    this.#over = true;
    this.worker.detach(this.number);
    this.#options.closed();
    this.#finished?.();
  }

  lost(): void {
    if (this.#over || this.#isLost) return;
    this.#isLost = true;
    this.#place.playbacks.lost();
    this.#place.recordings.lost();
    this.#options.notify({ type: 'room.lost' });
    if (this.#closing !== undefined) this.closed();
  }

  opened(): void {}

  stayed(): void {}
}

/** Percent as the plane takes it. */
export const wholePercent = (percent: number): number => Math.min(200, Math.max(0, Math.round(percent) || 0));
