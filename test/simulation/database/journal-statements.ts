/** The statement of a flush (`journal/flush.ts`), and what other transactions emit (`journal/emit.ts`). */
import type { Row } from '../../../src/database/driver/database.ts';
import type { AnswerRow } from '../../../src/database/journal/kept-answers.ts';
import { isAfter } from './outbox-statements.ts';
import type { Execution, Rows, Statement } from './statement.ts';
import { listAt, NONE, numberAt, ONE, read, step, textAt, write } from './statement.ts';
import type {
  CollectionRecord,
  EventRecord,
  RecordingRecord,
  ReferenceRecord,
  RoomRecord,
  SessionRecord,
  Tables,
} from './tables.ts';

/** The rows without which another is not written. */
interface Guards {
  readonly guard?: string | null;
  readonly room_guard?: string | null;
}

type Guarded<T> = T & Guards;

interface EmittedEvent extends Omit<EventRecord, 'event_id' | 'xid' | 'by' | 'status' | 'attempts'>, Guards {
  readonly recording_guard?: string | null;
}

interface KeptAnswer extends AnswerRow, Guards {}

/** Returns the numbers of the events that were not there before, by webhook id. */
function insertEvents(
  tables: Tables,
  xid: number,
  events: readonly EmittedEvent[],
  by: string | null,
): ReadonlyMap<string, number> {
  const inserted = new Map<string, number>();
  for (const { webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at } of events) {
    if (tables.events.has(webhook_id)) continue;
    const event_id = tables.nextEventId();
    const about = { webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at };
    const event: EventRecord = { event_id, xid, ...about, by, status: 'pending', attempts: [] };
    tables.events.set(webhook_id, event);
    tables.eventsById.set(event_id, event);
    tables.outbox.set(event_id, { xid, event_id, app_uuid });
    inserted.set(webhook_id, event_id);
  }
  return inserted;
}

const KEPT_MS = 24 * 3_600_000;

/** Returns how many were kept. */
function keepAnswers(tables: Pick<Tables, 'idempotency'>, answers: readonly KeptAnswer[]): number {
  let kept = 0;
  for (const { app_uuid, key, status, body, fingerprint, created_at } of answers) {
    const name = `${app_uuid} ${key}`;
    const known = tables.idempotency.get(name);
    if (fingerprint === undefined || created_at === undefined) {
      if (known === undefined || known.status !== null) continue;
      tables.idempotency.set(name, { ...known, status, body });
    } else {
      if (known !== undefined && known.status !== null && known.created_at >= created_at - KEPT_MS) continue;
      const row = { app_uuid, key, fingerprint, status, body, lease_until: created_at, created_at };
      tables.idempotency.set(name, { ...row, node_id: known?.node_id ?? '' });
    }
    kept += 1;
  }
  return kept;
}

/** Whoever inserts a key that another transaction is inserting waits for it. */
const keyLocks = (answers: readonly KeptAnswer[]): readonly string[] =>
  answers.flatMap(({ app_uuid, key, fingerprint }) => (fingerprint === undefined ? [] : [`key ${app_uuid} ${key}`]));

type Kept = Readonly<Record<string, unknown>>;

/** A Session's row, and the Room with its epoch that the Session enters by it. */
type Entering = SessionRecord & { readonly entry?: string };

const entryOf = (room: RoomRecord | undefined): readonly string[] =>
  room === undefined || room.deleted_at !== null ? [] : [`${room.room_id} at ${room.epoch}`];

/** Keeps the columns of the first row that the product's ON CONFLICT does not set. */
function changeSessions(tables: Tables, rows: readonly Entering[], entries: ReadonlySet<string>): Set<string> {
  const changed = new Set<string>();
  for (const { entry, ...row } of rows) {
    if (entry !== undefined && !entries.has(entry)) continue;
    const known = tables.sessions.get(row.session_uuid);
    const isOwned = known !== undefined && known.ended_at === null && known.node_id === row.node_id && known.epoch === row.epoch;
    if (known !== undefined && !isOwned) continue;
    const { state, answered, room_id, running, trunk, answered_at, ended_at, summary } = row;
    const set = { state, answered, room_id, running, trunk, answered_at, ended_at, summary };
    tables.sessions.set(row.session_uuid, known === undefined ? row : { ...known, ...set });
    changed.add(row.session_uuid);
  }
  return changed;
}

