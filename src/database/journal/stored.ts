/**
 * Looks for a change in the database whose commit failed: the answer may have been lost, and not the change. A change
 * is known by its first event, by what it begins, or by the answer that it keeps. One that has nothing of these is
 * known by its row, which may have been the same before, and may be another node's since.
 */
import type { Parameter, Queryable, Row } from '../driver/database.ts';
import { roomColumns, sessionColumns } from './flush.ts';
import type { Change } from './journal.ts';

// A statement that is still under way has locked the row: the look waits for it.
const SESSION = `SELECT app_uuid, node_id, epoch, state, answered, room_id, running, trunk, ended_at FROM sessions
  WHERE session_uuid = $1::uuid FOR UPDATE`;
const ROOM = `SELECT app_uuid, node_id, epoch, volume, deleting, playback, deleted_at FROM rooms WHERE room_id = $1::uuid FOR UPDATE`;
const EVENT = 'SELECT 1 FROM events WHERE webhook_id = $1';
const RECORDING = 'SELECT 1 FROM recordings WHERE recording_uuid = $1';
const COLLECTION = 'SELECT 1 FROM payment_collections WHERE session_uuid = $1::uuid AND operation_uuid = $2';
const ANSWER = 'SELECT 1 FROM idempotency WHERE app_uuid = $1 AND key = $2 AND status = $3::smallint AND body = $4';

/** Tells whether the change is stored. A change that writes nothing of all that is not. */
export async function isStored(database: Queryable, change: Change): Promise<boolean> {
  const { session, room, answer } = change;
  const has = async (text: string, parameters: readonly Parameter[]) => (await database.query(text, parameters)).length > 0;
  const hasRow =
    session !== undefined
      ? isSame(await database.query(SESSION, [session.sessionUuid]), sessionColumns(session))
      : room !== undefined
        ? isSame(await database.query(ROOM, [room.roomId]), roomColumns(room))
        : undefined;
  const [event] = change.events;
  if (event !== undefined) return await has(EVENT, [event.webhookId]);
  const [recording] = (change.recordings ?? []).flatMap((each) => ('begun' in each ? [each.begun] : []));
  if (recording !== undefined) return await has(RECORDING, [recording.recordingUuid]);
  const [collection] = (change.payments ?? []).flatMap((each) => ('begun' in each ? [each.begun] : []));
  if (collection !== undefined) return await has(COLLECTION, [collection.sessionUuid, collection.operationUuid]);
  if (answer === undefined) return hasRow === true;
  const { appUuid, key, status, body } = answer;
  return await has(ANSWER, [appUuid, key, status, JSON.stringify(body)]);
}

/** Numbers may come as text (bigint). */
const isSame = ([found]: readonly Row[], written: Readonly<Record<string, unknown>>): boolean =>
  found !== undefined && Object.entries(found).every(([name, value]) => String(value) === String(written[name]));
