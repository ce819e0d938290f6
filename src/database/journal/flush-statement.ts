/**
 * The statement of a flush: one round trip and one transaction, with its fences. It has an expression only for what the
 * flush holds.
 */
import type { Parameter } from '../driver/database.ts';
import type { Cursor } from '../event/outbox.ts';
import { type FlushPlan, roomColumns, sessionColumns } from './flush.ts';
import type { RoomEntry, SessionRow } from './journal.ts';
import { answerStatement, type KeptAnswers } from './kept-answers.ts';
import { paymentExpressions, paymentParameters } from './payment-rows.ts';
import { recordingExpressions, recordingParameters } from './recording-rows.ts';

/** The value that a flush gives beside the rows it wrote, unless this node was declared dead. */
export const ALIVE = 'alive';

/** What a flush may hold. Its statement has an expression for each thing that it does hold. */
interface Held {
  readonly sessions: boolean;
  readonly entries: boolean;
  readonly rooms: boolean;
  readonly events: boolean;
  readonly answers: KeptAnswers['as'] | 'none';
  readonly payments: boolean;
  readonly recordings: boolean;
}

/** Numbers the parameters of a statement: the next `count` of them, of which the first is returned. */
type Numbering = (count?: number) => number;

/**
 * The fence is in the statement that writes: `mine` is empty once this node was declared dead, and then nothing is
 * written. It locks its row, so that whoever declares the node dead comes before the flush or after all of it: what the
 * node left can be counted then.
 */
const mine = (at: number): string => `mine AS MATERIALIZED (
  SELECT 1 FROM nodes WHERE node_id = $${at} AND dead_at IS NULL FOR SHARE
)`;

/** The name in the flush's answer of a Room at an epoch, which a Session may enter. */
export const entryName = ({ roomId, epoch }: RoomEntry): string => `${roomId} at ${epoch}`;

/**
 * The Rooms that Sessions enter, as they are now. They are locked with those that the flush writes, in one order, after
 * the row of the node, and until it is over: whoever takes one over comes before the flush, or finds the member by its
 * row.
 */
const entryExpression = (at: number): string => `entered AS MATERIALIZED (
  SELECT room_id::text || ' at ' || epoch AS entry FROM rooms
  WHERE room_id = ANY ($${at}::text::uuid[]) AND deleted_at IS NULL AND EXISTS (SELECT FROM mine)
  ORDER BY room_id FOR NO KEY UPDATE
)`;

/** A Session's row, as a Room's, is written only by the owner, which knows the epoch of the row. */
const sessionExpression = ({ entries }: Held, at: number): string => `changed AS (
  INSERT INTO sessions AS s
    (session_uuid, app_uuid, node_id, epoch, type, state, caller_id, did, answered, client_state, room_id, running, trunk, created_at, answered_at, ended_at, summary)
  SELECT session_uuid, app_uuid, node_id, epoch, type, state, caller_id, did, answered, client_state, room_id, running, trunk, created_at, answered_at, ended_at, summary
  FROM json_to_recordset($${at}::text::json) AS r (session_uuid uuid, app_uuid text, node_id text, epoch int, type text, state text,
    caller_id text, did text, answered boolean, client_state text, room_id text, running text, trunk text, created_at bigint,
    answered_at bigint, ended_at bigint, summary text${entries ? ', entry text' : ''})
  WHERE EXISTS (SELECT FROM mine)${entries ? ' AND (r.entry IS NULL OR r.entry IN (SELECT entry FROM entered))' : ''}
  ON CONFLICT (session_uuid) DO UPDATE SET
    state = excluded.state, answered = excluded.answered, room_id = excluded.room_id, running = excluded.running,
    trunk = excluded.trunk, answered_at = excluded.answered_at, ended_at = excluded.ended_at, summary = excluded.summary
  WHERE s.ended_at IS NULL AND s.node_id = excluded.node_id AND s.epoch = excluded.epoch
  RETURNING session_uuid
)`;

