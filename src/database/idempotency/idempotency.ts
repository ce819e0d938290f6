/**
 * Idempotency keys (contract §10): scope application and key, kept 24 h. A key is marked in flight under a lease before
 * the work; the answer is stored by the commit that carries the effect (journal), or here where the work has no such
 * commit. Requests that wait together share a round trip. Where several processes share the database a mark is a row,
 * else it is in memory (`key-marks.ts`).
 */
import { IDEMPOTENCY_KEPT_SEC, IDEMPOTENCY_LEASE_SEC, NODE_SLOW_COMMAND_TIMEOUT_MS, STATEMENT_MAX_MS } from '../../limits.ts';
import type { Database, Row } from '../driver/database.ts';
import { coalesce } from '../journal/coalesce.ts';
import { StoreUnavailable } from '../journal/journal.ts';
import { INSERT_ANSWER } from '../journal/kept-answers.ts';
import type { KeyedRequest, KeyMarks } from './key-marks.ts';

type KeyState =
  /** Ours to work on, until the lease ends. */
  | { readonly state: 'fresh' }
  /** The first answer, to be sent again. */
  | { readonly state: 'replay'; readonly status: number; readonly body: string }
  | { readonly state: 'in_flight' }
  /** The key was used with another request. */
  | { readonly state: 'mismatch' };

export interface IdempotencyStore {
  begin(request: KeyedRequest): Promise<KeyState>;
  /** The commit that carried the effect has stored the answer. */
  stored(request: KeyedRequest): void;
  /**
   * Stores the answer of a request whose work had no commit of its own. No effect once an answer is stored. `body` is
   * JSON text, or `""`.
   */
  finish(request: KeyedRequest, status: number, body: string): Promise<void>;
  /**
   * Gives the key back: the request may be tried again under it. No effect once an answer is stored, or where another
   * node marked it. `marker` is the node that did, this one unless told.
   */
  release(request: KeyedRequest, marker?: string): Promise<void>;
  /** The work is over, and nobody knows what came of it: the request may be tried again once its lease is over. */
  left(request: KeyedRequest): void;
  /**
   * Gives back the keys that a process which is gone left in flight: the same request may be tried again once no other
   * node can be at work on it, LEFT_WORKED_MS after its mark. Returns how many there are.
   */
  releaseLeft(nodeId: string): Promise<number>;
}

const ASKED = `json_to_recordset($1::text::json) AS asked (app_uuid text, key text, fingerprint text)`;
/** The database's clock judges the lease: those of two nodes may differ by more than it lasts. */
const CLOCK = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
/**
 * A node that was declared dead marks nothing: its marks were given back, and a command that it passes on to another
 * node could take effect there after its key is free.
 */
const BEGIN = `
WITH mine AS (
  SELECT 1 FROM nodes WHERE node_id = $2 AND dead_at IS NULL
), marked AS (
  INSERT INTO idempotency AS i (app_uuid, key, fingerprint, lease_until, node_id, created_at)
  SELECT app_uuid, key, fingerprint, ${CLOCK} + ${IDEMPOTENCY_LEASE_SEC * 1000}, $2, ${CLOCK} FROM ${ASKED}
  WHERE EXISTS (SELECT FROM mine)
  ON CONFLICT (app_uuid, key) DO UPDATE SET
    fingerprint = excluded.fingerprint, status = NULL, body = NULL, lease_until = excluded.lease_until, node_id = excluded.node_id,
    created_at = excluded.created_at
  WHERE i.created_at < ${CLOCK} - ${IDEMPOTENCY_KEPT_SEC * 1000}
    OR (i.status IS NULL AND i.lease_until < ${CLOCK} AND i.fingerprint = excluded.fingerprint)
  RETURNING app_uuid, key
)
SELECT EXISTS (SELECT FROM mine) AS alive, asked.app_uuid, asked.key, (asked.app_uuid, asked.key) IN (SELECT app_uuid, key FROM marked) AS fresh, i.fingerprint = asked.fingerprint AS same, i.status, i.body
FROM ${ASKED}
LEFT JOIN idempotency AS i ON i.app_uuid = asked.app_uuid AND i.key = asked.key`;

const FINISH = `UPDATE idempotency SET status = $4::smallint, body = $5
  WHERE app_uuid = $1 AND key = $2 AND fingerprint = $3 AND status IS NULL AND node_id = $6`;
/** A node to which a request was passed on may store its effect for so long, also where the one that did so is gone. */
const LEFT_WORKED_MS = NODE_SLOW_COMMAND_TIMEOUT_MS + STATEMENT_MAX_MS;
/**
 * The lease of an older mark is over. Without that bound all keys of a day are read: there is no index on nodes. They
 * are locked in the order in which keys are marked.
 */
