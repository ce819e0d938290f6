/** Events as a Session's actor emits them. */
import type { PlatformEvent } from '../../src/event/event.ts';
import { newUuid, newWebhookId } from '../../src/id.ts';

export function eventOf(appUuid: string, session: string, step: number, name = 'session.held'): PlatformEvent {
  return {
    webhookId: newWebhookId(),
    appUuid,
    name,
    sessionUuid: session,
    lanes: [`session:${session}`],
    body: JSON.stringify({ aud: appUuid, event: name, timestamp: new Date().toISOString(), session_uuid: session, step }),
    traceparent: '',
    at: Date.now(),
  };
}

/** `steps` events of each of `sessions` new Sessions, interleaved. */
export function script(appUuid: string, sessions: number, steps: number): PlatformEvent[] {
  const names = Array.from({ length: sessions }, () => newUuid());
  return Array.from({ length: steps }, (_, step) => names.map((session) => eventOf(appUuid, session, step))).flat();
}
