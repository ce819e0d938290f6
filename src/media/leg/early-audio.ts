/**
 * The sound of a call before its stream is agreed on: a playback that is ordered already waits here, and begins with
 * the stream.
 */
import { SIP_LEG_SIGNALS_MAX } from '../../limits.ts';
import type { LegAudio, MediaNotice, MediaRecording, PlaybackControl, Player, PlayOptions, RecordOptions } from '../engine.ts';

const NO_RECORDING: MediaRecording = { mask: () => {}, unmask: () => {}, stop: () => {} };

export class EarlyAudio implements LegAudio {
  readonly #notify: (notice: MediaNotice) => void;
  #pending: PlayOptions | undefined;
  /** The commands that were given for the playback that waits. */
  #controls: PlaybackControl[] = [];

  constructor(notify: (notice: MediaNotice) => void) {
    this.#notify = notify;
  }

  play(options: PlayOptions): void {
    const replaced = this.#pending?.operationUuid;
    this.release();
    this.#pending = options;
    // The plane tells of it as well: a collection waits for the end of its prompt.
    if (replaced !== undefined && replaced !== options.operationUuid)
      this.#notify({ type: 'playback.stopped', operationUuid: replaced });
  }

  stopPlayback(operationUuid: string): void {
    if (this.#pending?.operationUuid !== operationUuid) return;
    this.release();
    this.#notify({ type: 'playback.stopped', operationUuid });
  }

  controlPlayback(operationUuid: string, control: PlaybackControl): void {
    if (this.#pending?.operationUuid === operationUuid && this.#controls.length < SIP_LEG_SIGNALS_MAX)
      this.#controls.push(control);
  }

  /** There is nothing to record: `recording.failed` follows at once. */
  record({ recordingUuid }: RecordOptions): MediaRecording {
    this.#notify({ type: 'recording.failed', recordingUuid, reason: 'media_unavailable', durationMs: 0 });
    return NO_RECORDING;
  }

  // A call joins Rooms once it is answered.
  readonly pipeCodec = 'PCMU';
  join(): void {}
  leave(): void {}
  setMuted(): void {}
  coach(): void {}
  setVolume(): boolean {
    return false;
  }

  /** Begins what waits on the stream that is agreed on now. */
  handOver(to: Player): void {
    const pending = this.#pending;
    this.#pending = undefined;
    if (pending === undefined) return;
    to.play(pending);
    for (const control of this.#controls.splice(0)) to.controlPlayback(pending.operationUuid, control);
  }

  /** Gives back what waits. */
  release(): void {
    this.#pending?.playlist.release();
    this.#pending = undefined;
    this.#controls = [];
  }
}
