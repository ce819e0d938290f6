/**
 * The journal: one flush under way, and everything that arrives meanwhile is the next one. A flush is a single
 * statement, so it is one round trip and one transaction: session rows, the events they emit, their outbox rows, and
 * the answers kept for replays.
 *
 * What was weighed: a transaction a change (6 round trips, one fsync each), and a statement a change in a pipeline (one
 * fsync each). Coalesced, the fsync is shared by all that waited for it, and order is the order of arrival.
 */
import { JOURNAL_FLUSH_MAX_CHANGES, JOURNAL_WAITING_MAX_CHANGES } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { Queryable } from '../driver/database.ts';
import { type Change, type Journal, type RoomRow, type SessionRow, StoreUnavailable } from './journal.ts';
import { type PaymentChange, paymentExpressions, paymentParameters } from './payment-rows.ts';
import { type RecordingChange, recordingExpressions, recordingParameters } from './recording-rows.ts';

interface Waiting {
  readonly change: Change;
  readonly resolve: (stored: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One flush. The mark of an Idempotency-Key is found by its primary key inside LATERAL, because a plan that was made
 * while the table was empty read all marks for each flush otherwise: 4,800 keyed writes a second instead of 9,800.
 */
const FLUSH = `
WITH changed AS (
  INSERT INTO sessions AS s
    (session_uuid, app_uuid, node_id, type, state, caller_id, did, answered, client_state, room_id, running, trunk, created_at, answered_at, ended_at, summary)
  SELECT session_uuid, app_uuid, node_id, type, state, caller_id, did, answered, client_state, room_id, running, trunk, created_at, answered_at, ended_at, summary
  FROM json_to_recordset($1::text::json) AS r (session_uuid uuid, app_uuid text, node_id text, type text, state text,
    caller_id text, did text, answered boolean, client_state text, room_id text, running text, trunk text, created_at bigint,
    answered_at bigint, ended_at bigint, summary text)
  ON CONFLICT (session_uuid) DO UPDATE SET
    node_id = excluded.node_id, state = excluded.state, answered = excluded.answered, room_id = excluded.room_id, running = excluded.running,
    trunk = excluded.trunk, answered_at = excluded.answered_at, ended_at = excluded.ended_at, summary = excluded.summary
  WHERE s.ended_at IS NULL
  RETURNING session_uuid
), roomed AS (
  INSERT INTO rooms (room_id, app_uuid, node_id, voice_activity_events, hold_music_url, volume, deleting, playback, created_at, deleted_at)
  SELECT room_id, app_uuid, node_id, voice_activity_events, hold_music_url, volume, deleting, playback, created_at, deleted_at
  FROM json_to_recordset($4::text::json) AS r (room_id uuid, app_uuid text, node_id text, voice_activity_events boolean, hold_music_url text,
    volume smallint, deleting boolean, playback text, created_at bigint, deleted_at bigint)
  ON CONFLICT (room_id) DO UPDATE SET
    node_id = excluded.node_id, volume = excluded.volume, deleting = excluded.deleting, playback = excluded.playback,
    deleted_at = excluded.deleted_at
), emitted AS (
  INSERT INTO events (webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at)
  SELECT webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at
  FROM json_to_recordset($2::text::json) AS e (position int, guard uuid, webhook_id text, app_uuid text, name text,
    session_uuid text, lanes text[], body text, traceparent text, at bigint)
  WHERE guard IS NULL OR guard IN (SELECT session_uuid FROM changed)
  ORDER BY position
  ON CONFLICT (webhook_id) DO NOTHING
  RETURNING event_id, app_uuid
), queued AS (
  INSERT INTO outbox (event_id, app_uuid) SELECT event_id, app_uuid FROM emitted
), answered AS (
  UPDATE idempotency AS i SET status = a.status, body = a.body
  FROM json_to_recordset($3::text::json) AS a (guard uuid, app_uuid text, key text, status smallint, body text),
    LATERAL (SELECT m.ctid FROM idempotency AS m WHERE m.app_uuid = a.app_uuid AND m.key = a.key LIMIT 1) AS marked
  WHERE i.ctid = marked.ctid AND i.status IS NULL
    AND (a.guard IS NULL OR a.guard IN (SELECT session_uuid FROM changed))
)`;
const WRITTEN = '\nSELECT session_uuid::text AS session_uuid FROM changed';
const FIRST_EXTRA = 5;

/** A flush with payments or recordings in it; the others do not pay for them. Four statements in all. */
function flushStatement(payments: readonly string[], recordings: readonly string[]): string {
  const extras = [
    ...(payments.length === 0 ? [] : [paymentExpressions(FIRST_EXTRA)]),
    ...(recordings.length === 0 ? [] : [recordingExpressions(FIRST_EXTRA + payments.length)]),
  ];
  return [FLUSH, ...extras].join(', ') + WRITTEN;
}

const STORED = 'SELECT 1 FROM events WHERE webhook_id = $1';

export interface GroupCommitOptions {
  readonly database: Queryable;
  readonly log: Log;
  /** Called after each flush that wrote events. */
  readonly onEvents: () => void;
}

/** Changes waiting and flushes made, for `/metrics`. */
export interface JournalLoad {
  readonly waiting: number;
  readonly flushes: number;
  readonly changes: number;
}

/** Makes the journal on a database. */
export const groupCommit = (options: GroupCommitOptions): GroupCommit => new GroupCommit(options);

export class GroupCommit implements Journal {
  readonly #options: GroupCommitOptions;
  readonly #waiting: Waiting[] = [];
  #flushing: Promise<void> | undefined;
  #flushes = 0;
  #changes = 0;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  commit(change: Change): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= JOURNAL_WAITING_MAX_CHANGES) {
        reject(new StoreUnavailable('too many changes are waiting for the database'));
        return;
      }
      this.#waiting.push({ change, resolve, reject });
      this.#flushing ??= this.#run();
    });
  }

  load(): JournalLoad {
    return { waiting: this.#waiting.length, flushes: this.#flushes, changes: this.#changes };
  }

  /** Resolves when nothing waits and no flush is under way. */
  async idle(): Promise<void> {
    while (this.#flushing !== undefined) await this.#flushing;
  }

  async #run(): Promise<void> {
    // Everything that commits in this turn comes aboard.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, JOURNAL_FLUSH_MAX_CHANGES);
      this.#flushes += 1;
      this.#changes += batch.length;
      await this.#flush(batch);
    }
    this.#flushing = undefined;
  }

  async #flush(batch: readonly Waiting[]): Promise<void> {
    try {
      const outcome = await this.#write(batch.map((each) => each.change));
      for (const [at, stored] of outcome.entries()) batch[at]?.resolve(stored);
    } catch (error) {
      if (error instanceof StoreUnavailable || batch.length === 1) {
        for (const each of batch) each.reject(asRefusal(error));
        if (!(error instanceof StoreUnavailable))
          this.#options.log.error({ error: String(error) }, 'the database refused a change');
        return;
      }
      // One change the database refuses must not sink those beside it.
      for (const each of batch) await this.#flush([each]);
    }
  }

  async #write(batch: readonly Change[]): Promise<boolean[]> {
    const plan = planFlush(batch);
    const payments = plan.payments.length === 0 ? [] : paymentParameters(plan.payments);
    const recordings = plan.recordings.length === 0 ? [] : recordingParameters(plan.recordings);
    const rows = await this.#options.database.query<{ session_uuid: string }>(flushStatement(payments, recordings), [
      JSON.stringify(plan.sessions.map(sessionColumns)),
      JSON.stringify(plan.events),
      JSON.stringify(plan.answers),
      JSON.stringify(plan.rooms.map(roomColumns)),
      ...payments,
      ...recordings,
    ]);
    if (plan.events.length > 0) this.#options.onEvents();
    const written = new Set(rows.map((row) => row.session_uuid));
    const outcome: boolean[] = [];
    for (const [at, change] of batch.entries()) {
      if (change.session === undefined) outcome.push(true);
      else if (plan.late.has(at)) outcome.push(false);
      else outcome.push(written.has(change.session.sessionUuid) || (await this.#isStored(change)));
    }
    return outcome;
  }

  /** Tells whether the same change came before, and its caller was told in error that it failed. */
  async #isStored(change: Change): Promise<boolean> {
    const first = change.events[0];
    return first !== undefined && (await this.#options.database.query(STORED, [first.webhookId])).length > 0;
  }
}

