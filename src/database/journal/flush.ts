/** The statement of a flush: its SQL, its fences, and how the changes of a batch become its parameters. */
import type { Change, RoomRow, SessionRow } from './journal.ts';
import { type PaymentChange, paymentExpressions } from './payment-rows.ts';
import { type RecordingChange, recordingExpressions } from './recording-rows.ts';

/** The value that a flush gives beside the rows it wrote, unless this node was declared dead. */
export const ALIVE = 'alive';

/**
 * One flush. The fence is in the statement that writes: `mine` is empty once this node was declared dead, and then
 * nothing is written. It locks its row, so that whoever declares the node dead comes before the flush or after all of it:
 * what the node left can be counted then. A Session's row and a Room's are written only by the owner, which knows the
 * epoch of the row.
 *
 * The mark of an Idempotency-Key is found by its primary key inside LATERAL, because a plan that was made while the
 * table was empty read all marks for each flush otherwise: 4,800 keyed writes a second instead of 9,800.
 */
const MINE = `
WITH mine AS MATERIALIZED (
  SELECT 1 FROM nodes WHERE node_id = $5 AND dead_at IS NULL FOR SHARE
)`;
const FLUSH = `changed AS (
  INSERT INTO sessions AS s
    (session_uuid, app_uuid, node_id, epoch, type, state, caller_id, did, answered, client_state, room_id, running, trunk, created_at, answered_at, ended_at, summary)
  SELECT session_uuid, app_uuid, node_id, epoch, type, state, caller_id, did, answered, client_state, room_id, running, trunk, created_at, answered_at, ended_at, summary
  FROM json_to_recordset($1::text::json) AS r (session_uuid uuid, app_uuid text, node_id text, epoch int, type text, state text,
    caller_id text, did text, answered boolean, client_state text, room_id text, running text, trunk text, created_at bigint,
    answered_at bigint, ended_at bigint, summary text)
  WHERE EXISTS (SELECT FROM mine)
  ON CONFLICT (session_uuid) DO UPDATE SET
    state = excluded.state, answered = excluded.answered, room_id = excluded.room_id, running = excluded.running,
    trunk = excluded.trunk, answered_at = excluded.answered_at, ended_at = excluded.ended_at, summary = excluded.summary
  WHERE s.ended_at IS NULL AND s.node_id = excluded.node_id AND s.epoch = excluded.epoch
  RETURNING session_uuid
), roomed AS (
  INSERT INTO rooms AS h (room_id, app_uuid, node_id, epoch, voice_activity_events, hold_music_url, volume, deleting, playback, created_at, deleted_at)
  SELECT room_id, app_uuid, node_id, epoch, voice_activity_events, hold_music_url, volume, deleting, playback, created_at, deleted_at
  FROM json_to_recordset($4::text::json) AS r (room_id uuid, app_uuid text, node_id text, epoch int, voice_activity_events boolean, hold_music_url text,
    volume smallint, deleting boolean, playback text, created_at bigint, deleted_at bigint)
  WHERE EXISTS (SELECT FROM mine)
  ON CONFLICT (room_id) DO UPDATE SET
    volume = excluded.volume, deleting = excluded.deleting, playback = excluded.playback, deleted_at = excluded.deleted_at
  WHERE h.deleted_at IS NULL AND h.node_id = excluded.node_id AND h.epoch = excluded.epoch
  RETURNING room_id
), emitted AS (
  INSERT INTO events (webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at)
  SELECT webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at
  FROM json_to_recordset($2::text::json) AS e (position int, guard uuid, room_guard uuid, recording_guard text, webhook_id text, app_uuid text, name text,
    session_uuid text, lanes text[], body text, traceparent text, at bigint)
  WHERE EXISTS (SELECT FROM mine)
    AND (guard IS NULL OR guard IN (SELECT session_uuid FROM changed))
    AND (room_guard IS NULL OR room_guard IN (SELECT room_id FROM roomed))
    AND (recording_guard IS NULL OR recording_guard IN (SELECT recording_uuid FROM rec_ended))
  ORDER BY position
  ON CONFLICT (webhook_id) DO NOTHING
  RETURNING event_id, app_uuid
), queued AS (
  INSERT INTO outbox (event_id, app_uuid) SELECT event_id, app_uuid FROM emitted
), answered AS (
  UPDATE idempotency AS i SET status = a.status, body = a.body
  FROM json_to_recordset($3::text::json) AS a (guard uuid, room_guard uuid, app_uuid text, key text, status smallint, body text),
    LATERAL (SELECT m.ctid FROM idempotency AS m WHERE m.app_uuid = a.app_uuid AND m.key = a.key LIMIT 1) AS marked
  WHERE i.ctid = marked.ctid AND i.status IS NULL
    AND EXISTS (SELECT FROM mine)
    AND (a.guard IS NULL OR a.guard IN (SELECT session_uuid FROM changed))
    AND (a.room_guard IS NULL OR a.room_guard IN (SELECT room_id FROM roomed))
)`;
/** The rows that were written, and `ALIVE` where the node is not dead. */
const WRITTEN = `
SELECT session_uuid::text AS written FROM changed UNION ALL SELECT room_id::text FROM roomed UNION ALL SELECT '${ALIVE}' FROM mine`;
/** Only a flush that ends recordings can tell which of them it ended. */
const RECORDING_GUARD = '    AND (recording_guard IS NULL OR recording_guard IN (SELECT recording_uuid FROM rec_ended))\n';
const PLAIN_FLUSH = FLUSH.replace(RECORDING_GUARD, '');
const FIRST_EXTRA = 6;

