/**
 * The outbox as the one relay reads it. Rows are read by (transaction, event) below the oldest transaction still
 * running: whatever commits later has a higher transaction number, so a cursor never steps over a late committer. One
 * relay reads at a time: it holds a lease, renewed by heartbeat, and a settlement is taken only from the holder.
 */

import { RELAY_COUNTED_BYTES, RELAY_LEASE_SEEN_MS } from '../../limits.ts';
import type { Database, Queryable, Row } from '../driver/database.ts';
import type { Attempt } from './attempt.ts';

/** A position in the outbox: events at or before it have been seen. */
export interface Cursor {
  readonly xid: string;
  readonly eventId: number;
}

export interface OutboxEvent extends Cursor {
  readonly webhookId: string;
  readonly appUuid: string;
  readonly name: string;
  readonly lanes: readonly string[];
  readonly body: string;
  readonly traceparent: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Failed attempts since the event was queued, or replayed, as far as the next one depends on them. */
  readonly attempts: readonly Pick<Attempt, 'at' | 'retry_at'>[];
}

interface OutboxPart {
  readonly events: readonly OutboxEvent[];
  /** It ends at a limit: there may be more to read at once. */
  readonly more: boolean;
}

interface OutboxPage extends OutboxPart {
  /** Committed events are held back by a transaction that still runs: read again soon. */
  readonly heldBack: boolean;
  /**
   * The database has not come as far as the position: another one was restored, or a standby promoted that lacks the
   * last commits. What it commits now may lie before the position.
   */
  readonly wentBack: boolean;
}

/** `pending` records a failed attempt; the others end the event. */
export interface Settlement extends Cursor {
  readonly status: 'pending' | 'delivered' | 'dead' | 'blocked' | 'undeliverable';
  readonly attempt: Attempt | undefined;
}

/** Reads the outbox in this process. */
interface OutboxReader {
  /** Every event up to here was read. Undefined: it does not read now. */
  readTo(): Cursor | undefined;
  /**
   * Takes events that are the next in the outbox after what `readTo` said when they were written. False: it does not,
   * and has to read them.
   */
  take(events: readonly OutboxEvent[]): boolean;
}

export interface OutboxStore {
  /**
   * Takes or renews the lease. False: another relay holds it, or it has run out, and was not seen so for
   * RELAY_LEASE_SEEN_MS by this process. That of a node that was declared dead is free, whatever the clock of the
   * database has been set to since.
   */
  lease(holder: string, ttlMs: number): Promise<boolean>;
  release(holder: string): Promise<void>;
  /** The position from which a relay that starts now begins to read; everything before it is `backlog`. */
  horizon(): Promise<Cursor>;
  /** Applications with something undelivered before `until`. */
  backlog(until: Cursor): Promise<readonly string[]>;
  /** Reads at most `limit` events, one at least, and fewer where `limit` times RELAY_COUNTED_BYTES are exceeded. */
  read(after: Cursor, limit: number): Promise<OutboxPage>;
  /** One application's events in `(after, until]`, within the same limits. */
  readApp(appUuid: string, after: Cursor, until: Cursor, limit: number): Promise<OutboxPart>;
  /** The number of the next transaction: whatever is committed by now has a lower one. */
  nextTransaction(): Promise<string>;
  /** Tells whether no event of a transaction before that one waits for its first attempt. */
  isEmpty(before: string): Promise<boolean>;
  /**
   * False: the lease is lost, and nothing was settled. `isAgain`: the database may have some of it, since its answer
   * did not come.
   */
  settle(holder: string, settlements: readonly Settlement[], isAgain?: boolean): Promise<boolean>;
  /** Calls back when there may be something new to read. */
  onEvents(wake: () => void): void;
  /** The relay that may be handed events instead of reading them. */
  follow(reader: OutboxReader): void;
}