function changeRooms(tables: Tables, rows: readonly RoomRecord[]): Set<string> {
  const changed = new Set<string>();
  for (const row of rows) {
    const known = tables.rooms.get(row.room_id);
    const isOwned =
      known !== undefined && known.deleted_at === null && known.node_id === row.node_id && known.epoch === row.epoch;
    if (known !== undefined && !isOwned) continue;
    const { volume, deleting, playback, deleted_at } = row;
    tables.rooms.set(row.room_id, known === undefined ? row : { ...known, volume, deleting, playback, deleted_at });
    changed.add(row.room_id);
  }
  return changed;
}

function changeRecordings(tables: Tables, begun: readonly RecordingRecord[], ended: readonly Kept[]): Set<string> {
  const over = new Set<string>();
  // One statement sees the rows of its start: a recording does not begin and end in it.
  for (const { recording_uuid: uuid, ended_at, duration_ms, bytes: told } of ended) {
    const known = tables.recordings.get(String(uuid));
    if (known === undefined || known.ended_at !== null) continue;
    const durationMs = duration_ms === null ? null : Number(duration_ms);
    const bytes = told === null ? known.bytes : Number(told);
    tables.recordings.set(known.recording_uuid, { ...known, ended_at: Number(ended_at), duration_ms: durationMs, bytes });
    over.add(known.recording_uuid);
  }
  for (const row of begun)
    if (!tables.recordings.has(row.recording_uuid))
      tables.recordings.set(row.recording_uuid, { ...row, ended_at: null, duration_ms: null, bytes: null, removed_at: null });
  return over;
}

interface PaymentLists {
  readonly begun: readonly Guarded<CollectionRecord>[];
  readonly ended: readonly Guarded<{ readonly session_uuid: string; readonly operation_uuid: string }>[];
  readonly staged: readonly Guarded<Omit<ReferenceRecord, 'sealed'> & { readonly sealed: string }>[];
  readonly forgotten: readonly Guarded<{ readonly session_uuid: string }>[];
}

export const collectionKey = (each: { readonly session_uuid: string; readonly operation_uuid: string }): string =>
  `${each.session_uuid} ${each.operation_uuid}`;

function changePayments(tables: Tables, lists: PaymentLists, isWritten: (row: Guards) => boolean): void {
  const [begun, ended] = [lists.begun.filter(isWritten), lists.ended.filter(isWritten)];
  const [staged, forgotten] = [lists.staged.filter(isWritten), lists.forgotten.filter(isWritten)];
  for (const each of ended) tables.collections.delete(collectionKey(each));
  for (const each of begun) if (!tables.collections.has(collectionKey(each))) tables.collections.set(collectionKey(each), each);
  const gone = new Set(forgotten.map(({ session_uuid }) => session_uuid));
  for (const { reference, session_uuid } of tables.references.values())
    if (gone.has(session_uuid)) tables.references.delete(reference);
  for (const each of staged)
    if (!tables.references.has(each.reference))
      tables.references.set(each.reference, { ...each, sealed: new Uint8Array(Buffer.from(each.sealed, 'base64')) });
}

interface Flush {
  readonly nodeId: string;
  /** The Rooms that Sessions enter, or that are written beside. */
  readonly entered: readonly string[];
  readonly sessions: readonly Entering[];
  readonly rooms: readonly RoomRecord[];
  readonly events: readonly EmittedEvent[];
  readonly answers: readonly KeptAnswer[];
  readonly payments: PaymentLists | undefined;
  readonly recordings:
    | { readonly begun: readonly Guarded<RecordingRecord>[]; readonly ended: readonly Guarded<Kept>[] }
    | undefined;
  /** How far the relay of the process has read; undefined: it does not. */
  readonly readTo: { readonly xid: number; readonly eventId: number } | undefined;
}

