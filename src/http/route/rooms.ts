/** Rooms, their members and their playback (interface, Rooms; contract §4). */

import type { Rooms } from '../../call/ports/rooms.ts';
import type { Sessions } from '../../call/ports/sessions.ts';
import { roomIsMoving } from '../../call/room/room-moving.ts';
import { isUuid } from '../../id.ts';
import { COMMAND_BODY_MAX_BYTES } from '../../limits.ts';
import type { RoomCommand } from '../../machine/room/room.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { Route } from '../request-context.ts';
import { commandContext, ok, type RequestContext, type Work } from '../request-context.ts';
import { bareRoute, bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { PLAY, placeOf, playlist, seek, sourceUrl } from './playback.ts';
import { onSession } from './sessions.ts';

const percent = '0 <= number.integer <= 200';
const create = shape(
  () => type({ '+': 'reject', 'voice_activity_events?': 'boolean', 'hold_music_url?': sourceUrl() }),
  {},
  { voice_activity_events: false },
);
const join = shape(
  () => type({ '+': 'reject', session_uuid: 'string', 'muted?': 'boolean', 'coach?': 'string' }),
  {},
  { muted: false },
);
const memberVolume = shape(() => type({ '+': 'reject', volume: percent, direction: "'from_member' | 'to_member' | 'both'" }));
const volume = shape(() => type({ '+': 'reject', volume: percent }));
const play = shape(() => playlist().or({ '+': 'reject', type: "'stream'", url: sourceUrl() }), {}, { loop: PLAY.loop });

const facts = { auth: 'application', tag: 'Rooms', resource: 'Room' } as const;
const command = {
  ...facts,
  command: true,
  answerStoredBy: 'journal',
  success: [202, 'Admitted; the outcome is an event.'],
} as const;
/**
 * The commands that a member's Session takes: they are session commands, with the limit of those (interface, Limits).
 */
const memberCommand = { ...command, resource: 'Session', method: 'POST', maxBytes: COMMAND_BODY_MAX_BYTES } as const;
const ROOM = '/api/v1/rooms/:room_id';
const roomOf = (context: RequestContext): string => context.params.room_id ?? '';

/** A live Room cannot be played to from a live source (interface, Rooms). */
const streamUnsupported = (): Problem => problems.source({ reason: 'unsupported', retryable: false });

export const roomRoutes = (rooms: Rooms, sessions: Sessions): readonly Route[] => [
  ...collectionRoutes(rooms),
  ...memberRoutes(rooms),
  ...playbackRoutes(rooms),
  ...sessionSideRoutes(sessions),
];

/**
 * The work, where the Room is the application's. One that has just come to this node, as from a node that was lost, has
 * its members a moment later: until then it would look empty, or unknown.
 */
const onRoom = (rooms: Rooms, context: RequestContext, work: Work): Work | Promise<Work | undefined> => {
  const { appUuid } = context;
  const roomId = roomOf(context);
  const opening = rooms.opening(roomId);
  const isHere = () => rooms.get(appUuid, roomId) !== undefined;
  if (opening === undefined && isHere()) return work;
  // A Room that is here by its row and not opened yet, as one of many of a node that was lost, is not unknown.
  return onMember(rooms, context, async () => (await opening) ?? (isHere() ? await work() : roomIsMoving));
};

/** The work of what a member's own node does, where the Room is the application's. */
const onMember = async (rooms: Rooms, context: RequestContext, work: Work): Promise<Work | undefined> =>
  (await rooms.knows(context.appUuid, roomOf(context))) ? work : undefined;

/** The work of an order, where the Room is the application's. */
export const orderedRoom = (rooms: Rooms, context: RequestContext, order: RoomCommand) =>
  onRoom(rooms, context, () => rooms.order(roomOf(context), order, commandContext(context)));

const collectionRoutes = (rooms: Rooms): readonly Route[] => [
  bodyRoute(
    {
      ...command,
      method: 'POST',
      path: '/api/v1/rooms',
      summary: 'Create a Room',
      success: [201, 'The Room.'],
      starts: true,
      optional: true,
      buckets: ['room_create'],
    },
    create,
    (context, { voice_activity_events = false, ...more }) =>
      () =>
        rooms.create({ voice_activity_events, ...more }, commandContext(context)),
  ),
  route(
    {
      ...facts,
      method: 'GET',
      path: '/api/v1/rooms',
      summary: 'List Rooms',
      success: [200, '`{"rooms": […]}`'],
      buckets: ['room_list'],
      isList: true,
    },
    (context) => async () => {
      const found = await rooms.list(context.appUuid);
      if (isProblem(found)) return found;
      return ok({
        rooms: found.map(({ room_id, created_at, member_count, playback_status, voice_activity_events }) => ({
          room_id,
          created_at,
          member_count,
          playback_status,
          voice_activity_events,
        })),
      });
    },
  ),
  route(
    { ...facts, method: 'GET', path: ROOM, summary: 'Inspect a Room', success: [200, 'The Room.'], buckets: ['room_get'] },
    (context) =>
      onRoom(rooms, context, () => {
        const view = rooms.get(context.appUuid, roomOf(context));
        return view === undefined ? problems.notFound('Room') : ok({ ...view });
      }),
  ),
  route({ ...command, method: 'DELETE', path: ROOM, summary: 'Delete a Room', buckets: ['room_delete'] }, (context) =>
    orderedRoom(rooms, context, { type: 'delete' }),
  ),
];

const memberRoutes = (rooms: Rooms): readonly Route[] => [
  bodyRoute(
    { ...command, method: 'POST', path: `${ROOM}/members`, summary: 'Add a Session', buckets: ['member_add'] },
    join,
    (context, { session_uuid, muted = false, ...coaching }) =>
      onMember(rooms, context, () =>
        isUuid(session_uuid)
          ? rooms.join(roomOf(context), { session_uuid, muted, ...coaching }, commandContext(context))
          : problems.notFound('Session'),
      ),
  ),
  route(
    {
      ...facts,
      method: 'GET',
      path: `${ROOM}/members`,
      summary: 'List members',
      success: [200, '`{"members": […]}`'],
      buckets: ['member_list'],
    },
    (context) => onRoom(rooms, context, () => ok({ members: rooms.members(roomOf(context)) })),
  ),
  route(
    {
      ...facts,
      method: 'GET',
      path: `${ROOM}/members/:uuid`,
      summary: 'Inspect a member',
      success: [200, '`{"uuid", "muted"}`'],
      buckets: ['member_get'],
    },
    (context) =>
      onRoom(rooms, context, () => {
        const member = rooms.members(roomOf(context)).find(({ uuid }) => uuid === context.params.uuid);
        return member === undefined ? problems.notFound('Member') : ok({ ...member });
      }),
  ),
  route(
    { ...command, method: 'DELETE', path: `${ROOM}/members/:uuid`, summary: 'Remove a member', buckets: ['member_delete'] },
    (context) => onMember(rooms, context, () => rooms.leave(roomOf(context), context.params.uuid ?? '', commandContext(context))),
  ),
];

const playbackRoutes = (rooms: Rooms): readonly Route[] => [
  bodyRoute(
    {
      ...command,
      method: 'POST',
      path: `${ROOM}/playback/play`,
      summary: 'Play to every member',
      opensSources: true,
      buckets: ['room_play'],
    },
    play,
    (context, request) => {
      if (request.type === 'stream') return onRoom(rooms, context, streamUnsupported);
      const { urls, loop = 1, volume: given } = request;
      return orderedRoom(rooms, context, { type: 'play', urls, loop, volume: given });
    },
  ),
  bareRoute(
    { ...command, method: 'POST', path: `${ROOM}/playback/pause`, summary: 'Pause the playback', buckets: ['room_pause'] },
    (context) => orderedRoom(rooms, context, { type: 'pause' }),
  ),
  bareRoute(
    { ...command, method: 'POST', path: `${ROOM}/playback/resume`, summary: 'Resume the playback', buckets: ['room_resume'] },
    (context) => orderedRoom(rooms, context, { type: 'resume' }),
  ),
  bareRoute(
    { ...command, method: 'POST', path: `${ROOM}/playback/stop`, summary: 'Stop the playback', buckets: ['room_stop'] },
    (context) => orderedRoom(rooms, context, { type: 'stop' }),
  ),
  bodyRoute(
    { ...command, method: 'POST', path: `${ROOM}/playback/seek`, summary: 'Move within the playback', buckets: ['room_seek'] },
    seek,
    (context, request) => {
      const place = placeOf(request);
      return isProblem(place) ? place : orderedRoom(rooms, context, { type: 'seek', place });
    },
  ),
  bodyRoute(
    {
      ...command,
      method: 'POST',
      path: `${ROOM}/playback/volume`,
      summary: 'Set the volume of this playback and the next',
      buckets: ['room_playback_volume'],
    },
    volume,
    (context, request) => orderedRoom(rooms, context, { type: 'volume', volume: request.volume }),
  ),
];

const sessionSideRoutes = (sessions: Sessions): readonly Route[] => [
  bareRoute(
    {
      ...memberCommand,
      path: '/v1/sessions/:uuid/room/mute',
      summary: 'Mute a member',
      buckets: ['room_mute'],
    },
    (context) => onSession(sessions, context, { type: 'member_mute' }),
  ),
  bareRoute(
    {
      ...memberCommand,
      path: '/v1/sessions/:uuid/room/unmute',
      summary: 'Unmute a member',
      buckets: ['room_unmute'],
    },
    (context) => onSession(sessions, context, { type: 'member_unmute' }),
  ),
  bodyRoute(
    {
      ...memberCommand,
      path: '/v1/sessions/:uuid/room/volume',
      summary: 'Set what others hear of a member, what it hears of them, or both',
      buckets: ['room_member_volume'],
    },
    memberVolume,
    (context, { volume: to, direction }) => onSession(sessions, context, { type: 'member_volume', volume: to, direction }),
  ),
];