const RELEASE_LEFT = `WITH of_node AS MATERIALIZED (
  SELECT app_uuid, key FROM idempotency
  WHERE created_at >= (SELECT ${CLOCK} - ${IDEMPOTENCY_LEASE_SEC * 1000}) AND node_id = $1 AND status IS NULL
  ORDER BY app_uuid COLLATE "C", key COLLATE "C" FOR UPDATE
)
UPDATE idempotency AS i SET lease_until = least(lease_until, created_at + ${LEFT_WORKED_MS}), node_id = ''
FROM of_node AS o WHERE i.app_uuid = o.app_uuid AND i.key = o.key RETURNING 1 AS released`;
const RELEASE =
  'DELETE FROM idempotency WHERE app_uuid = $1 AND key = $2 AND fingerprint = $3 AND status IS NULL AND node_id = $4';

/** `nodeId` names this process. `marks`: it has the database for itself. */
export const idempotencyStore = (
  database: Database,
  nodeId: string,
  now: () => number,
  marks: KeyMarks | undefined,
): IdempotencyStore => ({
  ...(marks === undefined ? markedInRows(database, nodeId) : markedInMemory(database, marks, now)),
  async releaseLeft(of) {
    const rows = await database.query(RELEASE_LEFT, [of]);
    return rows.length;
  },
});

type KeysOfOne = Omit<IdempotencyStore, 'releaseLeft'>;

/** The row of a key, unless the key may be marked by that request all the same: 24 h have passed, or a lease. */
const LOOK = `SELECT asked.app_uuid, asked.key, asked.fingerprint, i.fingerprint = asked.fingerprint AS same, i.status, i.body
FROM json_to_recordset($1::text::json) AS asked (app_uuid text, key text, fingerprint text, at bigint)
JOIN idempotency AS i ON i.app_uuid = asked.app_uuid AND i.key = asked.key
WHERE i.created_at >= asked.at - ${IDEMPOTENCY_KEPT_SEC * 1000}
  AND NOT (i.status IS NULL AND i.lease_until < asked.at AND i.fingerprint = asked.fingerprint)`;

function markedInMemory(database: Database, marks: KeyMarks, now: () => number): KeysOfOne {
  const look = coalesce<KeyedRequest, KeyState | undefined>({
    load: async (requests) => {
      const at = Math.floor(now());
      const asked = requests.map((each) => ({ app_uuid: each.appUuid, key: each.key, fingerprint: each.fingerprint, at }));
      const rows = await database.query(LOOK, [JSON.stringify(asked)]);
      if (rows.length === 0) return requests.map(() => undefined);
      const found = new Map(rows.map((row) => [`${row.app_uuid} ${row.key} ${row.fingerprint}`, keyState(row)]));
      return requests.map((each) => found.get(`${each.appUuid} ${each.key} ${each.fingerprint}`));
    },
  });
  return {
    async begin(request) {
      const found = await marks.begin(request, () => look(request));
      if (found === undefined) return { state: 'fresh' };
      return typeof found === 'string' ? { state: found } : found;
    },
    stored: (request) => marks.end(request),
    async finish(request, status, body) {
      const at = marks.of(request)?.markedAt ?? Math.floor(now());
      const row = { app_uuid: request.appUuid, key: request.key, fingerprint: request.fingerprint, status, body, created_at: at };
      await database.query(INSERT_ANSWER, [JSON.stringify([row])]);
      marks.end(request);
    },
    async release(request) {
      marks.end(request);
    },
    left: (request) => marks.leave(request),
  };
}

function markedInRows(database: Database, nodeId: string): KeysOfOne {
  const nameOf = (each: KeyedRequest): string => `${each.appUuid} ${each.key}`;
  const begin = coalesce<KeyedRequest, KeyState>({
    distinct: nameOf,
    load: async (requests) => {
      const asked = [...requests]
        .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
        .map((each) => ({ app_uuid: each.appUuid, key: each.key, fingerprint: each.fingerprint }));
      const rows = await database.query(BEGIN, [JSON.stringify(asked), nodeId]);
      if (rows.some(({ alive }) => alive === false)) throw new StoreUnavailable('this node was declared dead');
      const states = new Map(rows.map((row) => [`${row.app_uuid} ${row.key}`, keyState(row)]));
      return requests.map((each) => states.get(nameOf(each)) ?? { state: 'in_flight' });
    },
  });
  return {
    begin,
    stored: () => {},
    async finish({ appUuid, key, fingerprint }, status, body) {
      await database.query(FINISH, [appUuid, key, fingerprint, status, body, nodeId]);
    },
    async release({ appUuid, key, fingerprint }, marker = nodeId) {
      await database.query(RELEASE, [appUuid, key, fingerprint, marker]);
    },
    left: () => {},
  };
}

function keyState(row: Row): KeyState {
  if (row.fresh === true) return { state: 'fresh' };
  // Marked by another node between our snapshot and our insert: not visible yet, so neither is its request.
  if (row.same === null) return { state: 'in_flight' };
  if (row.same !== true) return { state: 'mismatch' };
  return row.status === null
    ? { state: 'in_flight' }
    : { state: 'replay', status: Number(row.status), body: String(row.body ?? '') };
}