/** The statement has parameters for what its text names, in this order. */
function flushOf(execution: Execution): Flush {
  const entersRooms = execution.text.includes('entered AS MATERIALIZED (');
  const entered = entersRooms ? textAt(execution, 2).slice(1, -1).split(',') : [];
  let last = entersRooms ? 2 : 1;
  const next = <T>(named: string): readonly T[] => {
    if (!execution.text.includes(`${named} AS (`)) return [];
    last += 1;
    return listAt(execution, last);
  };
  const [sessions, rooms] = [next<Entering>('changed'), next<RoomRecord>('roomed')];
  const payments = execution.text.includes('pay_begun AS (')
    ? { begun: listAt<Guarded<CollectionRecord>>(execution, last + 1), ...paymentsAfter(execution, last + 2) }
    : undefined;
  if (payments !== undefined) last += 4;
  const recordings = execution.text.includes('rec_begun AS (')
    ? { begun: listAt<Guarded<RecordingRecord>>(execution, last + 1), ended: listAt<Guarded<Kept>>(execution, last + 2) }
    : undefined;
  if (recordings !== undefined) last += 2;
  const [events, answers] = [next<EmittedEvent>('emitted'), next<KeptAnswer>('answered')];
  const reads = events.length > 0 && execution.parameters[last] !== null;
  const readTo = reads ? { xid: numberAt(execution, last + 1), eventId: numberAt(execution, last + 2) } : undefined;
  return { nodeId: textAt(execution, 1), entered, sessions, rooms, events, answers, payments, recordings, readTo };
}

const paymentsAfter = (execution: Execution, first: number): Omit<PaymentLists, 'begun'> => ({
  ended: listAt(execution, first),
  staged: listAt(execution, first + 1),
  forgotten: listAt(execution, first + 2),
});

function flush(execution: Execution): (xid: number) => Rows {
  const { tables } = execution;
  const { nodeId, entered, sessions, rooms, events, answers, payments, recordings, readTo } = flushOf(execution);
  // The fence's row is locked, as are the rows that it guards.
  const isMine = tables.isAlive(nodeId);
  const { xmin } = tables;
  const isNext = readTo !== undefined && ![...tables.outbox.values()].some((row) => isAfter(row, readTo.xid, readTo.eventId));
  return (xid) => {
    if (!isMine) return NONE;
    const entries = new Set(entered.flatMap((roomId) => entryOf(tables.rooms.get(roomId))));
    const changed = changeSessions(tables, sessions, entries);
    const roomed = changeRooms(tables, rooms);
    const isIn = (guard: string | null | undefined, set: ReadonlySet<string>) => guard == null || set.has(guard);
    const guarded = (each: Guards) => isIn(each.guard, changed) && isIn(each.room_guard, roomed);
    const { begun = [], ended = [] } = recordings ?? {};
    const over = changeRecordings(tables, begun.filter(guarded), ended.filter(guarded));
    if (payments !== undefined) changePayments(tables, payments, guarded);
    const emitted = events.filter((each) => guarded(each) && isIn(each.recording_guard, over));
    const eventIds = insertEvents(tables, xid, emitted, nodeId);
    keepAnswers(tables, answers.filter(guarded));
    const row = (written: string) => ({ written, event_id: null, xid: null });
    return [
      ...[...entries, ...changed, ...roomed].map(row),
      ...[...eventIds].map(([written, event_id]) => ({ written, event_id, xid: null })),
      { ...row('alive'), xid: isNext && xmin === xid ? String(xid) : null },
    ];
  };
}