const asRefusal = (error: unknown): StoreUnavailable =>
  error instanceof StoreUnavailable ? error : new StoreUnavailable('the database refused the change', { cause: error });

interface FlushPlan {
  /** One row a Session, the last before or at its end: a statement may touch a row once. */
  readonly sessions: readonly SessionRow[];
  /** One row a Room, its last. */
  readonly rooms: readonly RoomRow[];
  readonly events: readonly Record<string, unknown>[];
  readonly answers: readonly Record<string, unknown>[];
  readonly payments: readonly PaymentChange[];
  readonly recordings: readonly RecordingChange[];
  /** Positions of changes of a Session that ended earlier in the same batch: nothing of them is stored. */
  readonly late: ReadonlySet<number>;
}

function planFlush(batch: readonly Change[]): FlushPlan {
  const sessions = new Map<string, SessionRow>();
  const rooms = new Map<string, RoomRow>();
  const events: Record<string, unknown>[] = [];
  const answers = new Map<string, Record<string, unknown>>();
  const late = new Set<number>();
  const paid: PaymentChange[] = [];
  const recorded: RecordingChange[] = [];
  for (const [at, { session, room, events: emitted, answer, payments = [], recordings = [] }] of batch.entries()) {
    if (session !== undefined) {
      if (sessions.get(session.sessionUuid)?.endedAt !== undefined) {
        late.add(at);
        continue;
      }
      sessions.set(session.sessionUuid, session);
    }
    if (room !== undefined) rooms.set(room.roomId, room);
    paid.push(...payments);
    recorded.push(...recordings);
    const guard = session?.sessionUuid ?? null;
    for (const event of emitted)
      events.push({
        position: events.length,
        guard,
        webhook_id: event.webhookId,
        app_uuid: event.appUuid,
        name: event.name,
        session_uuid: event.sessionUuid ?? null,
        lanes: event.lanes,
        body: event.body,
        traceparent: event.traceparent,
        at: Math.floor(event.at),
      });
    if (answer !== undefined)
      answers.set(`${answer.appUuid} ${answer.key}`, {
        guard,
        app_uuid: answer.appUuid,
        key: answer.key,
        status: answer.status,
        body: JSON.stringify(answer.body),
      });
  }
  // Every node writes rows in one order, so that two flushes can never wait for each other.
  const ordered = [...sessions.values()].sort((a, b) => (a.sessionUuid < b.sessionUuid ? -1 : 1));
  return {
    sessions: ordered,
    rooms: [...rooms.values()],
    events,
    answers: [...answers.values()],
    payments: paid,
    recordings: recorded,
    late,
  };
}

const sessionColumns = (row: SessionRow): Record<string, unknown> => ({
  session_uuid: row.sessionUuid,
  app_uuid: row.appUuid,
  node_id: row.nodeId,
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

const roomColumns = (row: RoomRow): Record<string, unknown> => ({
  room_id: row.roomId,
  app_uuid: row.appUuid,
  node_id: row.nodeId,
  voice_activity_events: row.voiceActivityEvents,
  hold_music_url: row.holdMusicUrl,
  volume: row.volume ?? null,
  deleting: row.deleting,
  playback: row.playback,
  created_at: Math.floor(row.createdAt),
  deleted_at: row.deletedAt === undefined ? null : Math.floor(row.deletedAt),
});
