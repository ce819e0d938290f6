/** Rooms as rows, read. They are written by the journal only. */
import { asc, isNull } from 'drizzle-orm';
import type { Database } from './driver/database.ts';
import type { RoomRow } from './journal/journal.ts';
import { rooms } from './schema.ts';

export interface RoomStore {
  /** Lists the Rooms that were not deleted: what a process left behind. */
  live(): Promise<readonly RoomRow[]>;
}

export const roomStore = (database: Database): RoomStore => ({
  live: async () => {
    const rows = await database.run((on) => on.select().from(rooms).where(isNull(rooms.deletedAt)).orderBy(asc(rooms.createdAt)));
    return rows.map((row) => ({ ...row, volume: row.volume ?? undefined, deletedAt: row.deletedAt ?? undefined }));
  },
});
