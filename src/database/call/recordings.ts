/** Recordings as rows. They begin and end in the journal; their removal is written here. */
import { and, asc, desc, eq, gte, inArray, isNotNull, isNull, lt, sql } from 'drizzle-orm';
import { KEPT_MAX_PAGES, KEPT_PAGE_ROWS, RETENTION_BATCH_MAX_ROWS } from '../../limits.ts';
import type { Database, Row } from '../driver/database.ts';
import { coalesce } from '../journal/coalesce.ts';
import type { RecordingRow } from '../journal/recording-rows.ts';
import { isOfApp, olderThan, type PageEnd } from '../newest-first.ts';
import { recordings } from '../schema.ts';

/** The row of a recording, with what its end has told. */
export interface StoredRecordingRow extends RecordingRow {
  /** The length of the sound. It is undefined before the end, and where the file was out of reach then. */
  readonly durationMs: number | undefined;
}

/** Which recordings of an application are listed. */
export interface RecordingQuery {
  readonly sessionUuid: string | undefined;
  readonly roomId: string | undefined;
  /** Inclusive, ms since the epoch. */
  readonly createdAfter: number | undefined;
  /** Exclusive. */
  readonly createdBefore: number | undefined;
  /** The recording that the page before ended with: older ones are listed. */
  readonly after: PageEnd | undefined;
  readonly limit: number;
}

export interface RecordingStore {
  get(recordingUuid: string): Promise<StoredRecordingRow | undefined>;
  /** Lists what an application keeps, newest first: recordings under way and ended ones, without those removed. */
  list(appUuid: string, query: RecordingQuery): Promise<readonly StoredRecordingRow[]>;
  /**
   * Lists recordings without an end on volumes that no live node has: what processes left behind. `own` counts this
   * process's volume among them, which is right only before its first recording.
   */
  unfinished(own: boolean): Promise<readonly RecordingRow[]>;
  /** Lists recordings on a volume that were ended by others while the volume was away, so that no file was mended. */
  unmended(volumeId: string): Promise<readonly RecordingRow[]>;
  /** Tells the length of one of those, in milliseconds, and its bytes. */
  mended(recordingUuid: string, durationMs: number, bytes: number): Promise<void>;
  /**
   * Tells what each application keeps in recordings, in bytes: all that are not removed, without those under way on
   * that volume. What has no size in its row counts as sound of 8 kHz.
   */
  kept(volumeId: string, pageRows?: number): Promise<ReadonlyMap<string, number>>;
  /** Notes the bytes of recordings. */
  sized(sizes: ReadonlyMap<string, number>): Promise<void>;
  /** Lists recordings that ended before `before` (ms since the epoch) and were not removed: oldest first, a batch. */
  expired(before: number): Promise<readonly string[]>;
  removed(recordingUuids: readonly string[], at: number): Promise<void>;
  /** Tells of some recordings whether they were removed past their retention. One that is not known is left out. */
  areRemoved(recordingUuids: readonly string[]): Promise<ReadonlyMap<string, boolean>>;
  /** Whether the clock is trusted with the removal of recordings (`time-witness.ts`). */
  mayRemove(): Promise<boolean>;
}

