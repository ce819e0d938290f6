/** The recordings under way of one Session or Room, by name: what its machine decides of them, carried out. */

import type { RecordingEffect, RecordingRecord, RecordingTerms } from '../../machine/recording/recording.ts';
import type { MediaRecording, Recordable, RecordOptions } from '../../media/engine.ts';
import type { RecordingNotice } from '../../notice/recording.ts';

export class LiveRecordings {
  readonly #live = new Map<string, MediaRecording>();
  readonly #orderOf: (terms: RecordingTerms) => RecordOptions;

  constructor(orderOf: (terms: RecordingTerms) => RecordOptions) {
    this.#orderOf = orderOf;
  }

  /** `recorded` is undefined where there is no sound, now or any more; `fail` is told then. */
  perform(effect: RecordingEffect, recorded: Recordable | undefined, fail: (notice: RecordingNotice) => void): void {
    switch (effect.do) {
      case 'record': {
        const { recordingUuid } = effect.recording;
        const recording = recorded?.record(this.#orderOf(effect.recording));
        if (recording !== undefined) this.#live.set(recordingUuid, recording);
        else fail({ type: 'recording.failed', recordingUuid, reason: 'media_unavailable', durationMs: 0 });
        break;
      }
      case 'stop_recording':
        this.#live.get(effect.recordingUuid)?.stop();
        break;
      case 'mask_recording': {
        const recording = this.#live.get(effect.recordingUuid);
        if (effect.masked) recording?.mask();
        else recording?.unmask();
        break;
      }
    }
  }

  /** Forgets the recordings that are over. */
  settle(records: readonly RecordingRecord[]): void {
    for (const each of records) if (each.record === 'ended') this.#live.delete(each.recordingUuid);
  }
}
