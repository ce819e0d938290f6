/**
 * Events, and the answer of the command that caused them, inside a transaction that changes something other than a
 * Session.
 */
import type { PlatformEvent } from '../../event/event.ts';
import type { Queryable } from '../driver/database.ts';
import type { StoredAnswer } from './journal.ts';

const EMIT = `
WITH emitted AS (
  INSERT INTO events (webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at)
  SELECT webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at
  FROM json_to_recordset($1::text::json) AS e (position int, webhook_id text, app_uuid text, name text,
    session_uuid text, lanes text[], body text, traceparent text, at bigint)
  ORDER BY position
  ON CONFLICT (webhook_id) DO NOTHING
  RETURNING event_id, app_uuid
), queued AS (
  INSERT INTO outbox (event_id, app_uuid) SELECT event_id, app_uuid FROM emitted
)
UPDATE idempotency AS i SET status = a.status, body = a.body
FROM json_to_recordset($2::text::json) AS a (app_uuid text, key text, status smallint, body text)
WHERE i.app_uuid = a.app_uuid AND i.key = a.key AND i.status IS NULL`;

/** Writes them within the transaction of `within`; the relay is to be woken once it is committed. */
export async function emit(within: Queryable, events: readonly PlatformEvent[], answer?: StoredAnswer): Promise<void> {
  if (events.length === 0 && answer === undefined) return;
  const rows = events.map((event, position) => ({
    position,
    webhook_id: event.webhookId,
    app_uuid: event.appUuid,
    name: event.name,
    session_uuid: event.sessionUuid ?? null,
    lanes: event.lanes,
    body: event.body,
    traceparent: event.traceparent,
    at: Math.floor(event.at),
  }));
  const answers =
    answer === undefined
      ? []
      : [{ app_uuid: answer.appUuid, key: answer.key, status: answer.status, body: JSON.stringify(answer.body) }];
  await within.query(EMIT, [JSON.stringify(rows), JSON.stringify(answers)]);
}
