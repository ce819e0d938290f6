/**
 * Rooms as rows. The journal writes them, except for three steps that are no Room's own: a Room is made where a cluster
 * has a cap to keep, it gets a home, and it is taken over from a node that is dead.
 */
import { isUuid } from '../../id.ts';
import { LIST_MATCHED_MAX_ITEMS } from '../../limits.ts';
import type { Database, Row } from '../driver/database.ts';
import type { RoomRow } from '../journal/journal.ts';
import { OF_NO_LIVE_NODE } from '../node/nodes.ts';

/** A Room with those who are in it, for a list. */
export interface ListedRoom extends Omit<RoomRow, 'nodeId'> {
  readonly members: number;
}

export interface RoomStore {
  /** Takes over the Rooms of nodes that are dead or unknown, each with its epoch raised. */
  adopt(): Promise<readonly RoomRow[]>;
  /** The live Rooms that are this node's by their rows. */
  mine(): Promise<readonly RoomRow[]>;
  /** The home of a Room of the application: a node, or `null` while it has none. Undefined: there is no such Room. */
  home(appUuid: string, roomId: string): Promise<string | null | undefined>;
  /** Gives up a Room of this node that nobody is in: the next member's node becomes its home. False: it is not ours. */
  release(roomId: string, epoch: number): Promise<boolean>;
  /** Makes this node the home of a Room that has none. Undefined: it has one, or is gone. */
  settle(roomId: string): Promise<RoomRow | undefined>;
  /**
   * Makes a Room of this node, unless the application has `cap` of them: exact over all nodes. It counts as being
   * deleted until its first commit, so that a node that dies in between leaves no Room that nobody knows.
   */
  make(
    row: Pick<RoomRow, 'roomId' | 'appUuid' | 'voiceActivityEvents' | 'holdMusicUrl' | 'createdAt'>,
    cap: number,
  ): Promise<boolean>;
  unmake(roomId: string): Promise<void>;
  /** Takes a Room from a home that is lost. Undefined: it is not that node's at that epoch any more. */
  seize(roomId: string, from: string, epoch: number): Promise<RoomRow | undefined>;
  /** The home of a live Room of any application. */
  where(roomId: string): Promise<{ readonly nodeId: string | null; readonly epoch: number } | undefined>;
  /** Returns those who have joined it, by their rows, with their nodes. */
  members(roomId: string): Promise<readonly { readonly sessionUuid: string; readonly nodeId: string }[]>;
  /** The Rooms of an application, newest first; `'too_many'` when more than LIST_MATCHED_MAX_ITEMS match. */
  list(appUuid: string): Promise<readonly ListedRoom[] | 'too_many'>;
}

const COLUMNS = `room_id::text AS room_id, app_uuid, node_id, epoch, voice_activity_events, hold_music_url, volume, deleting, playback, created_at, deleted_at`;
const ALIVE = 'EXISTS (SELECT FROM nodes WHERE node_id = $1 AND dead_at IS NULL FOR SHARE)';
/** The rows are locked in the order in which flushes lock those of the Rooms that Sessions enter. */
const ADOPT = `UPDATE rooms AS r SET node_id = $1, epoch = epoch + 1 WHERE r.room_id IN (
    SELECT room_id FROM rooms WHERE deleted_at IS NULL AND ${OF_NO_LIVE_NODE} AND ${ALIVE} ORDER BY room_id FOR NO KEY UPDATE)
  RETURNING ${COLUMNS}`;
const MINE = `SELECT ${COLUMNS} FROM rooms WHERE node_id = $1 AND deleted_at IS NULL`;
const HOME = 'SELECT node_id FROM rooms WHERE room_id = $1::uuid AND app_uuid = $2 AND deleted_at IS NULL';
const SETTLE = `UPDATE rooms SET node_id = $1, epoch = epoch + 1
  WHERE room_id = $2::uuid AND node_id IS NULL AND deleted_at IS NULL AND ${ALIVE} RETURNING ${COLUMNS}`;
/** The row is returned again where it is taken already: the answer to the first statement may have been lost. */
const SEIZE = `UPDATE rooms SET node_id = $1, epoch = $4::int + 1
  WHERE room_id = $2::uuid AND ((node_id = $3 AND epoch = $4::int) OR (node_id = $1 AND epoch = $4::int + 1))
    AND deleted_at IS NULL AND ${ALIVE} RETURNING ${COLUMNS}`;
const WHERE = 'SELECT node_id, epoch FROM rooms WHERE room_id = $1::uuid AND deleted_at IS NULL';
const MEMBERS = `SELECT s.session_uuid::text AS session_uuid, s.node_id FROM sessions AS s JOIN rooms AS r ON r.room_id = $1::uuid
  WHERE s.app_uuid = r.app_uuid AND s.ended_at IS NULL AND s.room_id = r.room_id::text`;
