/** Calls as the operator reads them: live and ended Sessions, and their timelines. */
import { and, asc, desc, eq, gte, inArray, isNotNull, isNull, lt, ne, or } from 'drizzle-orm';
import type { TimelinePart } from '../../history/call-history.ts';
import type { TimedEntry } from '../../history/entry.ts';
import { HISTORY_BATCH_MAX_CHARS, HISTORY_BATCH_MAX_PARTS } from '../../limits.ts';
import type { Database } from '../driver/database.ts';
import { notOlderThan, olderThan, type PageEnd } from '../newest-first.ts';
import { charges } from '../payment-schema.ts';
import { events, recordings, sessions, timelines } from '../schema.ts';

/** A Session and what is known of its end. Times are milliseconds since the epoch. */
export interface CallRow {
  readonly sessionUuid: string;
  readonly appUuid: string;
  readonly type: string;
  readonly state: string;
  readonly callerId: string;
  readonly did: string;
  readonly trunk: string;
  readonly createdAt: number;
  readonly answeredAt: number | undefined;
  readonly endedAt: number | undefined;
  /** What `session.ended` said: `duration_seconds`, `hangup_cause`, `hangup_by`, `quality`. Undefined until then. */
  readonly summary: Readonly<Record<string, unknown>> | undefined;
}

export interface CallQuery {
  readonly appUuid: string | undefined;
  readonly state: string | undefined;
  /** The caller's number, or the one that was called. */
  readonly number: string | undefined;
  /** Inclusive. */
  readonly createdAfter: number | undefined;
  /** Exclusive. */
  readonly createdBefore: number | undefined;
  /** The call that the page before ended with: older ones are listed. */
  readonly after: PageEnd | undefined;
  /** The last call that is looked at. Undefined: all are. */
  readonly through?: PageEnd | undefined;
  readonly limit: number;
}

export interface CallStore {
  /** Lists calls, newest first. */
  list(query: CallQuery): Promise<readonly CallRow[]>;
  /** The call that is `rows` behind the page before, of any number and application; undefined: there are fewer. */
  pieceEnd(query: Pick<CallQuery, 'after' | 'createdAfter' | 'createdBefore'>, rows: number): Promise<PageEnd | undefined>;
  get(sessionUuid: string): Promise<CallRow | undefined>;
  /** The stored entries of a call's timeline, in order. */
  timeline(sessionUuid: string): Promise<readonly TimedEntry[]>;
  write(parts: readonly TimelinePart[]): Promise<void>;
  /**
   * Erases an ended call: its row, its timeline and its events. `live`: it has not ended. `pending`: an event of it is
   * still being delivered, or to come.
   */
  erase(sessionUuid: string): Promise<'erased' | 'live' | 'pending' | 'unknown'>;
}

/**
 * A timeline is written a moment after its call: where the call is erased by then, or is being erased, nothing of it
 * comes back. The lock waits for an erasure that is under way. A part that another node has written of the same
 * millisecond stays, with this one behind it. One that is there already was written, and the answer to that was lost.
 */
const WRITE = `INSERT INTO timelines (session_uuid, since, entries)
SELECT t.session_uuid, t.since, t.entries
FROM json_to_recordset($1::text::json) AS t (session_uuid uuid, since bigint, entries text)
JOIN sessions AS s ON s.session_uuid = t.session_uuid FOR KEY SHARE OF s
ON CONFLICT (session_uuid, since) DO UPDATE SET entries = left(timelines.entries, -1) || ',' || substr(excluded.entries, 2)
  WHERE strpos(timelines.entries, substr(excluded.entries, 2, length(excluded.entries) - 2)) = 0`;

/** The columns of a session's row that the operator reads. */
const COLUMNS = {
  sessionUuid: sessions.sessionUuid,
  appUuid: sessions.appUuid,
  type: sessions.type,
  state: sessions.state,
  callerId: sessions.callerId,
  did: sessions.did,
  trunk: sessions.trunk,
  createdAt: sessions.createdAt,
  answeredAt: sessions.answeredAt,
  endedAt: sessions.endedAt,
  summary: sessions.summary,
};

/**
 * Makes the store. It writes timelines and erases calls; the rows of Sessions are written by the journal. Without
 * `keepsEnded` calls have no history (CALL_HISTORY_DAYS=0). Their rows stay for a day all the same, because commands to
 * them are still answered.
 */