const LEASE = 'webhook-relay';
const CLOCK = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`;
/**
 * A lease that has run out is taken only by who has seen it so a while before (`$3` and `$4`). Where the database stood
 * still, all ask it at once when it goes on: the holder, who has outcomes to write, comes before the others then.
 */
const TAKE = `WITH taken AS (
  INSERT INTO leases AS l (name, holder, expires_at) VALUES ('${LEASE}', $1, ${CLOCK} + $2::bigint)
  ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
    fence = CASE WHEN l.holder = excluded.holder THEN l.fence ELSE l.fence + 1 END
  WHERE l.holder = excluded.holder
    OR (l.expires_at = $3::bigint AND l.expires_at < ${CLOCK} AND $4::bigint <= ${CLOCK} - ${RELAY_LEASE_SEEN_MS})
    OR EXISTS (SELECT FROM nodes AS n WHERE n.node_id = l.holder AND n.dead_at IS NOT NULL)
  RETURNING 1
)
SELECT EXISTS (SELECT FROM taken) AS held, ${CLOCK} AS now,
  (SELECT expires_at FROM leases WHERE name = '${LEASE}' AND expires_at < ${CLOCK}) AS ran_out`;
const GIVE = `DELETE FROM leases WHERE name = '${LEASE}' AND holder = $1`;
const VACATE = `DELETE FROM leases WHERE name = '${LEASE}'`;
const HORIZON = 'SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS xid';
/** It goes from one application to the next by the index: a receiver that is down may have left millions of rows. */
const BACKLOG = `WITH RECURSIVE apps AS (
  SELECT min(app_uuid) AS app_uuid FROM outbox
  UNION ALL SELECT (SELECT min(o.app_uuid) FROM outbox AS o WHERE o.app_uuid > a.app_uuid) FROM apps AS a WHERE a.app_uuid IS NOT NULL
)
SELECT app_uuid FROM apps AS a WHERE EXISTS (
  SELECT FROM outbox AS o WHERE o.app_uuid = a.app_uuid AND (o.xid, o.event_id) <= ($1::text::xid8, $2::bigint))`;

/**
 * A body that is larger than RELAY_COUNTED_BYTES is read by itself, once it is known to be in the page. Its length
 * stands in its row. Of the attempts only the times are read: with what their receiver answered, those of one event may
 * be 70 kB.
 */
const COLUMNS = `o.xid::text AS xid, o.event_id, e.webhook_id, e.app_uuid, e.name, array_to_json(e.lanes)::text AS lanes, octet_length(e.body) AS bytes,
  CASE WHEN octet_length(e.body) <= ${RELAY_COUNTED_BYTES} THEN e.body END AS body, e.traceparent, e.at, o.attempts_before,
  jsonb_path_query_array(e.attempts, '$.at')::text AS tried_at, jsonb_path_query_array(e.attempts, '$.retry_at')::text AS retry_at`;
/** Each row tells as well whether later ones are held back, which spares a second question. */
const READ = `SELECT ${COLUMNS}, EXISTS (SELECT 1 FROM outbox WHERE xid >= pg_snapshot_xmin(pg_current_snapshot())) AS held
  FROM outbox AS o JOIN events AS e ON e.event_id = o.event_id
  WHERE (o.xid, o.event_id) > ($1::text::xid8, $2::bigint) AND o.xid < pg_snapshot_xmin(pg_current_snapshot())
  ORDER BY o.xid, o.event_id LIMIT $3::int`;
const HELD = `SELECT EXISTS (SELECT 1 FROM outbox WHERE (xid, event_id) > ($1::text::xid8, $2::bigint)) AS held,
  (pg_snapshot_xmin(pg_current_snapshot()), 0) < ($1::text::xid8, $2::bigint) AS went_back`;
const NEXT = 'SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS xid';
const WAITS = `SELECT EXISTS (SELECT 1 FROM outbox AS o JOIN events AS e ON e.event_id = o.event_id
  WHERE o.xid < $1::text::xid8 AND jsonb_array_length(e.attempts) = o.attempts_before) AS waits`;
const READ_APP = `SELECT ${COLUMNS} FROM outbox AS o JOIN events AS e ON e.event_id = o.event_id
  WHERE o.app_uuid = $1 AND (o.xid, o.event_id) > ($2::text::xid8, $3::bigint) AND (o.xid, o.event_id) <= ($4::text::xid8, $5::bigint)
  ORDER BY o.xid, o.event_id LIMIT $6::int`;
const BODIES = `SELECT event_id, body FROM events
  WHERE event_id = ANY (ARRAY(SELECT json_array_elements_text($1::text::json)::bigint))`;

const NEW_ATTEMPTS = `coalesce((SELECT jsonb_agg(made ORDER BY position) FROM jsonb_array_elements(s.attempts::jsonb) WITH ORDINALITY AS a (made, position)
    WHERE NOT e.attempts @> jsonb_build_array(made)), '[]')`;
/**
 * Attempts that the event has already are left out where `isAgain`. An outcome counts only while its row of the outbox
 * is there. One that comes late, of a lease that was lost and taken again, would make a delivered event pending for
 * ever. The row of the lease is locked, so that nobody takes it, and settles the same events, before this statement is
 * over.
 */
const settleStatement = (isAgain: boolean): string => `
WITH mine AS MATERIALIZED (
  SELECT 1 FROM leases WHERE name = '${LEASE}' AND holder = $2 FOR SHARE
), settled AS MATERIALIZED (
  SELECT s.*, o.event_id IS NOT NULL AS waits
  FROM json_to_recordset($1::text::json) AS s (xid text, event_id bigint, status text, attempts json)
  LEFT JOIN outbox AS o ON o.xid = s.xid::xid8 AND o.event_id = s.event_id
  WHERE EXISTS (SELECT FROM mine)
), gone AS (
  DELETE FROM outbox AS o USING settled AS s WHERE s.status <> 'pending' AND o.xid = s.xid::xid8 AND o.event_id = s.event_id
), logged AS (
  UPDATE events AS e SET status = s.status, attempts = e.attempts || ${isAgain ? NEW_ATTEMPTS : 's.attempts::jsonb'} FROM settled AS s
  WHERE e.event_id = s.event_id AND s.waits
)
SELECT count(*)::int AS settled FROM settled`;
const SETTLE = settleStatement(false);
const SETTLE_AGAIN = settleStatement(true);

/** The outbox as those who write events see it. */
export interface OutboxFeed {
  /** How far the relay of this process has read; undefined where it does not read. */
  readTo(): Cursor | undefined;
  /** Events were written: the relay takes `next`, or is woken to read them. */
  written(next: readonly OutboxEvent[]): void;
  wake(): void;
}

export function outboxStore(database: Database): OutboxStore & OutboxFeed & { vacate(): Promise<void> } {
  const listeners: (() => void)[] = [];
  let reader: OutboxReader | undefined;
  /** The time when the lease of another ran out, and when that was seen first, both by the clock of the database. */
  let ranOut: { readonly at: number; readonly seenAt: number } | undefined;
  const wake = () => {
    for (const each of listeners) each();
  };
  return {
    async lease(holder, ttlMs) {
      const before = ranOut;
      ranOut = undefined;
      const [row] = await database.query(TAKE, [holder, ttlMs, before?.at ?? null, before?.seenAt ?? null]);
      const isHeld = row?.held === true;
      if (!isHeld && row?.ran_out != null) {
        const at = Number(row.ran_out);
        ranOut = before?.at === at ? before : { at, seenAt: Number(row.now) };
      }
      return isHeld;
    },
    release: async (holder) => void (await database.query(GIVE, [holder])),
    vacate: async () => void (await database.query(VACATE)),
    async horizon() {
      const [row] = await database.query<{ xid: string }>(HORIZON);
      if (row === undefined) throw new Error('no horizon');
      // Everything below the horizon's transaction, whatever its event number.
      return { xid: row.xid, eventId: 0 };
    },
    backlog: async (until) => (await database.query(BACKLOG, [until.xid, until.eventId])).map((row) => String(row.app_uuid)),
    async read(after, limit) {
      const rows = await database.query(READ, [after.xid, after.eventId, limit]);
      if (rows.length > 0) return { ...(await partOf(database, rows, limit)), heldBack: rows[0]?.held === true, wentBack: false };
      const [row] = await database.query<{ held: boolean; went_back: boolean }>(HELD, [after.xid, after.eventId]);
      return { events: [], more: false, heldBack: row?.held === true, wentBack: row?.went_back === true };
    },
    async readApp(appUuid, after, until, limit) {
      const place = [after.xid, after.eventId, until.xid, until.eventId];
      return await partOf(database, await database.query(READ_APP, [appUuid, ...place, limit]), limit);
    },
    async nextTransaction() {
      const [row] = await database.query<{ xid: string }>(NEXT);
      if (row === undefined) throw new Error('no next transaction');
      return row.xid;
    },
    async isEmpty(before) {
      const [row] = await database.query<{ waits: boolean }>(WAITS, [before]);
      return row?.waits === false;
    },
    async settle(holder, settlements, isAgain = false) {
      const [row] = await database.query<{ settled: number }>(isAgain ? SETTLE_AGAIN : SETTLE, [
        JSON.stringify(merge(settlements)),
        holder,
      ]);
      return (row?.settled ?? 0) > 0;
    },
    onEvents: (listener) => void listeners.push(listener),
    follow(by) {
      reader = by;
    },
    readTo: () => reader?.readTo(),
    written(next) {
      if (next.length === 0 || reader?.take(next) !== true) wake();
    },
    wake,
  };
}

/** One row an event: a statement updates a row once. */
function merge(settlements: readonly Settlement[]): object[] {
  const rows = new Map<string, { xid: string; event_id: number; status: string; attempts: Attempt[] }>();
  for (const { xid, eventId, status, attempt } of settlements) {
    const name = `${xid} ${eventId}`;
    const row = rows.get(name) ?? { xid, event_id: eventId, status, attempts: [] };
    row.status = status;
    if (attempt !== undefined) row.attempts.push(attempt);
    rows.set(name, row);
  }
  return [...rows.values()];
}

/**
 * Ends a page where its bodies exceed the bytes, and reads the large ones. An event that was erased meanwhile is left
 * out.
 */
async function partOf(database: Queryable, rows: readonly Row[], limit: number): Promise<OutboxPart> {
  let bytes = 0;
  const page: Row[] = [];
  for (const row of rows) {
    if (bytes >= limit * RELAY_COUNTED_BYTES) break;
    bytes += Number(row.bytes);
    page.push(row);
  }
  const large = page.filter(({ body }) => body === null).map(({ event_id: eventId }) => eventId);
  const read = large.length === 0 ? [] : await database.query(BODIES, [JSON.stringify(large)]);
  const bodies = new Map(read.map(({ event_id: eventId, body }) => [String(eventId), body]));
  const events = page.flatMap((row) => {
    const body = row.body ?? bodies.get(String(row.event_id));
    return body === undefined ? [] : [outboxEvent(row, String(body))];
  });
  return { events, more: rows.length === limit || page.length < rows.length };
}

function outboxEvent(row: Row, body: string): OutboxEvent {
  const triedAt: readonly number[] = JSON.parse(String(row.tried_at));
  const retryAt: readonly (number | null)[] = JSON.parse(String(row.retry_at));
  const made = triedAt.map((tried, nth) => ({ at: tried, retry_at: retryAt[nth] ?? null }));
  return {
    xid: String(row.xid),
    eventId: Number(row.event_id),
    webhookId: String(row.webhook_id),
    appUuid: String(row.app_uuid),
    name: String(row.name),
    lanes: JSON.parse(String(row.lanes)),
    body,
    traceparent: String(row.traceparent),
    at: Number(row.at),
    attempts: made.slice(Number(row.attempts_before)),
  };
}
