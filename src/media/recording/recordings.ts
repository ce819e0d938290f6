/** The recordings of one leg or room on the main thread. They outlive it until their files are finished. */
import { codeOf } from '../../error-facts.ts';
import { RECORDING_FINISH_MS, RECORDING_SETTLE_MS } from '../../limits.ts';
import type { RecordingFailure, RecordingNotice } from '../../notice/recording.ts';
import type { MediaRecording, RecordOptions } from '../audio.ts';
import { native } from '../native.ts';
import { NOTICE, type NoticeRecord } from '../worker/notice.ts';
import type { WorkerCommand } from '../worker/worker-command.ts';
import { mendWav } from './mend-wav.ts';

/** The listeners of recordings, by their number in the planes. Whichever worker has the leg by then tells of them. */
export type RecordingListeners = Map<number, (record: NoticeRecord) => void>;

interface RecordingsOptions {
  /** The leg or room in the plane. */
  readonly id: number;
  readonly command: (command: WorkerCommand) => void;
  readonly notify: (notice: RecordingNotice) => void;
  readonly nextNumber: () => number;
  readonly listeners: RecordingListeners;
}

/** The numbers of `RecordingFile::Fault` in native/plane/recording/recording_file.h. */
const FAULTS: readonly RecordingFailure[] = ['media_unavailable', 'cannot_open', 'cannot_write', 'too_slow', 'too_long'];

const clamped = (value: number, least: number, most: number) => Math.min(most, Math.max(least, Math.round(value) || 0));

/** A file that grows is listened to, or no longer is. */
export const followRecording = (path: string, followed: boolean): void => native.recordFollow(path, followed);

export class PlaneRecordings {
  readonly #options: RecordingsOptions;
  readonly #live = new Map<number, RecordOptions>();
  #over = false;

  constructor(options: RecordingsOptions) {
    this.#options = options;
  }

  record(options: RecordOptions): MediaRecording {
    const { id, command, listeners, nextNumber } = this.#options;
    const recording = nextNumber();
    const { recordingUuid, path, includeGaps, voiceActivity } = options;
    this.#live.set(recording, options);
    if (this.#over) {
      this.#lose(recording);
    } else {
      listeners.set(recording, (record) => this.#hear(recording, recordingUuid, record));
      command({
        type: 'record',
        leg: id,
        recording,
        path,
        ring: options.ring ?? '',
        rateHz: options.rateHz ?? 0,
        includeGaps,
        voices: voiceActivity && {
          sensitivityPercent: clamped(voiceActivity.sensitivity * 100, 0, 100),
          onsetMs: clamped(voiceActivity.speechDurationMs, 20, 3_600_000),
          releaseMs: clamped(voiceActivity.silenceDurationMs, 20, 3_600_000),
        },
      });
    }
    return {
      mask: () => command({ type: 'mask', leg: id, recording, masked: true }),
      unmask: () => command({ type: 'mask', leg: id, recording, masked: false }),
      stop: () => command({ type: 'stop recording', leg: id, recording }),
    };
  }

  /**
   * The leg or room is being closed, which ends its recordings; one that does not tell of its end in time has failed.
   */
  close(): void {
    this.#over = true;
    if (this.#live.size === 0) return;
    setTimeout(() => this.#loseAll(), RECORDING_FINISH_MS).unref();
  }

  /** The plane is gone; what it had queued is still written, and would be more than the mended sizes say. */
  lost(): void {
    this.#over = true;
    if (this.#live.size > 0) setTimeout(() => this.#loseAll(), RECORDING_SETTLE_MS);
  }

  #loseAll(): void {
    for (const recording of [...this.#live.keys()]) this.#lose(recording);
  }

  /** Nobody writes it any more: what there is of its file is made whole here. */
  #lose(recording: number): void {
    const options = this.#live.get(recording);
    if (options === undefined) return;
    this.#forget(recording);
    const { recordingUuid, path, ring } = options;
    const tell = (durationMs: number | undefined) =>
      this.#options.notify({ type: 'recording.failed', recordingUuid, reason: 'media_unavailable', durationMs });
    mendWav(path, ring).then(
      (mended) => tell(mended?.durationMs ?? 0),
      // A file that never was has no audio. One that the disk keeps from us may have much.
      (error: unknown) => tell(codeOf(error) === 'ENOENT' ? 0 : undefined),
    );
  }

  #forget(recording: number): void {
    this.#live.delete(recording);
    this.#options.listeners.delete(recording);
  }

  #hear(recording: number, recordingUuid: string, { kind, a, b }: NoticeRecord): void {
    const { notify } = this.#options;
    switch (kind) {
      case NOTICE.recordingStarted:
        notify({ type: 'recording.started', recordingUuid });
        break;
      case NOTICE.recordingEnded:
        this.#forget(recording);
        notify({ type: 'recording.ended', recordingUuid, durationMs: a, bytes: b });
        break;
      case NOTICE.recordingFailed:
        this.#forget(recording);
        notify({ type: 'recording.failed', recordingUuid, reason: FAULTS[a] ?? 'cannot_write', durationMs: b });
        break;
      case NOTICE.speechStarted:
        notify({ type: 'speech.started', recordingUuid, precedingSilenceMs: a === 1 ? undefined : b });
        break;
      case NOTICE.speechEnded:
        notify({ type: 'speech.ended', recordingUuid });
        break;
    }
  }
}
