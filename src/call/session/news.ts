/** What bots hear of a Session (`sidetone.v1`). */
import type { Event } from '../../event/event.ts';
import type { Membership } from '../../machine/room/membership.ts';
import type { RoomNews } from '../ports/leg.ts';

/** The news that an event is to the bots in the Room, or undefined where it is none. */
export function newsOf(event: Event): RoomNews | undefined {
  switch (event.event) {
    case 'dtmf.received':
      return { type: 'dtmf', session_uuid: event.session_uuid, digit: event.digit, duration_ms: event.duration_ms };
    case 'room.member.joined':
      return { type: 'member_joined', session_uuid: event.session_uuid };
    case 'room.member.left':
      return { type: 'member_left', session_uuid: event.session_uuid, reason: event.reason };
    default:
      return undefined;
  }
}

/**
 * The news that the Session began or ceased to talk in a Room, with that Room, or undefined where neither happened. It
 * comes from the membership and not from an event, because a Room without `voice_activity_events` emits none.
 */
export function speechNews(
  sessionUuid: string,
  before: Membership | undefined,
  after: Membership | undefined,
): { readonly roomId: string; readonly news: RoomNews } | undefined {
  const talked = before?.talking ?? false;
  const talks = after?.talking ?? false;
  const roomId = (talks ? after : before)?.roomId;
  if (talked === talks || roomId === undefined) return undefined;
  return { roomId, news: { type: talks ? 'speech_started' : 'speech_ended', session_uuid: sessionUuid } };
}
