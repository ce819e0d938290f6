/**
 * Removes recordings that are past their retention. One that cannot be removed keeps no other from it, and is tried
 * again at the next sweep. A recording that another node removed while this one was away is removed here too: until
 * then its file is in this DATA_DIR, and may have been uploaded since. A file that no row knows, as after a restore of
 * an older database, goes when it is as old as a recording may become.
 */
import { stat } from 'node:fs/promises';
import type { Clock } from '../../clock.ts';
import { isRecordingUuid } from '../../id.ts';
import { RETENTION_BATCH_MAX_ROWS, RETENTION_FAILURES_MAX, RETENTION_MAX_BATCHES, RETENTION_STEP_ROWS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { ObjectError } from '../../recording-storage/s3/object-error.ts';
import type { RecordingStorage } from '../../recording-storage/storage.ts';

export interface RetentionRows {
  expired(before: number): Promise<readonly string[]>;
  removed(recordingUuids: readonly string[], at: number): Promise<void>;
  areRemoved(recordingUuids: readonly string[]): Promise<ReadonlyMap<string, boolean>>;
  mayRemove(): Promise<boolean>;
}

interface RetentionOptions {
  readonly storage: Pick<RecordingStorage, 'remove' | 'names' | 'path'>;
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
  #unknown = 0;

  constructor(options: RetentionOptions) {
    this.#options = options;
  }

  /** The recordings here that the sweep has found no row of, and left. */
  get unknown(): number {
    return this.#unknown;
  }

  /**
   * Returns how many recordings were removed: none while the clock is not trusted with it. Rejects where the store or
   * the database is away, or refuses one recording after the other; what was removed by then stays so, and is noted.
   */
  async sweep(): Promise<number> {
    const { rows, clock, retentionMs } = this.#options;
    let gone = 0;
    if (!(await rows.mayRemove())) return gone;
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

  /** Removes what is here of recordings that are removed, or that are old and not known. */
  async #removeLeft(): Promise<void> {
    const { storage, rows } = this.#options;
    const here: string[] = [];
    const remove = async () => {
      const names = here.splice(0);
      const areRemoved = await rows.areRemoved(names);
      for (const recordingUuid of names)
        if (areRemoved.get(recordingUuid) ?? (await this.#isStray(recordingUuid))) await this.#isRemoved(recordingUuid);
    };
    for await (const recordingUuid of storage.names()) if (here.push(recordingUuid) === RETENTION_STEP_ROWS) await remove();
    await remove();
  }

  /** Whether the file of a recording that no row knows is past its retention. Other files are the operator's. */
  async #isStray(recordingUuid: string): Promise<boolean> {
    const { storage, clock, retentionMs } = this.#options;
    if (!isRecordingUuid(recordingUuid)) return false;
    const changedAt = await stat(storage.path(recordingUuid)).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined, // What is in the cache alone goes from there by itself.
    );
    if (changedAt === undefined) return false;
    if (changedAt < clock.now() - retentionMs) return true;
    this.#unknown += 1;
    return false;
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
