/**
 * Short messages as rows. The machine of `machine/message/message.ts` runs inside the transaction that holds the row's
 * lock: state, event and answer are one commit, and two nodes never submit the same message.
 */

import { inTurns } from '../bounds/in-turns.ts';
import type { Event } from '../event/event.ts';
import { platformEvent } from '../event/platform-event.ts';
import { newWebhookId } from '../id.ts';
import { LIST_MATCHED_MAX_ITEMS, MESSAGE_CLAIM_MS, MESSAGES_WAITING_MAX } from '../limits.ts';
import { MESSAGE_STATUSES, type MessageState, type MessageStep } from '../machine/message/message.ts';
import { normalId } from '../machine/message/receipt.ts';
import type { Database, Queryable, Row } from './driver/database.ts';
import { emit, keepAnswer } from './journal/emit.ts';
import type { StoredAnswer } from './journal/journal.ts';
import type { KeptAnswers } from './journal/kept-answers.ts';

export interface MessageQuery {
  readonly status: string | undefined;
  readonly to: string | undefined;
  readonly from: string | undefined;
  /** Inclusive, ms since the epoch. */
  readonly createdAfter: number | undefined;
  /** Exclusive. */
  readonly createdBefore: number | undefined;
  readonly limit: number;
}

/** The part of a message that an id of the SMSC stands for. */
export interface PartFound {
  readonly messageUuid: string;
  readonly part: number;
  readonly smscId: string;
  readonly to: string;
  /** Still waiting for a receipt. */
  readonly open: boolean;
}

export interface MessageStore {
  /** Stores a message. Resolves with false when too many of the application's messages wait already. */
  insert(message: MessageState, answer: StoredAnswer | undefined): Promise<boolean>;
  get(appUuid: string, messageUuid: string): Promise<MessageState | undefined>;
  list(appUuid: string, query: MessageQuery): Promise<readonly MessageState[] | 'too_many'>;
  /** The latest messages, newest first, of one application or of all. */
  latest(appUuid: string | undefined, limit: number): Promise<readonly MessageState[]>;
  /**
   * Takes messages that are due through `step`, at most `limit` of them, and returns what became of them. Applications
   * take turns, in the order of their ids from the one behind `after` on; of each the oldest message is first. It takes
   * fewer where the database is slow, and none that another transaction has locked.
   */
  claim(now: number, limit: number, after: string, step: (state: MessageState) => MessageStep): Promise<readonly MessageState[]>;
  /** Takes one message through `step`. Undefined: no such message. */
  change(messageUuid: string, now: number, step: (state: MessageState) => MessageStep): Promise<MessageState | undefined>;
  /** Messages at a gateway: those held past their time, or all where nobody else can hold one. */
  held(until: number): Promise<readonly string[]>;
  /** Messages that have waited since then or longer, ms since the epoch, the first that is due first; a batch. */
  waitingSince(createdAt: number): Promise<readonly string[]>;
  /** When the next message is due, ms since the epoch. */
  nextDue(): Promise<number | undefined>;
  findParts(smscIds: readonly string[]): Promise<readonly PartFound[]>;
  /** Parts that wait for a receipt and whose ids begin so, the oldest first; at most `OPEN_PARTS_MAX`. */
  openParts(idPrefix: string): Promise<readonly PartFound[]>;
  /** Other processes may submit from the same database. */
  readonly shared: boolean;
}

const OPEN_PARTS_MAX = 10_000;

const COLUMNS = `message_uuid::text AS message_uuid, app_uuid, operation_uuid, from_number, to_number, body, encoding, segments, status, error_code,
  error_message, created_at, updated_at, sent_at, delivered_at, parts::text AS parts, stage, due_at, attempts, traceparent`;

const INSERT = `INSERT INTO messages (message_uuid, app_uuid, operation_uuid, from_number, to_number, body, encoding, segments, status,
  created_at, updated_at, parts, stage, due_at, traceparent)
  SELECT $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::smallint, $9::text, $10::bigint, $10::bigint,
    $11::text::jsonb, $12::text, $13::bigint, $14::text
  WHERE (SELECT count(*) FROM (SELECT 1 FROM messages WHERE app_uuid = $2::text AND stage = 'waiting' LIMIT ${MESSAGES_WAITING_MAX}) AS w)
    < ${MESSAGES_WAITING_MAX}
  RETURNING 1`;