const roomExpression = (at: number): string => `roomed AS (
  INSERT INTO rooms AS h (room_id, app_uuid, node_id, epoch, voice_activity_events, hold_music_url, volume, deleting, playback, created_at, deleted_at)
  SELECT room_id, app_uuid, node_id, epoch, voice_activity_events, hold_music_url, volume, deleting, playback, created_at, deleted_at
  FROM json_to_recordset($${at}::text::json) AS r (room_id uuid, app_uuid text, node_id text, epoch int, voice_activity_events boolean, hold_music_url text,
    volume smallint, deleting boolean, playback text, created_at bigint, deleted_at bigint)
  WHERE EXISTS (SELECT FROM mine)
  ON CONFLICT (room_id) DO UPDATE SET
    volume = excluded.volume, deleting = excluded.deleting, playback = excluded.playback, deleted_at = excluded.deleted_at
  WHERE h.deleted_at IS NULL AND h.node_id = excluded.node_id AND h.epoch = excluded.epoch
  RETURNING room_id
)`;

/** What depends on a Session, Room or recording is written only if that was. */
const guards = ({ sessions, rooms }: Held, row: string): string =>
  [
    sessions ? ` AND (${row}.guard IS NULL OR ${row}.guard IN (SELECT session_uuid FROM changed))` : '',
    rooms ? ` AND (${row}.room_guard IS NULL OR ${row}.room_guard IN (SELECT room_id FROM roomed))` : '',
  ].join('');

const eventExpressions = (held: Held, at: number): string => `emitted AS (
  INSERT INTO events (webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at)
  SELECT webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at
  FROM json_to_recordset($${at}::text::json) AS e (position int, guard uuid, room_guard uuid, recording_guard text, webhook_id text, app_uuid text, name text,
    session_uuid text, lanes text[], body text, traceparent text, at bigint)
  WHERE EXISTS (SELECT FROM mine)${guards(held, 'e')}${
    held.recordings ? ' AND (recording_guard IS NULL OR recording_guard IN (SELECT recording_uuid FROM rec_ended))' : ''
  }
  ORDER BY position
  ON CONFLICT (webhook_id) DO NOTHING
  RETURNING event_id, app_uuid, webhook_id
), queued AS (
  INSERT INTO outbox (event_id, app_uuid) SELECT event_id, app_uuid FROM emitted
)`;

const answerExpression = (held: Held, as: KeptAnswers['as'], at: number): string => `answered AS (
  ${answerStatement[as](`$${at}`, `EXISTS (SELECT FROM mine)${guards(held, 'a')}`)}
)`;

/**
 * The number of the transaction, if every earlier one is over and left nothing in the outbox after the position at
 * `$at` and `$at + 1`: its events are then the next that a relay at that position has to read. NULL otherwise, and
 * where the position is NULL, or lies ahead of a database that went back.
 */
const nextInOutbox = (at: number): string => `CASE WHEN $${at}::text IS NOT NULL
    AND pg_snapshot_xmin(pg_current_snapshot()) = pg_current_xact_id()
    AND (pg_current_xact_id(), 0) >= ($${at}::text::xid8, $${at + 1}::bigint)
    AND NOT EXISTS (SELECT FROM outbox WHERE (xid, event_id) > ($${at}::text::xid8, $${at + 1}::bigint))
  THEN pg_current_xact_id()::text END`;

