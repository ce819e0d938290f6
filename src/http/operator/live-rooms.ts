/** The Rooms that this node mixes, with who is in them and who talks. */
import type { LiveRoom, Rooms } from '../../call/ports/rooms.ts';
import { timestamp } from '../../clock.ts';
import { ok, type Route } from '../request-context.ts';
import { route } from '../route.ts';

export const liveRoomRoutes = (rooms: Pick<Rooms, 'live'>): readonly Route[] => [
  route(
    {
      auth: 'operator',
      tag: 'Operator: calls',
      method: 'GET',
      path: '/operator/v1/rooms',
      summary: 'List the Rooms of this node with their members, newest first',
      success: [
        200,
        '`{"rooms": [{"room_id", "app_uuid", "created_at", "members": [{"session_uuid", "muted", "talking"}]}]}`. `talking` is told where the Room has `voice_activity_events` or a bot.',
      ],
    },
    () => () => ok({ rooms: rooms.live().map(roomBody) }),
  ),
];

const roomBody = ({ roomId, appUuid, createdAt, members }: LiveRoom): Readonly<Record<string, unknown>> => ({
  room_id: roomId,
  app_uuid: appUuid,
  created_at: timestamp(createdAt),
  members: members.map(({ sessionUuid, muted, talking }) => ({ session_uuid: sessionUuid, muted, talking })),
});