const MAKE = `INSERT INTO rooms (room_id, app_uuid, node_id, epoch, voice_activity_events, hold_music_url, deleting, created_at)
  SELECT $2::uuid, $3, $1, 0, $4::boolean, $7, true, $5::bigint
  WHERE ${ALIVE} AND (SELECT count(*) FROM rooms WHERE app_uuid = $3 AND deleted_at IS NULL) < $6::int RETURNING 1`;
const UNMAKE = 'DELETE FROM rooms WHERE room_id = $1::uuid AND node_id = $2 AND deleted_at IS NULL';
const RELEASE = `UPDATE rooms SET node_id = NULL, epoch = epoch + 1
  WHERE room_id = $2::uuid AND node_id = $1 AND epoch = $3::int AND deleted_at IS NULL AND ${ALIVE} RETURNING 1`;
/** Locks the count of one application's Rooms until the transaction is over. */
const COUNTING = "SELECT pg_advisory_xact_lock(hashtextextended('rooms ' || $1, 0))";
const LIST = `SELECT ${COLUMNS} FROM rooms
  WHERE app_uuid = $1 AND deleted_at IS NULL ORDER BY created_at DESC LIMIT ${LIST_MATCHED_MAX_ITEMS + 1}`;
/**
 * How many are in each Room of an application. This is a statement of its own: counted in the list for each Room, or
 * joined to it without statistics, every live Session was read once for every Room (2,500 Rooms and 5,000 Sessions took
 * 8.5 s) where STATEMENT_MAX_MS are permitted.
 */
const COUNTS = `SELECT room_id, count(*)::int AS members FROM sessions
  WHERE app_uuid = $1 AND ended_at IS NULL AND room_id <> '' GROUP BY room_id`;

/** `nodeId` names this process. */
export const roomStore = (database: Database, nodeId: string): RoomStore => ({
  mine: async () => (await database.query(MINE, [nodeId])).map(roomRow),
  adopt: async () => (await database.query(ADOPT, [nodeId])).map(roomRow).sort((a, b) => a.createdAt - b.createdAt),
  async home(appUuid, roomId) {
    if (!isUuid(roomId)) return undefined;
    const [row] = await database.query<{ node_id: string | null }>(HOME, [roomId, appUuid]);
    return row?.node_id;
  },
  release: async (roomId, epoch) => (await database.query(RELEASE, [nodeId, roomId, epoch])).length > 0,
  async settle(roomId) {
    const [row] = await database.query(SETTLE, [nodeId, roomId]);
    return row === undefined ? undefined : roomRow(row);
  },
  make: ({ roomId, appUuid, voiceActivityEvents, holdMusicUrl, createdAt }, cap) =>
    database.transaction(async (within) => {
      await within.query(COUNTING, [appUuid]);
      return (
        (await within.query(MAKE, [nodeId, roomId, appUuid, voiceActivityEvents, Math.floor(createdAt), cap, holdMusicUrl]))
          .length > 0
      );
    }),
  unmake: async (roomId) => void (await database.query(UNMAKE, [roomId, nodeId])),
  async seize(roomId, from, epoch) {
    const [row] = await database.query(SEIZE, [nodeId, roomId, from, epoch]);
    return row === undefined ? undefined : roomRow(row);
  },
  async where(roomId) {
    const [row] = await database.query<{ node_id: string | null; epoch: number }>(WHERE, [roomId]);
    return row === undefined ? undefined : { nodeId: row.node_id, epoch: Number(row.epoch) };
  },
  members: async (roomId) =>
    (await database.query(MEMBERS, [roomId])).map((row) => ({
      sessionUuid: String(row.session_uuid),
      nodeId: String(row.node_id),
    })),
  async list(appUuid) {
    const [rows, counts] = await Promise.all([database.query(LIST, [appUuid]), database.query(COUNTS, [appUuid])]);
    if (rows.length > LIST_MATCHED_MAX_ITEMS) return 'too_many';
    const members = new Map(counts.map((row) => [String(row.room_id), Number(row.members)]));
    return rows.map(roomRow).map((room) => ({ ...room, members: members.get(room.roomId) ?? 0 }));
  },
});

const roomRow = (row: Row): RoomRow => ({
  roomId: String(row.room_id),
  appUuid: String(row.app_uuid),
  nodeId: String(row.node_id ?? ''),
  epoch: Number(row.epoch),
  voiceActivityEvents: row.voice_activity_events === true,
  holdMusicUrl: String(row.hold_music_url),
  volume: row.volume === null ? undefined : Number(row.volume),
  deleting: row.deleting === true,
  playback: String(row.playback),
  createdAt: Number(row.created_at),
  deletedAt: row.deleted_at === null ? undefined : Number(row.deleted_at),
});
