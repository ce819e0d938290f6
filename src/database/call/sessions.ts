/** Sessions as rows, read. They are written by the journal only. */

import { inTurns } from '../../bounds/in-turns.ts';
import { isUuid } from '../../id.ts';
import { ENDED_SESSION_KEPT_SEC, LIST_MATCHED_MAX_ITEMS } from '../../limits.ts';
import type { Database, Row } from '../driver/database.ts';
import { coalesce } from '../journal/coalesce.ts';
import type { SessionRow } from '../journal/journal.ts';
import { OF_NO_LIVE_NODE } from '../node/nodes.ts';

interface SessionQuery {
  /** Empty: every state. */
  readonly states: readonly string[];
  /** Inclusive, ms since the epoch. */
  readonly createdAfter: number | undefined;
  /** Exclusive. */
  readonly createdBefore: number | undefined;
  readonly limit: number;
}

/**
 * What a reader sees of a Session, and whose it is: half of its row's columns, which are read in three quarters of the
 * time.
 */
export type SessionRecord = Pick<
  SessionRow,
  'sessionUuid' | 'appUuid' | 'nodeId' | 'type' | 'state' | 'callerId' | 'did' | 'answered' | 'createdAt' | 'endedAt'
>;

/** A record with the text that its application gave it, of up to 1,024 characters: a list of 50,000 goes without. */
export type FoundSession = SessionRecord & Pick<SessionRow, 'clientState'>;

export interface SessionStore {
  /**
   * A Session of the application, also an ended one, for 24 h. Another application's is not read at all, so that it
   * takes as long as one that is not there.
   */
  get(appUuid: string, sessionUuid: string): Promise<FoundSession | undefined>;
  /** Live Sessions, newest first; `'too_many'` when more than 50,000 match, whatever the limit. */
  list(appUuid: string, query: SessionQuery): Promise<readonly SessionRecord[] | 'too_many'>;
  /** The node that runs a live Session of the application. Undefined: there is none, or it has ended. */
  owner(appUuid: string, sessionUuid: string): Promise<string | undefined>;
  /**
   * Makes a live Session of another node one of this, or of this one at the next epoch, so that nobody takes it at this
   * one. False: it is not that node's at that epoch any more. It may be asked again where it was not answered.
   */
  take(sessionUuid: string, from: string, epoch: number): Promise<boolean>;
  /**
   * Takes calls of a node that is lost over any of those trunks, as many at most, which were stored so that another
   * node can go on. A call in which a card is keyed in stays: its keys would be told.
   */
  takeCalls(from: string, most: number, trunks: readonly string[]): Promise<readonly SessionRow[]>;
  /** Takes over the live Sessions of nodes that are dead or unknown, each with its epoch raised. */
  adopt(): Promise<readonly SessionRow[]>;
  /** The live Sessions that are this node's by their rows. */
  mine(): Promise<readonly SessionRow[]>;
}

const COLUMNS =
  'session_uuid::text AS session_uuid, app_uuid, node_id, epoch, type, state, caller_id, did, answered, client_state, room_id, running, trunk, created_at, answered_at, ended_at, summary';
/** The columns of a `SessionRecord`, without the two by which it is found. */
const SHOWN = 'node_id, type, state, caller_id, did, answered, created_at, ended_at';
/** All rows as one text: JSON.parse makes them in one call, where the driver makes a string of each column. */
const GET = `SELECT json_agg(shown)::text AS rows FROM (
  SELECT at, ${SHOWN}, client_state FROM json_array_elements($1::text::json) WITH ORDINALITY AS asked (wanted, at)
  JOIN sessions ON session_uuid = (wanted->>1)::uuid AND app_uuid = wanted->>0) AS shown`;

const MATCHED = `app_uuid = $1 AND ended_at IS NULL
  AND ($2::text IS NULL OR state IN (SELECT json_array_elements_text($2::text::json)))
  AND ($3::bigint IS NULL OR created_at >= $3::bigint) AND ($4::bigint IS NULL OR created_at < $4::bigint)`;
const LIST = `SELECT session_uuid::text AS session_uuid, ${SHOWN},
  (SELECT count(*)::int FROM (SELECT 1 FROM sessions WHERE ${MATCHED} LIMIT ${LIST_MATCHED_MAX_ITEMS + 1}) AS m) AS matched
  FROM sessions WHERE ${MATCHED} ORDER BY created_at DESC, session_uuid DESC LIMIT $5::int`;
/** Whoever takes over is alive itself. What a dead node had under way is refused by the epoch. */
const ADOPT = `UPDATE sessions AS s SET node_id = $1, epoch = epoch + 1
  WHERE ended_at IS NULL AND ${OF_NO_LIVE_NODE} AND EXISTS (SELECT FROM nodes WHERE node_id = $1 AND dead_at IS NULL FOR SHARE)
  RETURNING ${COLUMNS}`;

