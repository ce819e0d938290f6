/** What the schemas of all events have in common (interface, Events). */
import type { Event } from '../../../event/event.ts';
import { appUuid, openObject, type Schema, uuid } from '../schema.ts';

type EventName = Event['event'];

/** RFC 3339 in UTC with three digits of milliseconds. */
export const instant = {
  type: 'string',
  format: 'date-time',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$',
} as const;
export const operationUuid = { ...uuid, description: 'The operation of the command that the event is an outcome of.' } as const;
export const urls = { type: 'array', items: { type: 'string' }, description: 'The whole playlist, in its order.' } as const;
export const milliseconds = { type: 'integer', minimum: 0 } as const;
export const count = { type: 'integer', minimum: 0 } as const;

const CLIENT_STATE = {
  type: 'string',
  description: 'The `client_state` of the command or token that began the Session. Absent when it had none.',
} as const;
const TEST = { const: true, description: 'Only in a sample that was asked for (`sidetone trigger`).' } as const;

/**
 * The schema of an event. `fields` are always there, `optional` ones may be absent. It is open: a receiver must take
 * fields that it does not know, since events gain optional ones. Tests hold every event of the platform against it
 * closed.
 */
export const told = (name: EventName, description: string, fields: Schema, optional: Schema = {}): Schema => ({
  description,
  ...openObject(
    {
      aud: { ...appUuid, description: 'The application.' },
      event: { const: name },
      timestamp: { ...instant, description: 'When it happened. Never order events by it.' },
      ...fields,
    },
    { ...optional, test: TEST },
  ),
});

/** The schema of an event of a Session: it names the Session first, and may carry its `client_state`. */
export const toldOfSession = (name: EventName, description: string, fields: Schema = {}, optional: Schema = {}): Schema =>
  told(name, description, { session_uuid: uuid, ...fields }, { ...optional, client_state: CLIENT_STATE });
