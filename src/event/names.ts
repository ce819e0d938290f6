/** The names of all webhook events, for what an application may block. */
import type { Event } from './event.ts';

/** Every event by its name. The type makes a missing name, or one that is none, an error of compilation. */
const NAMES: Readonly<Record<Event['event'], true>> = {
  'session.created': true,
  'session.ringing_started': true,
  'session.early_media_started': true,
  'session.answered': true,
  'session.held': true,
  'session.resumed': true,
  'session.transfer.completed': true,
  'session.transfer.failed': true,
  'session.transfer.requested': true,
  'session.machine_detection.completed': true,
  'session.machine_greeting.ended': true,
  'session.ended': true,
  'websocket.connected': true,
  'websocket.disconnected': true,
  'websocket.failed': true,
  'websocket.audio_playback_completed': true,
  'room.created': true,
  'room.deleted': true,
  'room.member.joined': true,
  'room.member.left': true,
  'room.member.muted': true,
  'room.member.unmuted': true,
  'room.member.voice_activity_changed': true,
  'room.member.volume_changed': true,
  'room.member.volume_change_failed': true,
  'room.playback.ended': true,
  'room.playback.failed': true,
  'recording.speech.started': true,
  'recording.speech.ended': true,
  'recording.became_available': true,
  'recording.failed': true,
  'recording.ended': true,
  'playback.started': true,
  'playback.ended': true,
  'playback.failed': true,
  'dtmf.received': true,
  'dtmf.sent': true,
  'digits.collected': true,
  'message.status_changed': true,
  'message.received': true,
  'payment.card.collected': true,
  'payment.cvv.collected': true,
  'payment.charge.completed': true,
};

/** The names of all events. */
export const EVENT_NAMES: readonly string[] = Object.keys(NAMES);

/** Tells whether there is an event of that name. */
export const isEventName = (name: string): boolean => EVENT_NAMES.includes(name);

/** Tells whether `pattern` is the name of an event, or a prefix of one with a trailing `.*`. */
export const isEventPattern = (pattern: string): boolean =>
  pattern.endsWith('.*') ? EVENT_NAMES.some((name) => name.startsWith(pattern.slice(0, -1))) : EVENT_NAMES.includes(pattern);

/** `blocked_webhook_events`: event names, and a prefix with a trailing `.*` (contract §8). */
export function blocker(patterns: readonly string[]): (event: string) => boolean {
  const exact = new Set(patterns.filter((each) => !each.endsWith('.*')));
  const prefixes = patterns.filter((each) => each.endsWith('.*')).map((each) => each.slice(0, -1));
  return (event) => exact.has(event) || prefixes.some((prefix) => event.startsWith(prefix));
}
