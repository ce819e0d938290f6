/** What is forgotten, and when: ended Sessions and idempotency keys after 24 h, events, messages and charges after 30 days, removed recordings after a year. Small batches, so that no call waits. */
import {
  CHARGE_RETENTION_DAYS,
  ENDED_SESSION_KEPT_SEC,
  EVENT_RETENTION_DAYS,
  IDEMPOTENCY_KEPT_SEC,
  MESSAGE_RETENTION_DAYS,
  RECORDING_REMEMBERED_DAYS,
  RETENTION_BATCH_MAX_ROWS,
  RETENTION_MAX_BATCHES,
} from '../limits.ts';
import type { Database } from './driver/database.ts';

export interface Forgotten {
  readonly sessions: number;
  readonly keys: number;
  readonly events: number;
  readonly messages: number;
  readonly charges: number;
  readonly references: number;
  readonly recordings: number;
}

const SESSIONS = `DELETE FROM sessions WHERE session_uuid IN
  (SELECT session_uuid FROM sessions WHERE ended_at IS NOT NULL AND ended_at < $1::bigint ORDER BY ended_at LIMIT $2::int) RETURNING 1`;
const KEYS = `DELETE FROM idempotency WHERE (app_uuid, key) IN
  (SELECT app_uuid, key FROM idempotency WHERE created_at < $1::bigint ORDER BY created_at LIMIT $2::int) RETURNING 1`;
// Numbers rise with time, so the oldest are the lowest: no index on time is needed. What is still to be delivered stays.
const EVENTS = `DELETE FROM events WHERE event_id IN
  (SELECT event_id FROM (SELECT event_id, at, status FROM events ORDER BY event_id LIMIT $2::int) AS oldest
   WHERE at < $1::bigint AND status <> 'pending') RETURNING 1`;

const MESSAGES = `DELETE FROM messages WHERE message_uuid IN
  (SELECT message_uuid FROM messages WHERE created_at < $1::bigint AND stage = 'settled' ORDER BY created_at LIMIT $2::int) RETURNING 1`;

const CHARGES = `DELETE FROM charges WHERE charge_uuid IN
  (SELECT charge_uuid FROM charges WHERE created_at < $1::bigint AND status <> 'attempting' ORDER BY created_at LIMIT $2::int) RETURNING 1`;

// Long destroyed: what is left of them says that they were used.
const REFERENCES = `DELETE FROM payment_references WHERE reference IN
  (SELECT reference FROM payment_references WHERE expires_at < $1::bigint ORDER BY expires_at LIMIT $2::int) RETURNING 1`;

const RECORDINGS = `DELETE FROM recordings WHERE recording_uuid IN
  (SELECT recording_uuid FROM recordings WHERE removed_at < $1::bigint ORDER BY removed_at LIMIT $2::int) RETURNING 1`;

/** Deletes all that is past its time at `now`. Returns how many rows went. */
export async function forget(database: Database, now: number): Promise<Forgotten> {
  const sweep = async (statement: string, before: number): Promise<number> => {
    let gone = 0;
    for (let batch = 0; batch < RETENTION_MAX_BATCHES; batch += 1) {
      const deleted = (await database.query(statement, [Math.floor(before), RETENTION_BATCH_MAX_ROWS])).length;
      gone += deleted;
      if (deleted < RETENTION_BATCH_MAX_ROWS) break;
    }
    return gone;
  };
  return {
    sessions: await sweep(SESSIONS, now - ENDED_SESSION_KEPT_SEC * 1000),
    keys: await sweep(KEYS, now - IDEMPOTENCY_KEPT_SEC * 1000),
    events: await sweep(EVENTS, now - EVENT_RETENTION_DAYS * 24 * 3600 * 1000),
    charges: await sweep(CHARGES, now - CHARGE_RETENTION_DAYS * 24 * 3600 * 1000),
    references: await sweep(REFERENCES, now - ENDED_SESSION_KEPT_SEC * 1000),
    recordings: await sweep(RECORDINGS, now - RECORDING_REMEMBERED_DAYS * 24 * 3600 * 1000),
    messages: await sweep(MESSAGES, now - MESSAGE_RETENTION_DAYS * 24 * 3600 * 1000),
  };
}
