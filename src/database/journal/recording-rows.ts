/**
 * The rows that a step of a Session or Room writes about its recordings, in the statement that writes the step
 * (`group-commit.ts`).
 */

import { type Guarding, type Guards, guardsOf } from './guards.ts';

/** A recording as a row; it outlives its file, so that a URL to what was removed can say so. */
export interface RecordingRow {
  readonly recordingUuid: string;
  readonly appUuid: string;
  /** The owner is one of the two. */
  readonly sessionUuid: string | undefined;
  readonly roomId: string | undefined;
  /** The DATA_DIR on whose disk the file is written. */
  readonly volumeId: string;
  readonly operationUuid: string;
  readonly clientState: string;
  readonly traceparent: string;
  /** ms since the epoch, as the two below. */
  readonly createdAt: number;
  /** Its `recording.ended` is stored. */
  readonly endedAt: number | undefined;
  /** Past its retention; its file is gone. */
  readonly removedAt: number | undefined;
}

export type RecordingChange =
  | { readonly begun: RecordingRow }
  | {
      readonly ended: {
        readonly recordingUuid: string;
        readonly endedAt: number;
        readonly durationMs: number | undefined;
        /** The size of the file. What was noted before stays where it is undefined. */
        readonly bytes?: number | undefined;
      };
    };

/**
 * Expressions for the flush's WITH; its parameters begin at `$first`. A recording does not begin and end in one flush.
 */
export const recordingExpressions = (first: number, guards: Guarding): string => `
rec_begun AS (
  INSERT INTO recordings (recording_uuid, app_uuid, session_uuid, room_id, volume_id, operation_uuid, client_state, traceparent, created_at)
  SELECT recording_uuid, app_uuid, session_uuid, room_id, volume_id, operation_uuid, client_state, traceparent, created_at
  FROM json_to_recordset($${first}::text::json) AS b (guard uuid, room_guard uuid, recording_uuid text, app_uuid text, session_uuid uuid, room_id uuid,
    volume_id text, operation_uuid text, client_state text, traceparent text, created_at bigint)
  WHERE EXISTS (SELECT FROM mine)${guards('b')}
  ON CONFLICT DO NOTHING
), rec_ended AS (
  UPDATE recordings AS c SET ended_at = e.ended_at, duration_ms = e.duration_ms, bytes = coalesce(e.bytes, c.bytes)
  FROM json_to_recordset($${first + 1}::text::json) AS e (guard uuid, room_guard uuid, recording_uuid text,
    ended_at bigint, duration_ms bigint, bytes bigint)
  WHERE c.recording_uuid = e.recording_uuid AND c.ended_at IS NULL AND EXISTS (SELECT FROM mine)${guards('e')}
  RETURNING c.recording_uuid
)`;

export function recordingParameters(changes: readonly (RecordingChange & Guards)[]): string[] {
  const begun = changes.flatMap((each) =>
    'begun' in each
      ? {
          ...guardsOf(each),
          recording_uuid: each.begun.recordingUuid,
          app_uuid: each.begun.appUuid,
          session_uuid: each.begun.sessionUuid ?? null,
          room_id: each.begun.roomId ?? null,
          volume_id: each.begun.volumeId,
          operation_uuid: each.begun.operationUuid,
          client_state: each.begun.clientState,
          traceparent: each.begun.traceparent,
          created_at: Math.floor(each.begun.createdAt),
        }
      : [],
  );
  const ended = changes.flatMap((each) =>
    'ended' in each
      ? {
          ...guardsOf(each),
          recording_uuid: each.ended.recordingUuid,
          ended_at: Math.floor(each.ended.endedAt),
          duration_ms: each.ended.durationMs === undefined ? null : Math.floor(each.ended.durationMs),
          bytes: each.ended.bytes ?? null,
        }
      : [],
  );
  return [begun, ended].map((rows) => JSON.stringify(rows));
}
