/** Rooms as rows, read. They are written by the journal only. */
import type { Database, Row } from './driver/database.ts';
import type { RoomRow } from './journal/journal.ts';

export interface RoomStore {
  /** Rooms that were not deleted: what a process left behind. */
  live(): Promise<readonly RoomRow[]>;
}

const LIVE = `SELECT room_id::text AS room_id, app_uuid, node_id, voice_activity_events, volume, deleting, playback, created_at, deleted_at
  FROM rooms WHERE deleted_at IS NULL ORDER BY created_at`;

export const roomStore = (database: Database): RoomStore => ({
  live: async () => (await database.query(LIVE, [])).map(roomRow),
});

const roomRow = (row: Row): RoomRow => ({
  roomId: String(row.room_id),
  appUuid: String(row.app_uuid),
  nodeId: String(row.node_id),
  voiceActivityEvents: row.voice_activity_events === true,
  volume: row.volume === null ? undefined : Number(row.volume),
  deleting: row.deleting === true,
  playback: String(row.playback),
  createdAt: Number(row.created_at),
  deletedAt: row.deleted_at === null ? undefined : Number(row.deleted_at),
});