/** The rows that were written, and `ALIVE` where the node is not dead. */
function writtenRows({ sessions, entries, rooms, events }: Held, numbered: Numbering): string {
  return [
    ...(entries ? ['SELECT entry AS written, NULL::bigint AS event_id, NULL::text AS xid FROM entered'] : []),
    ...(sessions ? ['SELECT session_uuid::text AS written, NULL::bigint AS event_id, NULL::text AS xid FROM changed'] : []),
    ...(rooms ? ['SELECT room_id::text AS written, NULL::bigint AS event_id, NULL::text AS xid FROM roomed'] : []),
    ...(events ? ['SELECT webhook_id AS written, event_id, NULL::text AS xid FROM emitted'] : []),
    `SELECT '${ALIVE}' AS written, NULL::bigint AS event_id, ${events ? nextInOutbox(numbered(2)) : 'NULL::text'} AS xid FROM mine`,
  ].join('\nUNION ALL ');
}

/**
 * One flush, for one event alone 350 µs of PostgreSQL's time; with expressions for all that a flush may hold it was
 * 490.
 */
function compose(held: Held): string {
  let last = 0;
  const numbered: Numbering = (count = 1) => {
    last += count;
    return last - count + 1;
  };
  const expressions = [
    mine(numbered()),
    ...(held.entries ? [entryExpression(numbered())] : []),
    ...(held.sessions ? [sessionExpression(held, numbered())] : []),
    ...(held.rooms ? [roomExpression(numbered())] : []),
    ...(held.payments ? [paymentExpressions(numbered(4), (row) => guards(held, row))] : []),
    ...(held.recordings ? [recordingExpressions(numbered(2), (row) => guards(held, row))] : []),
    ...(held.events ? [eventExpressions(held, numbered())] : []),
    ...(held.answers === 'none' ? [] : [answerExpression(held, held.answers, numbered())]),
  ];
  return `WITH ${expressions.join(', ')}\n${writtenRows(held, numbered)}`;
}

/** The statements by what a flush holds and how answers are kept: at most 144. */
const statements = new Map<string, string>();

function statementFor(held: Held): string {
  const name = Object.values(held).join(' ');
  let text = statements.get(name);
  if (text === undefined) {
    text = compose(held);
    statements.set(name, text);
  }
  return text;
}

/** The Rooms that a flush enters or writes, as an array of PostgreSQL. */
const roomsToLock = ({ entries, rooms }: FlushPlan): string =>
  `{${[...new Set([...entries.values(), ...rooms].map(({ roomId }) => roomId))].join(',')}}`;

function withEntry(row: SessionRow, entries: FlushPlan['entries']): Record<string, unknown> {
  const entry = entries.get(row.sessionUuid);
  return entry === undefined ? sessionColumns(row) : { ...sessionColumns(row), entry: entryName(entry) };
}

/**
 * The statement of a plan, written by the node `nodeId`. `readTo`: the position of the relay in this process, if it
 * reads the outbox. `as`: the way in which answers are kept.
 */
export function flushStatement(
  plan: FlushPlan,
  nodeId: string,
  readTo: Cursor | undefined,
  as: KeptAnswers['as'],
): { readonly text: string; readonly parameters: readonly Parameter[] } {
  const { sessions, entries, rooms, events, answers, payments, recordings } = plan;
  const held: Held = {
    sessions: sessions.length > 0,
    entries: entries.size > 0,
    rooms: rooms.length > 0,
    events: events.length > 0,
    answers: answers.length > 0 ? as : 'none',
    payments: payments.length > 0,
    recordings: recordings.length > 0,
  };
  const parameters: readonly Parameter[] = [
    nodeId,
    ...(held.entries ? [roomsToLock(plan)] : []),
    ...(held.sessions ? [JSON.stringify(sessions.map((row) => withEntry(row, entries)))] : []),
    ...(held.rooms ? [JSON.stringify(rooms.map(roomColumns))] : []),
    ...(held.payments ? paymentParameters(payments) : []),
    ...(held.recordings ? recordingParameters(recordings) : []),
    ...(held.events ? [JSON.stringify(events)] : []),
    ...(answers.length > 0 ? [JSON.stringify(answers)] : []),
    ...(held.events ? [readTo?.xid ?? null, readTo?.eventId ?? null] : []),
  ];
  return { text: statementFor(held), parameters };
}
