/** What a flush writes: the changes of a batch, and the columns of their rows. */
import type { OutboxEvent } from '../event/outbox.ts';
import { type EventColumns, eventColumns } from './event-columns.ts';
import type { Guards } from './guards.ts';
import type { Change, RoomEntry, RoomRow, SessionRow } from './journal.ts';
import type { AnswerRow, KeptAnswers } from './kept-answers.ts';
import type { PaymentChange } from './payment-rows.ts';
import type { RecordingChange } from './recording-rows.ts';

/** An event as a row, and the rows without which it is not written. */
interface EventRow extends EventColumns, Guards {
  readonly position: number;
  readonly recording_guard: string | null;
}

/** An answer as a row, and the rows without which it is not kept. */
interface GuardedAnswer extends AnswerRow, Guards {}

export interface FlushPlan {
  /** One row a Session, the last before or at its end: a statement may touch a row once. */
  readonly sessions: readonly SessionRow[];
  /** One row a Room, its last. */
  readonly rooms: readonly RoomRow[];
  /** The Rooms that Sessions enter, by Session. */
  readonly entries: ReadonlyMap<string, RoomEntry>;
  readonly events: readonly EventRow[];
  readonly answers: readonly GuardedAnswer[];
  readonly payments: readonly (PaymentChange & Guards)[];
  readonly recordings: readonly (RecordingChange & Guards)[];
  /** Positions of changes of a Session that ended earlier in the same batch: nothing of them is stored. */
  readonly late: ReadonlySet<number>;
}

/**
 * Plans the flush of a batch of changes, given in the order of their commit. Nothing is planned of a change to a
 * Session that an earlier one of the batch has ended. `kept` makes the rows of the answers.
 */
export function planFlush(batch: readonly Change[], kept: KeptAnswers): FlushPlan {
  const sessions = new Map<string, SessionRow>();
  const rooms = new Map<string, RoomRow>();
  const entries = new Map<string, RoomEntry>();
  const events: EventRow[] = [];
  const answers = new Map<string, GuardedAnswer>();
  const late = new Set<number>();
  const paid: (PaymentChange & Guards)[] = [];
  const recorded: (RecordingChange & Guards)[] = [];
  for (const [
    at,
    { session, room, events: emitted, answer, payments = [], recordings = [], onlyIfEnded, enters },
  ] of batch.entries()) {
    if (session !== undefined) {
      if (sessions.get(session.sessionUuid)?.endedAt !== undefined) {
        late.add(at);
        continue;
      }
      sessions.set(session.sessionUuid, session);
      if (enters !== undefined) entries.set(session.sessionUuid, enters);
    }
    if (room !== undefined) rooms.set(room.roomId, room);
    // The statement would find for each of two such ends that it has ended the recording. The first one is told.
    if (onlyIfEnded !== undefined && events.some((each) => each.recording_guard === onlyIfEnded)) continue;
    const guards: Guards = { guard: session?.sessionUuid ?? null, room_guard: room?.roomId ?? null };
    paid.push(...payments.map((each) => ({ ...each, ...guards })));
    recorded.push(...recordings.map((each) => ({ ...each, ...guards })));
    for (const event of emitted)
      events.push({ position: events.length, ...guards, recording_guard: onlyIfEnded ?? null, ...eventColumns(event) });
    const row = answer === undefined ? undefined : kept.row(answer);
    if (row !== undefined) answers.set(`${row.app_uuid} ${row.key}`, { ...guards, ...row });
  }
  return {
    sessions: inOrder(sessions),
    rooms: inOrder(rooms),
    entries,
    events,
    answers: inOrder(answers),
    payments: paid,
    recordings: recorded,
    late,
  };
}

/** The rows by their keys. Every node writes rows in one order, so that two flushes can never wait for each other. */
const inOrder = <R>(rows: ReadonlyMap<string, R>): readonly R[] =>
  [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);

/** The row of a Session under the names of its columns. Times are whole milliseconds since the epoch. */
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

/** The row of a Room under the names of its columns. Times are whole milliseconds since the epoch. */
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

/** The events of a flush as a relay reads them. `eventIds`: the numbers of those that were written, by webhook id. */
export const writtenEvents = (
  { events }: FlushPlan,
  xid: string,
  eventIds: ReadonlyMap<string, number>,
): readonly OutboxEvent[] =>
  events.flatMap(({ webhook_id: webhookId, app_uuid: appUuid, name, lanes, body, traceparent, at }) => {
    const eventId = eventIds.get(webhookId);
    return eventId === undefined ? [] : { xid, eventId, webhookId, appUuid, name, lanes, body, traceparent, at, attempts: [] };
  });
