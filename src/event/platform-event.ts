import { timestamp } from '../clock.ts';
import type { Event, PlatformEvent } from './event.ts';
import type { RecordingLinks } from './recording-event.ts';

/** The circumstances of an event that a machine emitted. */
export interface Circumstances {
  readonly appUuid: string;
  /**
   * The `client_state` of the dial or connectWebsocket that began the Session, echoed in each of its events (contract
   * §2); `""` for none.
   */
  readonly clientState: string;
  readonly traceparent: string;
  readonly webhookId: string;
  readonly now: number;
  /** Makes fresh signed URLs; asked where an event is about a recording that can be fetched. */
  readonly links?: (recordingUuid: string, now: number) => RecordingLinks;
}

/** Serialises an event for the outbox: `aud`, `event`, `timestamp`, then its own fields (interface, Events). */
export function platformEvent(event: Event, about: Circumstances): PlatformEvent {
  const { event: name, ...fields } = event;
  const clientState = about.clientState === '' ? {} : { client_state: about.clientState };
  return {
    webhookId: about.webhookId,
    appUuid: about.appUuid,
    name,
    sessionUuid: 'session_uuid' in event ? event.session_uuid : undefined,
    lanes: lanesOf(event),
    body: JSON.stringify({
      aud: about.appUuid,
      event: name,
      timestamp: timestamp(about.now),
      ...fields,
      ...urlsOf(event, about),
      ...clientState,
    }),
    traceparent: about.traceparent,
    at: about.now,
  };
}

/** A sample that was asked for, as an event of its own lane. Its body says `test: true`. */
export function testEvent(event: Event, about: Circumstances): PlatformEvent {
  const made = platformEvent(event, about);
  const body: Record<string, unknown> = JSON.parse(made.body);
  if ('app_uuid' in body) body.app_uuid = about.appUuid;
  return {
    ...made,
    sessionUuid: undefined,
    lanes: [`test:${about.webhookId}`],
    body: JSON.stringify({ ...body, test: true }),
  };
}

/**
 * Interface, Recording events: both URLs as it becomes available, a fresh one to the whole at its end; one expiry for
 * both.
 */
function urlsOf(event: Event, { links, now }: Circumstances): Readonly<Record<string, string>> {
  if (links === undefined || (event.event !== 'recording.became_available' && event.event !== 'recording.ended')) return {};
  const { mediaUrl, liveUrl, expiresAt } = links(event.recording_uuid, now);
  const expires = { pull_url: mediaUrl, expires_at: timestamp(expiresAt) };
  return event.event === 'recording.ended' ? expires : { ...expires, live_url: liveUrl };
}

/**
 * Contract §9: an event belongs to the lane of its Session and to that of its Room; a message's are in order among
 * themselves, and what one telephone writes to one number.
 */
function lanesOf(event: Event): readonly string[] {
  if (event.event === 'message.received') return [`conversation:${event.from} ${event.to}`];
  if ('message_uuid' in event) return [`message:${event.message_uuid}`];
  const lanes: string[] = [];
  if ('session_uuid' in event) lanes.push(`session:${event.session_uuid}`);
  if ('room_id' in event) lanes.push(`room:${event.room_id}`);
  return lanes;
}