/** Makes the store. `nodeId` names this process. */
export function recordingStore(database: Database, nodeId: string, mayRemove: () => Promise<boolean>): RecordingStore {
  return {
    mayRemove,
    get: coalesce<string, StoredRecordingRow | undefined>({ load: (uuids) => loadRecordings(database, uuids) }),
    list: (appUuid, query) => listed(database, appUuid, query),
    unfinished: async (own) => {
      const left = sql`NOT EXISTS (SELECT FROM nodes AS n WHERE n.volume_id = ${recordings.volumeId} AND n.dead_at IS NULL
        AND NOT (n.node_id = ${nodeId} AND ${own}::boolean))`;
      const rows = await database.run((on) =>
        on
          .select()
          .from(recordings)
          .where(and(isNull(recordings.endedAt), left))
          .orderBy(asc(recordings.createdAt)),
      );
      return rows.map(recordingRow);
    },
    unmended: async (volumeId) => {
      const here = and(eq(recordings.volumeId, volumeId), isNotNull(recordings.endedAt), isNull(recordings.durationMs));
      const rows = await database.run((on) =>
        on
          .select()
          .from(recordings)
          .where(and(here, isNull(recordings.removedAt)))
          .orderBy(asc(recordings.endedAt))
          .limit(RETENTION_BATCH_MAX_ROWS),
      );
      return rows.map(recordingRow);
    },
    kept: (volumeId, pageRows) => keptOf(database, volumeId, pageRows),
    sized: async (sizes) => {
      const rows = [...sizes].map(([recording_uuid, bytes]) => ({ recording_uuid, bytes }));
      await database.query(SIZED, [JSON.stringify(rows)]);
    },
    mended: async (recordingUuid, durationMs, bytes) => {
      await database.run((on) =>
        on
          .update(recordings)
          .set({ durationMs: Math.floor(durationMs), bytes })
          .where(eq(recordings.recordingUuid, recordingUuid)),
      );
    },
    expired: async (before) => {
      // What lies on the disk of a live node is that node's to remove.
      const notOthers = sql`NOT EXISTS (SELECT FROM nodes AS n WHERE n.volume_id = ${recordings.volumeId} AND n.dead_at IS NULL
        AND n.node_id <> ${nodeId} AND ${recordings.volumeId} <> '')`;
      const rows = await database.run((on) =>
        on
          .select({ recordingUuid: recordings.recordingUuid })
          .from(recordings)
          .where(and(isNull(recordings.removedAt), lt(recordings.endedAt, Math.floor(before)), notOthers))
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
          // The row says for a year that it was removed: what the application said of a person goes at once.
          .set({ clientState: '', removedAt: Math.floor(at) })
          .where(and(inArray(recordings.recordingUuid, [...recordingUuids]), isNull(recordings.removedAt))),
      );
    },
    areRemoved: (recordingUuids) => removalsOf(database, recordingUuids),
  };
}

async function listed(database: Database, appUuid: string, query: RecordingQuery): Promise<readonly StoredRecordingRow[]> {
  const rows = await database.run((on) =>
    on
      .select()
      .from(recordings)
      .where(matching(appUuid, query))
      .orderBy(desc(recordings.createdAt), desc(recordings.recordingUuid))
      .limit(query.limit),
  );
  return rows.map(recordingRow);
}

/** The condition of a list. */
const matching = (appUuid: string, { sessionUuid, roomId, createdAfter, createdBefore, after }: RecordingQuery) =>
  and(
    sessionUuid === undefined && roomId === undefined ? eq(recordings.appUuid, appUuid) : isOfApp(recordings.appUuid, appUuid),
    isNull(recordings.removedAt),
    sessionUuid === undefined ? undefined : eq(recordings.sessionUuid, sessionUuid),
    roomId === undefined ? undefined : eq(recordings.roomId, roomId),
    createdAfter === undefined ? undefined : gte(recordings.createdAt, createdAfter),
    createdBefore === undefined ? undefined : lt(recordings.createdAt, createdBefore),
    after === undefined ? undefined : olderThan(recordings.createdAt, recordings.recordingUuid, after),
  );

/**
 * A file only grows: a size that was read before its end, and is written after it, changes nothing. What a flush is
 * just ending is left out: the two would lock the rows in any order, and wait for each other.
 */
const SIZED = `UPDATE recordings AS c SET bytes = greatest(c.bytes, s.bytes) FROM (
    SELECT r.recording_uuid, n.bytes FROM json_to_recordset($1::text::json) AS n (recording_uuid text, bytes bigint)
    JOIN recordings AS r ON r.recording_uuid = n.recording_uuid WHERE r.removed_at IS NULL FOR NO KEY UPDATE OF r SKIP LOCKED
  ) AS s WHERE c.recording_uuid = s.recording_uuid`;
