/** Sessions as rows, read. They are written by the journal only. */
import { ENDED_SESSION_KEPT_SEC, LIST_MATCHED_MAX_ITEMS } from '../limits.ts';
import type { Database, Row } from './driver/database.ts';
import { coalesce } from './journal/coalesce.ts';
import type { SessionRow } from './journal/journal.ts';

interface SessionQuery {
  /** Empty: every state. */
  readonly states: readonly string[];
  /** Inclusive, ms since the epoch. */
  readonly createdAfter: number | undefined;
  /** Exclusive. */
  readonly createdBefore: number | undefined;
  readonly limit: number;
}

export interface SessionStore {
  /** Also an ended one, for 24 h. */
  get(sessionUuid: string): Promise<SessionRow | undefined>;
  /** Live Sessions, newest first; `'too_many'` when more than 50,000 match, whatever the limit. */
  list(appUuid: string, query: SessionQuery): Promise<readonly SessionRow[] | 'too_many'>;
  /** The node that runs a live Session of the application. Undefined: there is none, or it has ended. */
  owner(appUuid: string, sessionUuid: string): Promise<string | undefined>;
  /** Takes over the live Sessions of nodes that are dead or unknown, each with its epoch raised. */
  adopt(): Promise<readonly SessionRow[]>;
}

const COLUMNS =
  'session_uuid::text AS session_uuid, app_uuid, node_id, epoch, type, state, caller_id, did, answered, client_state, room_id, running, trunk, created_at, answered_at, ended_at, summary';
const GET = `SELECT ${COLUMNS} FROM sessions WHERE session_uuid IN (SELECT value::uuid FROM json_array_elements_text($1::text::json))`;

const MATCHED = `app_uuid = $1 AND ended_at IS NULL
  AND ($2::text IS NULL OR state IN (SELECT json_array_elements_text($2::text::json)))
  AND ($3::bigint IS NULL OR created_at >= $3::bigint) AND ($4::bigint IS NULL OR created_at < $4::bigint)`;
const LIST = `SELECT ${COLUMNS},
  (SELECT count(*)::int FROM (SELECT 1 FROM sessions WHERE ${MATCHED} LIMIT ${LIST_MATCHED_MAX_ITEMS + 1}) AS m) AS matched
  FROM sessions WHERE ${MATCHED} ORDER BY created_at DESC, session_uuid DESC LIMIT $5::int`;
/** Whoever takes over is alive itself. What a dead node had under way is refused by the epoch. */
const ADOPT = `UPDATE sessions AS s SET node_id = $1, epoch = epoch + 1
  WHERE ended_at IS NULL AND node_id <> $1 AND EXISTS (SELECT FROM nodes WHERE node_id = $1 AND dead_at IS NULL)
    AND NOT EXISTS (SELECT FROM nodes AS n WHERE n.node_id = s.node_id AND n.dead_at IS NULL)
  RETURNING ${COLUMNS}`;

/** `nodeId` names this process. */
export function sessionStore(database: Database, nodeId: string, now: () => number): SessionStore {
  const load = coalesce<string, SessionRow | undefined>({
    load: async (uuids) => {
      const rows = await database.query(GET, [JSON.stringify(uuids)]);
      const found = new Map(rows.map((row) => [String(row.session_uuid), sessionRow(row)]));
      return uuids.map((uuid) => found.get(uuid));
    },
  });
  return {
    async get(sessionUuid) {
      const row = await load(sessionUuid);
      const forgotten = row?.endedAt !== undefined && row.endedAt < now() - ENDED_SESSION_KEPT_SEC * 1000;
      return forgotten ? undefined : row;
    },
    async list(appUuid, query) {
      const states = query.states.length === 0 ? null : JSON.stringify(query.states);
      const rows = await database.query(LIST, [
        appUuid,
        states,
        query.createdAfter ?? null,
        query.createdBefore ?? null,
        query.limit,
      ]);
      return Number(rows[0]?.matched ?? 0) > LIST_MATCHED_MAX_ITEMS ? 'too_many' : rows.map(sessionRow);
    },
    async owner(appUuid, sessionUuid) {
      const row = await load(sessionUuid);
      return row?.appUuid === appUuid && row.endedAt === undefined ? row.nodeId : undefined;
    },
    adopt: async () => (await database.query(ADOPT, [nodeId])).map(sessionRow).sort((a, b) => a.createdAt - b.createdAt),
  };
}

const TYPES = ['phone_in', 'phone_out', 'websocket'] as const;
const STATES = ['new', 'connecting', 'ringing', 'early_media', 'answered', 'ended'] as const;

function sessionRow(row: Row): SessionRow {
  const type = TYPES.find((each) => each === row.type);
  const state = STATES.find((each) => each === row.state);
  if (type === undefined || state === undefined) throw new Error('a session row of a later version');
  return {
    sessionUuid: String(row.session_uuid),
    appUuid: String(row.app_uuid),
    nodeId: String(row.node_id),
    epoch: Number(row.epoch),
    type,
    state,
    callerId: String(row.caller_id),
    did: String(row.did),
    answered: row.answered === true,
    clientState: String(row.client_state),
    roomId: String(row.room_id),
    running: String(row.running),
    trunk: String(row.trunk),
    createdAt: Number(row.created_at),
    answeredAt: row.answered_at === null ? undefined : Number(row.answered_at),
    endedAt: row.ended_at === null ? undefined : Number(row.ended_at),
    summary: String(row.summary),
  };
}
