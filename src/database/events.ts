/** The event log as the operator reads it, and the replay of what was set aside (contract §1, §9). */
import type { Database, Row } from './driver/database.ts';

export const EVENT_STATUSES = ['pending', 'delivered', 'dead', 'blocked', 'undeliverable'] as const;
export type EventStatus = (typeof EVENT_STATUSES)[number];

/** One delivery attempt. */
export interface Attempt {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The receiver's HTTP status; null when none came. */
  readonly status: number | null;
  /** `""` on success, else what went wrong, in a word. */
  readonly error: string;
  readonly duration_ms: number;
  /** When the next attempt is due, ms since the epoch; null when this was the last. */
  readonly retry_at: number | null;
}

export interface LoggedEvent {
  /** Position in the log: the `after` of the next page. */
  readonly eventId: number;
  readonly webhookId: string;
  readonly appUuid: string;
  readonly name: string;
  readonly sessionUuid: string | undefined;
  readonly body: string;
  readonly at: number;
  readonly status: EventStatus;
  readonly attempts: readonly Attempt[];
}

export interface EventQuery {
  readonly appUuid: string | undefined;
  readonly sessionUuid: string | undefined;
  readonly status: EventStatus | undefined;
  /** Only events after this position. */
  readonly after: number;
  readonly limit: number;
}

export interface EventLog {
  /** Lists events in the order of their emission. */
  list(query: EventQuery): Promise<readonly LoggedEvent[]>;
  /** Puts a settled event at the tail of its lanes again. `'pending'`: it is under way already. */
  replay(webhookId: string): Promise<'queued' | 'pending' | 'unknown'>;
}

const REPLAY = `
WITH found AS (SELECT event_id, app_uuid, jsonb_array_length(attempts) AS made FROM events WHERE webhook_id = $1 AND status <> 'pending' FOR UPDATE),
queued AS (INSERT INTO outbox (event_id, app_uuid, attempts_before) SELECT event_id, app_uuid, made FROM found),
again AS (UPDATE events AS e SET status = 'pending' FROM found WHERE e.event_id = found.event_id RETURNING 1)
SELECT (SELECT count(*)::int FROM again) AS queued, EXISTS (SELECT 1 FROM events WHERE webhook_id = $1) AS known`;

export function eventLog(database: Database, onEvents: () => void): EventLog {
  return {
    async list(query) {
      const where = ['event_id > $1::bigint'];
      const parameters: (string | number)[] = [query.after, query.limit];
      const add = (column: string, value: string | undefined): void => {
        if (value !== undefined) where.push(`${column} = $${parameters.push(value)}`);
      };
      add('app_uuid', query.appUuid);
      add('session_uuid', query.sessionUuid);
      add('status', query.status);
      const rows = await database.query(
        `SELECT event_id, webhook_id, app_uuid, name, session_uuid, body, at, status, attempts::text AS attempts
         FROM events WHERE ${where.join(' AND ')} ORDER BY event_id LIMIT $2::int`,
        parameters,
      );
      return rows.map(loggedEvent);
    },
    async replay(webhookId) {
      const [row] = await database.query<{ queued: number; known: boolean }>(REPLAY, [webhookId]);
      if (row === undefined || !row.known) return 'unknown';
      if (row.queued === 0) return 'pending';
      onEvents();
      return 'queued';
    },
  };
}

function loggedEvent(row: Row): LoggedEvent {
  const status = EVENT_STATUSES.find((each) => each === row.status);
  if (status === undefined) throw new Error('an event row of a later version');
  return {
    eventId: Number(row.event_id),
    webhookId: String(row.webhook_id),
    appUuid: String(row.app_uuid),
    name: String(row.name),
    sessionUuid: row.session_uuid === null ? undefined : String(row.session_uuid),
    body: String(row.body),
    at: Number(row.at),
    status,
    attempts: JSON.parse(String(row.attempts)),
  };
}
