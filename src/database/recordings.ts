/** Recordings as rows. They begin and end in the journal; their removal is written here. */
import { and, asc, inArray, isNull, lt } from 'drizzle-orm';
import { RETENTION_BATCH_MAX_ROWS } from '../limits.ts';
import type { Database } from './driver/database.ts';
import { coalesce } from './journal/coalesce.ts';
import type { RecordingRow } from './journal/recording-rows.ts';
import { recordings } from './schema.ts';

export interface RecordingStore {
  get(recordingUuid: string): Promise<RecordingRow | undefined>;
  /** Lists recordings without an end: what a process left behind. */
  unfinished(): Promise<readonly RecordingRow[]>;
  /** Lists recordings that ended before `before` (ms since the epoch) and were not removed: oldest first, a batch. */
  expired(before: number): Promise<readonly string[]>;
  removed(recordingUuids: readonly string[], at: number): Promise<void>;
}

export function recordingStore(database: Database): RecordingStore {
  return {
    get: coalesce<string, RecordingRow | undefined>({
      load: async (uuids) => {
        const rows = await database.run((on) =>
          on
            .select()
            .from(recordings)
            .where(inArray(recordings.recordingUuid, [...uuids])),
        );
        const found = new Map(rows.map((row) => [row.recordingUuid, recordingRow(row)]));
        return uuids.map((uuid) => found.get(uuid));
      },
    }),
    unfinished: async () => {
      const rows = await database.run((on) =>
        on.select().from(recordings).where(isNull(recordings.endedAt)).orderBy(asc(recordings.createdAt)),
      );
      return rows.map(recordingRow);
    },
    expired: async (before) => {
      const rows = await database.run((on) =>
        on
          .select({ recordingUuid: recordings.recordingUuid })
          .from(recordings)
          .where(and(isNull(recordings.removedAt), lt(recordings.endedAt, Math.floor(before))))
          .orderBy(asc(recordings.endedAt))
          .limit(RETENTION_BATCH_MAX_ROWS),
      );
      return rows.map((row) => row.recordingUuid);
    },
    removed: async (recordingUuids, at) => {
      if (recordingUuids.length === 0) return;
      await database.run((on) =>
        on
          .update(recordings)
          .set({ removedAt: Math.floor(at) })
          .where(and(inArray(recordings.recordingUuid, [...recordingUuids]), isNull(recordings.removedAt))),
      );
    },
  };
}

const recordingRow = (row: typeof recordings.$inferSelect): RecordingRow => ({
  recordingUuid: row.recordingUuid,
  appUuid: row.appUuid,
  sessionUuid: row.sessionUuid ?? undefined,
  roomId: row.roomId ?? undefined,
  operationUuid: row.operationUuid,
  clientState: row.clientState,
  traceparent: row.traceparent,
  createdAt: row.createdAt,
  endedAt: row.endedAt ?? undefined,
  removedAt: row.removedAt ?? undefined,
});