const MINE = `SELECT ${COLUMNS} FROM sessions WHERE node_id = $1 AND ended_at IS NULL`;
const TAKE_CALLS = `UPDATE sessions SET node_id = $1, epoch = epoch + 1 WHERE session_uuid IN (
    SELECT session_uuid FROM sessions WHERE node_id = $2 AND ended_at IS NULL AND state = 'answered' AND position('"call":' IN running) > 0
      AND position('"secure":' IN running) = 0 AND trunk IN (SELECT json_array_elements_text($4::text::json))
    ORDER BY created_at LIMIT $3::int FOR UPDATE SKIP LOCKED)
  AND EXISTS (SELECT FROM nodes WHERE node_id = $1 AND dead_at IS NULL FOR SHARE) RETURNING ${COLUMNS}`;
const TAKE = `UPDATE sessions SET node_id = $1, epoch = $4::int + 1
  WHERE session_uuid = $2::uuid AND ((node_id = $3 AND epoch = $4::int) OR (node_id = $1 AND epoch = $4::int + 1))
  AND ended_at IS NULL AND EXISTS (SELECT FROM nodes WHERE node_id = $1 AND dead_at IS NULL FOR SHARE) RETURNING 1`;
/** The application and the Session that is looked up for it. */
type Wanted = readonly [appUuid: string, sessionUuid: string];

/** `nodeId` names this process. */
export function sessionStore(database: Database, nodeId: string, now: () => number): SessionStore {
  const load = coalesce<Wanted, FoundSession | undefined>({
    load: async (wanted) => {
      const found = wanted.map((): FoundSession | undefined => undefined);
      const [answer] = await database.query<{ rows: string | null }>(GET, [JSON.stringify(wanted)]);
      const rows: readonly Row[] = JSON.parse(answer?.rows ?? '[]');
      for (const row of rows) {
        const at = Number(row.at) - 1;
        const asked = wanted[at];
        if (asked !== undefined) found[at] = { ...sessionRecord(row, ...asked), clientState: String(row.client_state) };
      }
      return found;
    },
  });
  return {
    async get(appUuid, sessionUuid) {
      const row = await load([appUuid, sessionUuid]);
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
      return Number(rows[0]?.matched ?? 0) > LIST_MATCHED_MAX_ITEMS
        ? 'too_many'
        : await inTurns(rows, (row) => sessionRecord(row, appUuid, String(row.session_uuid)));
    },
    async owner(appUuid, sessionUuid) {
      if (!isUuid(sessionUuid)) return undefined;
      const row = await load([appUuid, sessionUuid]);
      return row === undefined || row.endedAt !== undefined ? undefined : row.nodeId;
    },
    take: async (sessionUuid, from, epoch) => (await database.query(TAKE, [nodeId, sessionUuid, from, epoch])).length > 0,
    takeCalls: async (from, most, trunks) =>
      (await database.query(TAKE_CALLS, [nodeId, from, most, JSON.stringify(trunks)])).map(sessionRow),
    mine: async () => (await database.query(MINE, [nodeId])).map(sessionRow),
    adopt: async () => (await database.query(ADOPT, [nodeId])).map(sessionRow).sort((a, b) => a.createdAt - b.createdAt),
  };
}

const TYPES = ['phone_in', 'phone_out', 'sip', 'webrtc', 'websocket'] as const;
const STATES = ['new', 'connecting', 'ringing', 'early_media', 'answered', 'ended'] as const;

function sessionRecord(row: Row, appUuid: string, sessionUuid: string): SessionRecord {
  const type = TYPES.find((each) => each === row.type);
  const state = STATES.find((each) => each === row.state);
  if (type === undefined || state === undefined) throw new Error('a session row of a later version');
  return {
    sessionUuid,
    appUuid,
    nodeId: String(row.node_id),
    type,
    state,
    callerId: String(row.caller_id),
    did: String(row.did),
    answered: row.answered === true,
    createdAt: Number(row.created_at),
    endedAt: row.ended_at === null ? undefined : Number(row.ended_at),
  };
}

const sessionRow = (row: Row): SessionRow => ({
  ...sessionRecord(row, String(row.app_uuid), String(row.session_uuid)),
  epoch: Number(row.epoch),
  clientState: String(row.client_state),
  roomId: String(row.room_id),
  running: String(row.running),
  trunk: String(row.trunk),
  answeredAt: row.answered_at === null ? undefined : Number(row.answered_at),
  summary: String(row.summary),
});
