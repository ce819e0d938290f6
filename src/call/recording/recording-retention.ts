/**
 * Removes recordings that are past their retention. One that cannot be removed keeps no other from it, and is tried
 * again at the next sweep. A recording that another node removed while this one was away is removed here too: until
 * then its file is in this DATA_DIR, and may have been uploaded since.
 */
import type { Clock } from '../../clock.ts';
import { RETENTION_BATCH_MAX_ROWS, RETENTION_FAILURES_MAX, RETENTION_MAX_BATCHES, RETENTION_STEP_ROWS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { ObjectError } from '../../recording-storage/s3/object-error.ts';
import type { RecordingStorage } from '../../recording-storage/storage.ts';

export interface RetentionRows {
  expired(before: number): Promise<readonly string[]>;
  removed(recordingUuids: readonly string[], at: number): Promise<void>;
  removedOf(recordingUuids: readonly string[]): Promise<readonly string[]>;
}

interface RetentionOptions {
  readonly storage: Pick<RecordingStorage, 'remove' | 'names'>;
  readonly rows: RetentionRows;
  readonly clock: Clock;
  readonly log: Log;
  readonly retentionMs: number;
}

/** One sweep. */
export class RecordingRetention {
  readonly #options: RetentionOptions;
  /** Failures since the last removal. */
  #failures = 0;
  #isTold = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  /**
   * Returns how many recordings were removed. Rejects where the store or the database is away, or refuses one recording
   * after the other; what was removed by then stays so, and is noted.
   */
  async sweep(): Promise<number> {
    const { rows, clock, retentionMs } = this.#options;
    let gone = 0;
    for (let batch = 0; batch < RETENTION_MAX_BATCHES; batch += 1) {
      const expired = await rows.expired(clock.now() - retentionMs);
      const removed = await this.#remove(expired);
      gone += removed;
      if (expired.length < RETENTION_BATCH_MAX_ROWS || removed === 0) break;
    }
    await this.#removeLeft();
    return gone;
  }

  async #remove(expired: readonly string[]): Promise<number> {
    const { rows, clock } = this.#options;
    let gone = 0;
    for (let at = 0; at < expired.length; at += RETENTION_STEP_ROWS) {
      const removed: string[] = [];
      try {
        for (const recordingUuid of expired.slice(at, at + RETENTION_STEP_ROWS))
          if (await this.#isRemoved(recordingUuid)) removed.push(recordingUuid);
      } finally {
        if (removed.length > 0) await rows.removed(removed, clock.now());
      }
      gone += removed.length;
    }
    return gone;
  }

  /** Removes what is here of recordings that are removed. */
  async #removeLeft(): Promise<void> {
    const { storage, rows } = this.#options;
    const here: string[] = [];
    const remove = async () => {
      for (const recordingUuid of await rows.removedOf(here.splice(0))) await this.#isRemoved(recordingUuid);
    };
    for await (const recordingUuid of storage.names()) if (here.push(recordingUuid) === RETENTION_STEP_ROWS) await remove();
    await remove();
  }

  /** Removes one. Resolves with false when it could not be removed, as others may. */
  async #isRemoved(recordingUuid: string): Promise<boolean> {
    const { storage, log } = this.#options;
    try {
      await storage.remove(recordingUuid);
      this.#failures = 0;
      return true;
    } catch (error) {
      const isAway = error instanceof ObjectError && error.fault === 'away';
      if (isAway || ++this.#failures === RETENTION_FAILURES_MAX) throw error;
      const fields = { recording_uuid: recordingUuid, error: String(error) };
      if (!this.#isTold)
        log.error(fields, 'a recording past its retention could not be removed; see DeleteObject, or its folder');
      this.#isTold = true;
      return false;
    }
  }
}