const GET = `SELECT ${COLUMNS} FROM messages WHERE message_uuid = $1::uuid`;
const NEXT_IN_TURN = `SELECT ${COLUMNS} FROM messages WHERE stage = 'waiting' AND app_uuid > $1::text AND due_at <= $2::bigint
  ORDER BY app_uuid, due_at LIMIT 1 FOR UPDATE SKIP LOCKED`;
const MORE_OF_ONE = `SELECT ${COLUMNS} FROM messages WHERE stage = 'waiting' AND app_uuid = $1::text AND due_at <= $2::bigint
  ORDER BY due_at LIMIT $3::int FOR UPDATE SKIP LOCKED`;
const WRITE = `UPDATE messages SET status = $2::text, error_code = $3::text, error_message = $4::text, updated_at = $5::bigint, sent_at = $6::bigint,
  delivered_at = $7::bigint, parts = $8::text::jsonb, stage = $9::text, due_at = $10::bigint, attempts = $11::int WHERE message_uuid = $1::uuid`;
const NAME_PARTS = `INSERT INTO message_parts (message_uuid, part, smsc_id)
  SELECT $1::uuid, part, smsc_id FROM json_to_recordset($2::text::json) AS p (part smallint, smsc_id text) ON CONFLICT DO NOTHING`;
/**
 * The ids are an array, and the order is by no column: a plan that joins with the ids last, or that has the newest
 * messages first, would look at all of them for each receipt.
 */
const FIND_PARTS = `SELECT p.message_uuid::text AS message_uuid, p.part, p.smsc_id, m.to_number, m.status FROM message_parts AS p
  JOIN messages AS m ON m.message_uuid = p.message_uuid
  WHERE p.smsc_id = ANY (ARRAY(SELECT json_array_elements_text($1::text::json))) ORDER BY m.created_at + 0 DESC LIMIT 20`;
const OPEN_PARTS = `SELECT p.message_uuid::text AS message_uuid, p.part, p.smsc_id, m.to_number, m.status FROM message_parts AS p
  JOIN messages AS m ON m.message_uuid = p.message_uuid
  WHERE m.status IN ('sent', 'sending') AND starts_with(p.smsc_id, $1::text) ORDER BY m.created_at LIMIT ${OPEN_PARTS_MAX}`;
const HELD = `SELECT message_uuid::text AS message_uuid FROM messages WHERE stage = 'submitting' AND due_at <= $1::bigint ORDER BY due_at LIMIT 10000`;
/** The order is not that of `created_at`: where many wait, and none for so long, all of a month would be read by it. */
const WAITING_SINCE = `SELECT message_uuid::text AS message_uuid FROM messages WHERE stage = 'waiting' AND created_at <= $1::bigint
  ORDER BY due_at LIMIT 1000`;
const NEXT_DUE = `SELECT min(due_at) AS due_at FROM messages WHERE stage = 'waiting'`;
/**
 * The messages that a list matches. Those to one number have a statement of their own, which finds them by the index
 * that has numbers: a plan for either would look at all messages of the application, 1.4 s of 1,500,000. The times are
 * always given, for the same reason: a plan for any parameters finds nothing by a bound that may be NULL.
 */
const matched = (toOne: boolean): string => `app_uuid = $1 AND ($2::text IS NULL OR status = $2::text)
  AND ${toOne ? 'to_number = $3::text' : '$3::text IS NULL'} AND ($4::text IS NULL OR from_number = $4::text)
  AND created_at >= $5::bigint AND created_at < $6::bigint`;
const list = (toOne: boolean): string => `SELECT ${COLUMNS},
  (SELECT count(*)::int FROM (SELECT 1 FROM messages WHERE ${matched(toOne)} LIMIT ${LIST_MATCHED_MAX_ITEMS + 1}) AS m) AS matched
  FROM messages WHERE ${matched(toOne)} ORDER BY created_at DESC, message_uuid DESC LIMIT $7::int`;
