/** Events, and the answer of a command, inside a transaction that changes something other than a Session. */
import type { PlatformEvent } from '../../event/event.ts';
import type { Queryable } from '../driver/database.ts';
import { eventColumns } from './event-columns.ts';
import { KeyLost, type StoredAnswer } from './journal.ts';
import { answerStatement, INSERT_ANSWER, type KeptAnswers } from './kept-answers.ts';

const EMIT = `
WITH emitted AS (
  INSERT INTO events (webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at)
  SELECT webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at
  FROM json_to_recordset($1::text::json) AS e (position int, webhook_id text, app_uuid text, name text,
    session_uuid text, lanes text[], body text, traceparent text, at bigint)
  ORDER BY position
  ON CONFLICT (webhook_id) DO NOTHING
  RETURNING event_id, app_uuid
)
INSERT INTO outbox (event_id, app_uuid) SELECT event_id, app_uuid FROM emitted`;
const KEEP = {
  update: `${answerStatement.update('$1', 'true')} RETURNING 1 AS kept`,
  insert: `${INSERT_ANSWER} RETURNING 1 AS kept`,
} as const;

/** Writes them within the transaction of `within`; the relay is to be woken once it is committed. */
export async function emit(within: Queryable, events: readonly PlatformEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map((event, position) => ({ position, ...eventColumns(event) }));
  await within.query(EMIT, [JSON.stringify(rows)]);
}

/**
 * Keeps the answer of a command within the transaction of its effect. Throws where the key is not this request's any
 * more: another one was answered under it, or its mark was given back because this process was taken for dead.
 */
export async function keepAnswer(within: Queryable, kept: KeptAnswers, answer: StoredAnswer | undefined): Promise<void> {
  const row = answer === undefined ? undefined : kept.row(answer);
  if (row === undefined) return;
  const written = await within.query(KEEP[kept.as], [JSON.stringify([row])]);
  if (written.length === 0) throw new KeyLost('the Idempotency-Key is that of another request');
}
