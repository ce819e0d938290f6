/** The schemas of the events of Rooms and their members. */
import type { MemberDirection, MemberLeft, VolumeDirection } from '../../../event/room-event.ts';
import { appUuid, flag, oneOfWords, openWord, uuid } from '../schema.ts';
import { count, operationUuid, told, toldOfSession, urls } from './event-schema.ts';

/** The reasons that are known today. A receiver takes any other. */
const LEFT: Readonly<Record<MemberLeft, true>> = { hangup: true, removed: true, moved: true, room_closed: true, orphan: true };
const ofMember = { room_id: uuid } as const;
const volume = {
  ...ofMember,
  operation_uuid: operationUuid,
  volume: { ...count, description: 'Percent.' },
  direction: oneOfWords<VolumeDirection>({ from_member: true, to_member: true, both: true }),
} as const;
const directions = {
  type: 'array',
  items: oneOfWords<MemberDirection>({ from_member: true, to_member: true }),
} as const;
const playback = { room_id: uuid, operation_uuid: operationUuid, urls } as const;

export const ROOM_EVENTS = {
  RoomCreatedEvent: told('room.created', 'A Room was made.', { app_uuid: appUuid, room_id: uuid }),
  RoomDeletedEvent: told('room.deleted', 'A Room is gone.', {
    app_uuid: appUuid,
    room_id: uuid,
    reason: {
      ...oneOfWords<'closed' | 'timeout'>({ closed: true, timeout: true }),
      description: '`timeout`: its teardown was not confirmed in time.',
    },
  }),
  RoomMemberJoinedEvent: toldOfSession('room.member.joined', 'The first mixed audio was sent to the member.', ofMember),
  RoomMemberLeftEvent: toldOfSession('room.member.left', 'The member is out of the Room.', {
    ...ofMember,
    reason: openWord(Object.keys(LEFT), 'Take any string.'),
  }),
  RoomMemberMutedEvent: toldOfSession('room.member.muted', 'The member was muted.', ofMember),
  RoomMemberUnmutedEvent: toldOfSession('room.member.unmuted', 'The member was unmuted.', ofMember),
  RoomMemberVoiceActivityChangedEvent: toldOfSession(
    'room.member.voice_activity_changed',
    'The member began or ceased to talk; only in Rooms with `voice_activity_events`.',
    { ...ofMember, talking: flag },
  ),
  RoomMemberVolumeChangedEvent: toldOfSession(
    'room.member.volume_changed',
    'The volume has changed in each direction that was asked for.',
    volume,
  ),
  RoomMemberVolumeChangeFailedEvent: toldOfSession(
    'room.member.volume_change_failed',
    'The volume has not changed in each direction that was asked for.',
    { ...volume, applied_directions: directions, failed_directions: directions },
  ),
  RoomPlaybackEndedEvent: told('room.playback.ended', 'The playback in a Room is over.', {
    ...playback,
    reason: oneOfWords<'completed' | 'stopped'>({ completed: true, stopped: true }),
  }),
  RoomPlaybackFailedEvent: told('room.playback.failed', 'The playback in a Room has failed, or did not start in time.', {
    ...playback,
    error: oneOfWords<'playback_error' | 'playback_timeout'>({ playback_error: true, playback_timeout: true }),
  }),
} as const;