export function callStore(database: Database, keepsEnded: boolean): CallStore {
  const shown = keepsEnded ? undefined : isNull(sessions.endedAt);
  return {
    async list(query) {
      const rows = await database.run((on) =>
        on
          .select(COLUMNS)
          .from(sessions)
          .where(and(matching(query), shown))
          .orderBy(desc(sessions.createdAt), desc(sessions.sessionUuid))
          .limit(query.limit),
      );
      return rows.map(callRow);
    },
    async pieceEnd(query, rows) {
      const [row] = await database.run((on) =>
        on
          .select({ createdAt: sessions.createdAt, id: sessions.sessionUuid })
          .from(sessions)
          .where(within(query))
          .orderBy(desc(sessions.createdAt), desc(sessions.sessionUuid))
          .offset(rows - 1)
          .limit(1),
      );
      return row;
    },
    async get(sessionUuid) {
      const isMeant = and(eq(sessions.sessionUuid, sessionUuid), shown);
      const [row] = await database.run((on) => on.select(COLUMNS).from(sessions).where(isMeant));
      return row === undefined ? undefined : callRow(row);
    },
    async timeline(sessionUuid) {
      const rows = await database.run((on) =>
        on
          .select({ entries: timelines.entries })
          .from(timelines)
          .where(eq(timelines.sessionUuid, sessionUuid))
          .orderBy(asc(timelines.since)),
      );
      return rows.flatMap((row): readonly TimedEntry[] => JSON.parse(row.entries));
    },
    async write(parts) {
      for (let at = 0; at < parts.length; ) {
        const rows = batchOf(parts, at);
        at += rows.length;
        await database.query(WRITE, [JSON.stringify(rows)]);
      }
    },
    async erase(sessionUuid) {
      const row = await this.get(sessionUuid);
      if (row === undefined) return 'unknown';
      if (row.endedAt === undefined) return 'live';
      return await eraseEnded(database, sessionUuid);
    },
  };
}

/** The rows of the parts from `at` on that are stored by one statement, of which there is at least one. */
function batchOf(parts: readonly TimelinePart[], at: number) {
  const rows = [];
  let chars = 0;
  for (const { sessionUuid, since, entries } of parts.slice(at, at + HISTORY_BATCH_MAX_PARTS)) {
    const row = { session_uuid: sessionUuid, since, entries: JSON.stringify(entries) };
    chars += row.entries.length;
    if (rows.length > 0 && chars > HISTORY_BATCH_MAX_CHARS) break;
    rows.push(row);
  }
  return rows;
}

/** The condition of a list of calls. */
const matching = ({ appUuid, state, number, through, ...query }: CallQuery) =>
  and(
    appUuid === undefined ? undefined : eq(sessions.appUuid, appUuid),
    state === undefined ? undefined : inState(state),
    number === undefined ? undefined : or(eq(sessions.callerId, number), eq(sessions.did, number)),
    within(query),
    through === undefined ? undefined : notOlderThan(sessions.createdAt, sessions.sessionUuid, through),
  );

const within = ({ createdAfter, createdBefore, after }: Pick<CallQuery, 'after' | 'createdAfter' | 'createdBefore'>) =>
  and(
    createdAfter === undefined ? undefined : gte(sessions.createdAt, createdAfter),
    createdBefore === undefined ? undefined : lt(sessions.createdAt, createdBefore),
    after === undefined ? undefined : olderThan(sessions.createdAt, sessions.sessionUuid, after),
  );

/**
 * Erases what is stored of a call that has ended, in one transaction, unless one of its events is still pending. The
 * outcome of a charge and the end of a recording may come after the end of the call. Whether one is to come is asked
 * first: what is not has its event in the log by then.
 */
const eraseEnded = (database: Database, sessionUuid: string): Promise<'erased' | 'pending'> =>
  database.run((on) =>
    on.transaction(async (inside) => {
      const charging = and(eq(charges.sessionUuid, sessionUuid), eq(charges.status, 'attempting'));
      if ((await inside.$count(charges, charging)) > 0) return 'pending';
      const recording = and(eq(recordings.sessionUuid, sessionUuid), isNull(recordings.removedAt), isNull(recordings.endedAt));
      if ((await inside.$count(recordings, recording)) > 0) return 'pending';
      const ofCall = eq(events.sessionUuid, sessionUuid);
      // They are locked, so that none is replayed meanwhile.
      const told = await inside.select({ status: events.status }).from(events).where(ofCall).for('update');
      if (told.some(({ status }) => status === 'pending')) return 'pending';
      // The row goes first: that waits for a part of the timeline that is being written, which is seen after it.
      await inside.delete(sessions).where(eq(sessions.sessionUuid, sessionUuid));
      // An event that was committed meanwhile, as the late end of a recording, is still to be delivered.
      await inside.delete(events).where(and(ofCall, ne(events.status, 'pending')));
      await inside.delete(timelines).where(eq(timelines.sessionUuid, sessionUuid));
      return 'erased';
    }),
  );

/** `live` stands for every state before the end. Each of these is looked for among the live calls alone. */
const inState = (state: string) => {
  if (state === 'ended') return isNotNull(sessions.endedAt);
  return and(isNull(sessions.endedAt), state === 'live' ? undefined : eq(sessions.state, state));
};

type Selected = Pick<
  typeof sessions.$inferSelect,
  'sessionUuid' | 'appUuid' | 'type' | 'state' | 'callerId' | 'did' | 'trunk' | 'createdAt' | 'answeredAt' | 'endedAt' | 'summary'
>;

const callRow = (row: Selected): CallRow => ({
  ...row,
  answeredAt: row.answeredAt ?? undefined,
  endedAt: row.endedAt ?? undefined,
  summary: row.summary === '' ? undefined : JSON.parse(row.summary),
});

/** Deletes the timelines of these calls. */
export const timelinesOf = (sessionUuids: readonly string[]) => inArray(timelines.sessionUuid, [...sessionUuids]);