/** A row without a size counts as a header and 16 bytes a millisecond. */
const SUM = 'sum(coalesce(bytes, 44 + coalesce(duration_ms, 0) * 16))::text AS bytes';
const KEPT_UNDER_WAY = `SELECT app_uuid, ${SUM} FROM recordings
  WHERE removed_at IS NULL AND ended_at IS NULL AND volume_id <> $1 GROUP BY app_uuid`;
/** The recordings that ended after `$1`: so many of them, and all of the last one's millisecond. */
const KEPT_OVER = `WITH edge AS (
    SELECT max(ended_at) AS last FROM (
      SELECT ended_at FROM recordings WHERE removed_at IS NULL AND ended_at > $1::bigint ORDER BY ended_at LIMIT $2::int
    ) AS page
  ) SELECT app_uuid, ${SUM}, max(ended_at)::text AS last FROM recordings
  WHERE removed_at IS NULL AND ended_at > $1::bigint AND ended_at <= (SELECT last FROM edge) GROUP BY app_uuid`;

/** Reads page by page: the sum over millions of rows would take longer than a statement may. */
async function keptOf(database: Database, volumeId: string, pageRows = KEPT_PAGE_ROWS): Promise<ReadonlyMap<string, number>> {
  const kept = new Map<string, number>();
  const add = (rows: readonly Row[]) => {
    for (const { app_uuid, bytes } of rows) kept.set(String(app_uuid), (kept.get(String(app_uuid)) ?? 0) + Number(bytes));
  };
  // One that ends meanwhile counts twice rather than not at all.
  add(await database.query(KEPT_UNDER_WAY, [volumeId]));
  let last = -1;
  for (let page = 0; page < KEPT_MAX_PAGES; page++) {
    const rows = await database.query(KEPT_OVER, [last, pageRows]);
    if (rows.length === 0) break;
    add(rows);
    last = rows.reduce((most, row) => Math.max(most, Number(row.last)), last);
  }
  return kept;
}

async function removalsOf(database: Database, recordingUuids: readonly string[]): Promise<ReadonlyMap<string, boolean>> {
  if (recordingUuids.length === 0) return new Map();
  const rows = await database.run((on) =>
    on
      .select({ recordingUuid: recordings.recordingUuid, removedAt: recordings.removedAt })
      .from(recordings)
      .where(inArray(recordings.recordingUuid, [...recordingUuids])),
  );
  return new Map(rows.map(({ recordingUuid, removedAt }) => [recordingUuid, removedAt !== null]));
}

/** Reads many recordings in one statement: one entry for each uuid, in the same order. */
async function loadRecordings(
  database: Database,
  uuids: readonly string[],
): Promise<readonly (StoredRecordingRow | undefined)[]> {
  const rows = await database.run((on) =>
    on
      .select()
      .from(recordings)
      .where(inArray(recordings.recordingUuid, [...uuids])),
  );
  const found = new Map(rows.map((row) => [row.recordingUuid, recordingRow(row)]));
  return uuids.map((uuid) => found.get(uuid));
}

const recordingRow = (row: typeof recordings.$inferSelect): StoredRecordingRow => ({
  recordingUuid: row.recordingUuid,
  appUuid: row.appUuid,
  sessionUuid: row.sessionUuid ?? undefined,
  roomId: row.roomId ?? undefined,
  volumeId: row.volumeId,
  operationUuid: row.operationUuid,
  clientState: row.clientState,
  traceparent: row.traceparent,
  createdAt: row.createdAt,
  endedAt: row.endedAt ?? undefined,
  durationMs: row.durationMs ?? undefined,
  removedAt: row.removedAt ?? undefined,
});