const LIST = list(false);
const LIST_TO_ONE = list(true);
const latest = (of: string) => `SELECT ${COLUMNS} FROM messages ${of} ORDER BY created_at DESC, message_uuid DESC LIMIT $1::int`;
const LATEST = latest('');
const LATEST_OF_APP = latest('WHERE app_uuid = $2');

/** Writes a step of a message and emits its events, within a transaction. */
async function write(within: Queryable, before: MessageState, after: MessageStep, now: number): Promise<void> {
  const { state, events } = after;
  if (state === before) return;
  await within.query(WRITE, [
    state.messageUuid,
    state.status,
    state.errorCode,
    state.errorMessage,
    Math.floor(state.updatedAt),
    whole(state.sentAt),
    whole(state.deliveredAt),
    JSON.stringify(state.parts),
    state.stage,
    Math.floor(state.dueAt),
    state.attempts,
  ]);
  const named = state.parts.flatMap(({ smscId }, part) =>
    smscId !== '' && smscId !== before.parts[part]?.smscId ? [{ part, smsc_id: normalId(smscId) }] : [],
  );
  if (named.length > 0) await within.query(NAME_PARTS, [state.messageUuid, JSON.stringify(named)]);
  await emit(
    within,
    events.map((event) => ofMessage(state, event, now)),
  );
}

/** Takes the message of a locked row through `step`, and writes what becomes of it. */
async function stepRow(
  within: Queryable,
  row: Row,
  now: number,
  step: (state: MessageState) => MessageStep,
): Promise<MessageStep> {
  const before = messageOf(row);
  const after = step(before);
  await write(within, before, after, now);
  return after;
}

/**
 * Locks messages that are due, one of each application in turn. Each has to be written before the next is asked for. An
 * application that is alone has the rest at once.
 */
async function* inTurn(within: Queryable, now: number, limit: number, after: string): AsyncGenerator<Row> {
  const due = Math.floor(now);
  let turn = after;
  let isFirstRound = true;
  for (let left = limit; left > 0; left -= 1) {
    const next = async (behind: string) => (await within.query(NEXT_IN_TURN, [behind, due]))[0];
    const row = (await next(turn)) ?? (turn === '' ? undefined : await next(''));
    if (row === undefined) return;
    const isAlone = !isFirstRound && row.app_uuid === turn;
    turn = String(row.app_uuid);
    isFirstRound = false;
    yield row;
    if (isAlone) {
      yield* await within.query(MORE_OF_ONE, [turn, due, left - 1]);
      return;
    }
  }
}

/** Ends where MESSAGE_CLAIM_MS are over. `now` is in milliseconds. */
async function* inTime<T>(rows: AsyncIterable<T>, now: () => number): AsyncGenerator<T> {
  const until = now() + MESSAGE_CLAIM_MS;
  for await (const row of rows) {
    yield row;
    if (now() >= until) return;
  }
}

const insertParameters = (message: MessageState) => [
  message.messageUuid,
  message.appUuid,
  message.operationUuid,
  message.from,
  message.to,
  message.text,
  message.encoding,
  message.segments,
  message.status,
  Math.floor(message.createdAt),
  JSON.stringify(message.parts),
  message.stage,
  Math.floor(message.dueAt),
  message.traceparent,
];

/**
 * Makes the store. `onEvents` is called after each commit that wrote events. `shared` says that other processes may
 * submit from the same database. `monotonicNow` is in milliseconds.
 */
