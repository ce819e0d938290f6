/** Recordings as rows. They begin and end in the journal; their removal is written here. */
import { RETENTION_BATCH_MAX_ROWS } from '../limits.ts';
import type { Database, Row } from './driver/database.ts';
import { coalesce } from './journal/coalesce.ts';
import type { RecordingRow } from './journal/recording-rows.ts';

export interface RecordingStore {
  get(recordingUuid: string): Promise<RecordingRow | undefined>;
  /** Recordings without an end: what a process left behind. */
  unfinished(): Promise<readonly RecordingRow[]>;
  /** Lists recordings that ended before `before` (ms since the epoch) and were not removed: oldest first, a batch. */
  expired(before: number): Promise<readonly string[]>;
  removed(recordingUuids: readonly string[], at: number): Promise<void>;
}

const COLUMNS = `recording_uuid, app_uuid, session_uuid::text AS session_uuid, room_id::text AS room_id, operation_uuid, client_state,
  traceparent, created_at, ended_at, removed_at`;
const GET = `SELECT ${COLUMNS} FROM recordings WHERE recording_uuid IN (SELECT json_array_elements_text($1::text::json))`;
const UNFINISHED = `SELECT ${COLUMNS} FROM recordings WHERE ended_at IS NULL ORDER BY created_at`;
const EXPIRED = `SELECT recording_uuid FROM recordings WHERE removed_at IS NULL AND ended_at < $1::bigint ORDER BY ended_at LIMIT $2::int`;
const REMOVED = `UPDATE recordings SET removed_at = $2::bigint
  WHERE recording_uuid IN (SELECT json_array_elements_text($1::text::json)) AND removed_at IS NULL`;

export function recordingStore(database: Database): RecordingStore {
  return {
    get: coalesce<string, RecordingRow | undefined>({
      load: async (uuids) => {
        const rows = await database.query(GET, [JSON.stringify(uuids)]);
        const found = new Map(rows.map((row) => [String(row.recording_uuid), recordingRow(row)]));
        return uuids.map((uuid) => found.get(uuid));
      },
    }),
    unfinished: async () => (await database.query(UNFINISHED, [])).map(recordingRow),
    expired: async (before) => {
      const rows = await database.query(EXPIRED, [Math.floor(before), RETENTION_BATCH_MAX_ROWS]);
      return rows.map((row) => String(row.recording_uuid));
    },
    removed: async (recordingUuids, at) => {
      await database.query(REMOVED, [JSON.stringify(recordingUuids), Math.floor(at)]);
    },
  };
}

const text = (value: unknown): string | undefined => (value === null ? undefined : String(value));
const time = (value: unknown): number | undefined => (value === null ? undefined : Number(value));

const recordingRow = (row: Row): RecordingRow => ({
  recordingUuid: String(row.recording_uuid),
  appUuid: String(row.app_uuid),
  sessionUuid: text(row.session_uuid),
  roomId: text(row.room_id),
  operationUuid: String(row.operation_uuid),
  clientState: String(row.client_state),
  traceparent: String(row.traceparent),
  createdAt: Number(row.created_at),
  endedAt: time(row.ended_at),
  removedAt: time(row.removed_at),
});