function flushLocks(execution: Execution): readonly string[] {
  const { nodeId, entered, sessions, rooms, recordings, payments, answers } = flushOf(execution);
  return [
    `node ${nodeId}`,
    ...sessions.map(({ session_uuid }) => `session ${session_uuid}`),
    ...[...entered, ...rooms.map(({ room_id }) => room_id)].map((roomId) => `room ${roomId}`),
    ...(recordings?.ended ?? []).map(({ recording_uuid }) => `recording ${String(recording_uuid)}`),
    ...(payments?.ended ?? []).map((each) => `collection ${collectionKey(each)}`),
    ...keyLocks(answers),
  ];
}

const SESSION_COLUMNS = 'app_uuid node_id epoch state answered room_id running trunk ended_at'.split(' ');
const ROOM_COLUMNS = 'app_uuid node_id epoch volume deleting playback deleted_at'.split(' ');

const picked = (row: Row | undefined, columns: readonly string[]): Rows =>
  row === undefined ? NONE : [Object.fromEntries(columns.map((name) => [name, row[name]]))];

export const journalStatements: readonly Statement[] = [
  write(/^\s*WITH mine AS MATERIALIZED \(\s+SELECT 1 FROM nodes/, flush, flushLocks),
  read(/^SELECT 1 FROM events WHERE webhook_id = \$1$/, (execution) =>
    execution.tables.events.has(textAt(execution, 1)) ? ONE : NONE,
  ),
  // The looks of `journal/stored.ts`: those at a row wait for a statement that has locked it.
  write(
    /^SELECT app_uuid, node_id, epoch, state.* FROM sessions/s,
    (execution) => () => picked(execution.tables.sessions.get(textAt(execution, 1)), SESSION_COLUMNS),
    (execution) => [`session ${textAt(execution, 1)}`],
  ),
  write(
    /^SELECT app_uuid, node_id, epoch, volume.* FROM rooms/s,
    (execution) => () => picked(execution.tables.rooms.get(textAt(execution, 1)), ROOM_COLUMNS),
    (execution) => [`room ${textAt(execution, 1)}`],
  ),
  read(/^SELECT 1 FROM recordings WHERE recording_uuid = \$1$/, (execution) =>
    execution.tables.recordings.has(textAt(execution, 1)) ? ONE : NONE,
  ),
  read(/^SELECT 1 FROM payment_collections/, (execution) =>
    execution.tables.collections.has(collectionKey({ session_uuid: textAt(execution, 1), operation_uuid: textAt(execution, 2) }))
      ? ONE
      : NONE,
  ),
  read(/^SELECT 1 FROM idempotency/, (execution) => {
    const kept = execution.tables.idempotency.get(`${textAt(execution, 1)} ${textAt(execution, 2)}`);
    return kept?.status === numberAt(execution, 3) && kept.body === textAt(execution, 4) ? ONE : NONE;
  }),
  step(/^\s*WITH emitted AS \(/, (execution) => {
    const events = listAt<EmittedEvent>(execution, 1);
    const { tables } = execution;
    return { rows: NONE, apply: (xid) => void insertEvents(tables, xid, events, null) };
  }),
  step(
    /^INSERT INTO idempotency AS i.* RETURNING 1 AS kept$/s,
    (execution) => {
      const answers = listAt<KeptAnswer>(execution, 1);
      const kept = { idempotency: new Map(execution.tables.idempotency) };
      const rows = Array.from({ length: keepAnswers(kept, answers) }, () => ({ kept: 1 }));
      return { rows, apply: () => void keepAnswers(execution.tables, answers) };
    },
    (execution) => keyLocks(listAt<KeptAnswer>(execution, 1)),
  ),
  write(
    /^INSERT INTO idempotency AS i(?!.*RETURNING)/s,
    (execution) => () => {
      keepAnswers(execution.tables, listAt<KeptAnswer>(execution, 1));
      return NONE;
    },
    (execution) => keyLocks(listAt<KeptAnswer>(execution, 1)),
  ),
];