export function messageStore(
  database: Database,
  shared: boolean,
  kept: KeptAnswers,
  onEvents: () => void,
  monotonicNow = () => performance.now(),
): MessageStore {
  return {
    shared,

    insert: (message, answer) =>
      database.transaction(async (within) => {
        const rows = await within.query(INSERT, insertParameters(message));
        if (rows.length > 0) await keepAnswer(within, kept, answer);
        return rows.length > 0;
      }),

    async get(appUuid, messageUuid) {
      const [row] = await database.query(GET, [messageUuid]);
      return row !== undefined && row.app_uuid === appUuid ? messageOf(row) : undefined;
    },

    async list(appUuid, query) {
      const statement = query.to === undefined ? LIST : LIST_TO_ONE;
      const rows = await database.query(statement, [appUuid, ...listParameters(query)]);
      return Number(rows[0]?.matched ?? 0) > LIST_MATCHED_MAX_ITEMS ? 'too_many' : await inTurns(rows, messageOf);
    },

    async latest(appUuid, limit) {
      const ofApp = appUuid === undefined ? [] : [appUuid];
      const rows = await database.query(ofApp.length === 0 ? LATEST : LATEST_OF_APP, [limit, ...ofApp]);
      return rows.map(messageOf);
    },

    async claim(now, limit, after, step) {
      const claimed = await database.transaction(async (within) => {
        const taken: MessageStep[] = [];
        for await (const row of inTime(inTurn(within, now, limit, after), monotonicNow))
          taken.push(await stepRow(within, row, now, step));
        return taken;
      });
      if (claimed.some(({ events }) => events.length > 0)) onEvents();
      return claimed.map(({ state }) => state);
    },

    async change(messageUuid, now, step) {
      const changed = await database.transaction(async (within) => {
        const [row] = await within.query(`${GET} FOR UPDATE`, [messageUuid]);
        return row === undefined ? undefined : await stepRow(within, row, now, step);
      });
      if (changed !== undefined && changed.events.length > 0) onEvents();
      return changed?.state;
    },

    held: async (until) => (await database.query(HELD, [Math.floor(until)])).map((row) => String(row.message_uuid)),

    waitingSince: async (createdAt) =>
      (await database.query(WAITING_SINCE, [Math.floor(createdAt)])).map((row) => String(row.message_uuid)),

    async nextDue() {
      const [row] = await database.query(NEXT_DUE);
      return row === undefined || row.due_at === null ? undefined : Number(row.due_at);
    },

    findParts: async (smscIds) => (await database.query(FIND_PARTS, [JSON.stringify(smscIds)])).map(partOf),

    openParts: async (idPrefix) => (await database.query(OPEN_PARTS, [idPrefix])).map(partOf),
  };
}

/** The parameters of a list after the application. null stands for a filter that is not given, except for a time. */
const listParameters = ({ status, to, from, createdAfter, createdBefore, limit }: MessageQuery) => [
  status ?? null,
  to ?? null,
  from ?? null,
  createdAfter ?? 0,
  createdBefore ?? Number.MAX_SAFE_INTEGER,
  limit,
];

const partOf = (row: Row): PartFound => ({
  messageUuid: String(row.message_uuid),
  part: Number(row.part),
  smscId: String(row.smsc_id),
  to: String(row.to_number),
  open: row.status === 'sent' || row.status === 'sending',
});
const whole = (at: number | undefined): number | null => (at === undefined ? null : Math.floor(at));
const ofMessage = ({ appUuid, traceparent }: MessageState, event: Event, now: number) =>
  platformEvent(event, { appUuid, clientState: '', traceparent, webhookId: newWebhookId(), now });
const time = (value: unknown): number | undefined => (value === null ? undefined : Number(value));
const STAGES = ['waiting', 'submitting', 'settled'] as const;

function messageOf(row: Row): MessageState {
  const status = MESSAGE_STATUSES.find((each) => each === row.status);
  const stage = STAGES.find((each) => each === row.stage);
  if (status === undefined || stage === undefined) throw new Error('a message row of a later version');
  return {
    messageUuid: String(row.message_uuid),
    appUuid: String(row.app_uuid),
    operationUuid: String(row.operation_uuid),
    from: String(row.from_number),
    to: String(row.to_number),
    text: String(row.body),
    encoding: row.encoding === 'ucs2' ? 'ucs2' : 'gsm7',
    segments: Number(row.segments),
    status,
    errorCode: String(row.error_code),
    errorMessage: String(row.error_message),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    sentAt: time(row.sent_at),
    deliveredAt: time(row.delivered_at),
    parts: JSON.parse(String(row.parts)),
    stage,
    dueAt: Number(row.due_at),
    attempts: Number(row.attempts),
    traceparent: String(row.traceparent),
  };
}
