/** A Room as the interface shows it: the live one of this node, or the row of another node's. */
import { timestamp } from '../../clock.ts';
import type { ListedRoom } from '../../database/call/rooms.ts';
import type { RoomRow } from '../../database/journal/journal.ts';
import { playbackStatus } from '../../machine/room/room.ts';
import type { ListedRoomView, RoomView } from '../ports/rooms.ts';
import type { RoomActor, StoredPlayback } from './room-actor.ts';

/** The playback that a Room's row tells of, if any. */
export const storedPlayback = ({ playback }: Pick<RoomRow, 'playback'>): StoredPlayback | undefined =>
  playback === '' ? undefined : JSON.parse(playback);

/** A Room of another node in a list, as its row tells it. */
export const rowView = (row: ListedRoom): ListedRoomView => ({
  room_id: row.roomId,
  created_at: timestamp(row.createdAt),
  member_count: row.members,
  playback_status: storedPlayback(row)?.status ?? 'stopped',
  voice_activity_events: row.voiceActivityEvents,
});

/** A live Room of this node. */
export const view = (room: RoomActor): RoomView => {
  const { state } = room;
  // The operation and its sources are shown from the confirmation on (contract §4).
  const heard = state.playback?.phase === 'starting' ? undefined : state.playback;
  return {
    room_id: state.roomId,
    created_at: timestamp(state.createdAt),
    member_count: room.joined.length,
    playback_status: playbackStatus(state),
    playback_operation_uuid: heard?.operationUuid ?? '',
    playback_urls: heard?.urls ?? [],
    playback_volume: state.volume ?? 0,
    voice_activity_events: state.voiceActivityEvents,
  };
};
