/** The event log as the operator reads it, and the replay of what was set aside (contract §1, §9). */
import { and, asc, desc, eq, getTableColumns, gt, lt, sql } from 'drizzle-orm';
import { EVENT_LIST_MAX_BYTES } from '../../limits.ts';
import type { Database } from '../driver/database.ts';
import { isOfApp } from '../newest-first.ts';
import { events } from '../schema.ts';
import type { Attempt } from './attempt.ts';

export const EVENT_STATUSES = ['pending', 'delivered', 'dead', 'blocked', 'undeliverable'] as const;
type EventStatus = (typeof EVENT_STATUSES)[number];

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
  /** The position after which events are listed. */
  readonly after: number;
  readonly limit: number;
  /** The latest events before this position, newest first. */
  readonly before?: number | undefined;
  /** Oldest first although `before` is given. */
  readonly oldestFirst?: boolean;
  /** The name of the events that are listed; absent for all. */
  readonly name?: string | undefined;
  /** The bytes of bodies and attempts past which a page ends early: EVENT_LIST_MAX_BYTES where it is absent. */
  readonly maxBytes?: number;
}

export interface EventLog {
  /**
   * Lists events in the order of their emission; newest first where `before` is given. Fewer than `limit` may be
   * followed by others where they are large. None is the end.
   */
  list(query: EventQuery): Promise<readonly LoggedEvent[]>;
  /** The positions of the oldest and the newest event; 0 where there is none. */
  ends(): Promise<{ readonly oldest: number; readonly newest: number }>;
  /** Puts a settled event at the tail of its lanes again. `'pending'`: it is under way already. */
  replay(webhookId: string): Promise<'queued' | 'pending' | 'unknown'>;
  /** The application of an event, or undefined when there is no such event. */
  owner(webhookId: string): Promise<string | undefined>;
}

const REPLAY = `
WITH found AS (SELECT event_id, app_uuid, jsonb_array_length(attempts) AS made FROM events WHERE webhook_id = $1 AND status <> 'pending' FOR UPDATE),
queued AS (INSERT INTO outbox (event_id, app_uuid, attempts_before) SELECT event_id, app_uuid, made FROM found),
again AS (UPDATE events AS e SET status = 'pending' FROM found WHERE e.event_id = found.event_id RETURNING 1)
SELECT (SELECT count(*)::int FROM again) AS queued, EXISTS (SELECT 1 FROM events WHERE webhook_id = $1) AS known`;

const ENDS = 'SELECT coalesce(min(event_id), 0)::text AS oldest, coalesce(max(event_id), 0)::text AS newest FROM events';

export function eventLog(database: Database, onEvents: () => void): EventLog {
  return {
    async list(query) {
      return (await database.run((on) => pageOf(on, query))).map(loggedEvent);
    },
    async ends() {
      const [row] = await database.query<{ oldest: string; newest: string }>(ENDS);
      return { oldest: Number(row?.oldest ?? 0), newest: Number(row?.newest ?? 0) };
    },
    async replay(webhookId) {
      const [row] = await database.query<{ queued: number; known: boolean }>(REPLAY, [webhookId]);
      if (row === undefined || !row.known) return 'unknown';
      if (row.queued === 0) return 'pending';
      onEvents();
      return 'queued';
    },
    async owner(webhookId) {
      const [row] = await database.run((on) =>
        on.select({ appUuid: events.appUuid }).from(events).where(eq(events.webhookId, webhookId)),
      );
      return row?.appUuid;
    },
  };
}

/** The rows of a page. The lengths of large bodies stand in the rows, so that none is read that is not in the page. */
function pageOf(on: Database['drizzle'], query: EventQuery) {
  const order = query.before === undefined || query.oldestFirst === true ? asc : desc;
  const ofApp = (appUuid: string) =>
    query.sessionUuid === undefined ? eq(events.appUuid, appUuid) : isOfApp(events.appUuid, appUuid);
  const found = on
    .select({
      eventId: events.eventId,
      bytes: sql<number>`octet_length(${events.body}) + pg_column_size(${events.attempts})`.as('bytes'),
    })
    .from(events)
    .where(
      and(
        gt(events.eventId, query.after),
        query.before === undefined ? undefined : lt(events.eventId, query.before),
        query.name === undefined ? undefined : eq(events.name, query.name),
        query.appUuid === undefined ? undefined : ofApp(query.appUuid),
        query.sessionUuid === undefined ? undefined : eq(events.sessionUuid, query.sessionUuid),
        query.status === undefined ? undefined : eq(events.status, query.status),
      ),
    )
    .orderBy(order(events.eventId))
    .limit(query.limit)
    .as('found');
  const page = on
    .select({
      eventId: found.eventId,
      bytesBefore: sql<number>`sum(${found.bytes}) OVER (ORDER BY ${order(found.eventId)}) - ${found.bytes}`.as('bytes_before'),
    })
    .from(found)
    .as('page');
  return on
    .select(getTableColumns(events))
    .from(page)
    .innerJoin(events, eq(events.eventId, page.eventId))
    .where(lt(page.bytesBefore, query.maxBytes ?? EVENT_LIST_MAX_BYTES))
    .orderBy(order(events.eventId));
}

function loggedEvent(row: typeof events.$inferSelect): LoggedEvent {
  const status = EVENT_STATUSES.find((each) => each === row.status);
  if (status === undefined) throw new Error('an event row of a later version');
  return { ...row, sessionUuid: row.sessionUuid ?? undefined, status };
}
