/** What bots hear of a Session's events (`sidetone.v1`). */
import type { Event } from '../../event/event.ts';
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
    case 'room.member.voice_activity_changed':
      return { type: event.talking ? 'speech_started' : 'speech_ended', session_uuid: event.session_uuid };
    default:
      return undefined;
  }
}
