/** An event as the columns of its row in `events`. */
import type { PlatformEvent } from '../../event/event.ts';

export interface EventColumns {
  readonly webhook_id: string;
  readonly app_uuid: string;
  readonly name: string;
  readonly session_uuid: string | null;
  readonly lanes: readonly string[];
  readonly body: string;
  readonly traceparent: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Makes the columns of an event. */
export const eventColumns = (event: PlatformEvent): EventColumns => ({
  webhook_id: event.webhookId,
  app_uuid: event.appUuid,
  name: event.name,
  session_uuid: event.sessionUuid ?? null,
  lanes: event.lanes,
  body: event.body,
  traceparent: event.traceparent,
  at: Math.floor(event.at),
});