/** A flush with payments or recordings in it; the others do not pay for them. Four statements in all. */
export function flushStatement(payments: readonly string[], recordings: readonly string[]): string {
  const extras = [
    ...(payments.length === 0 ? [] : [paymentExpressions(FIRST_EXTRA)]),
    ...(recordings.length === 0 ? [] : [recordingExpressions(FIRST_EXTRA + payments.length)]),
  ];
  return [MINE, ...extras, recordings.length === 0 ? PLAIN_FLUSH : FLUSH].join(', ') + WRITTEN;
}

export interface FlushPlan {
  /** One row a Session, the last before or at its end: a statement may touch a row once. */
  readonly sessions: readonly SessionRow[];
  /** One row a Room, its last. */
  readonly rooms: readonly RoomRow[];
  readonly events: readonly Record<string, unknown>[];
  readonly answers: readonly Record<string, unknown>[];
  readonly payments: readonly PaymentChange[];
  readonly recordings: readonly RecordingChange[];
  /** Positions of changes of a Session that ended earlier in the same batch: nothing of them is stored. */
  readonly late: ReadonlySet<number>;
}

export function planFlush(batch: readonly Change[]): FlushPlan {
  const sessions = new Map<string, SessionRow>();
  const rooms = new Map<string, RoomRow>();
  const events: Record<string, unknown>[] = [];
  const answers = new Map<string, Record<string, unknown>>();
  const late = new Set<number>();
  const paid: PaymentChange[] = [];
  const recorded: RecordingChange[] = [];
  for (const [at, { session, room, events: emitted, answer, payments = [], recordings = [], onlyIfEnded }] of batch.entries()) {
    if (session !== undefined) {
      if (sessions.get(session.sessionUuid)?.endedAt !== undefined) {
        late.add(at);
        continue;
      }
      sessions.set(session.sessionUuid, session);
    }
    if (room !== undefined) rooms.set(room.roomId, room);
    paid.push(...payments);
    recorded.push(...recordings);
    const guard = session?.sessionUuid ?? null;
    const roomGuard = room?.roomId ?? null;
    for (const event of emitted)
      events.push({
        position: events.length,
        guard,
        room_guard: roomGuard,
        recording_guard: onlyIfEnded ?? null,
        webhook_id: event.webhookId,
        app_uuid: event.appUuid,
        name: event.name,
        session_uuid: event.sessionUuid ?? null,
        lanes: event.lanes,
        body: event.body,
        traceparent: event.traceparent,
        at: Math.floor(event.at),
      });
    if (answer !== undefined)
      answers.set(`${answer.appUuid} ${answer.key}`, {
        guard,
        room_guard: roomGuard,
        app_uuid: answer.appUuid,
        key: answer.key,
        status: answer.status,
        body: JSON.stringify(answer.body),
      });
  }
  // Every node writes rows in one order, so that two flushes can never wait for each other.
  const ordered = [...sessions.values()].sort((a, b) => (a.sessionUuid < b.sessionUuid ? -1 : 1));
  return {
    sessions: ordered,
    rooms: [...rooms.values()],
    events,
    answers: [...answers.values()],
    payments: paid,
    recordings: recorded,
    late,
  };
}

export const sessionColumns = (row: SessionRow): Record<string, unknown> => ({
  session_uuid: row.sessionUuid,
  app_uuid: row.appUuid,
  node_id: row.nodeId,
  epoch: row.epoch,
  type: row.type,
  state: row.state,
  caller_id: row.callerId,
  did: row.did,
  answered: row.answered,
  client_state: row.clientState,
  room_id: row.roomId,
  running: row.running,
  trunk: row.trunk,
  created_at: Math.floor(row.createdAt),
  answered_at: row.answeredAt === undefined ? null : Math.floor(row.answeredAt),
  ended_at: row.endedAt === undefined ? null : Math.floor(row.endedAt),
  summary: row.summary,
});

export const roomColumns = (row: RoomRow): Record<string, unknown> => ({
  room_id: row.roomId,
  app_uuid: row.appUuid,
  node_id: row.nodeId,
  epoch: row.epoch,
  voice_activity_events: row.voiceActivityEvents,
  hold_music_url: row.holdMusicUrl,
  volume: row.volume ?? null,
  deleting: row.deleting,
  playback: row.playback,
  created_at: Math.floor(row.createdAt),
  deleted_at: row.deletedAt === undefined ? null : Math.floor(row.deletedAt),
});
