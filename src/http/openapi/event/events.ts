/** The schemas of all events, by the names that they have in the OpenAPI document and in the SDKs. */
import type { Event } from '../../../event/event.ts';
import type { Schema } from '../schema.ts';
import { MEDIA_EVENTS } from './media-events.ts';
import { MESSAGE_EVENTS, PAYMENT_EVENTS } from './payment-events.ts';
import { ROOM_EVENTS } from './room-events.ts';
import { CALL_REPORTS, SESSION_EVENTS } from './session-events.ts';

/** The words of `session.ringing_started` in the manner of a type: `SessionRingingStarted`. */
type Capital<Name extends string> = Name extends `${infer First}.${infer Rest}`
  ? `${Capital<First>}${Capital<Rest>}`
  : Name extends `${infer First}_${infer Rest}`
    ? `${Capital<First>}${Capital<Rest>}`
    : Capitalize<Name>;

/** The type makes an event without a schema an error of compilation. */
const EVENTS: Readonly<Record<`${Capital<Event['event']>}Event`, Schema>> = {
  ...SESSION_EVENTS,
  ...MEDIA_EVENTS,
  ...ROOM_EVENTS,
  ...PAYMENT_EVENTS,
  ...MESSAGE_EVENTS,
};

/** The schemas of events, and of the objects in them. */
export const EVENT_SCHEMAS: Readonly<Record<string, Schema>> = { ...CALL_REPORTS, ...EVENTS };

/** The words of the name of an event, each with a capital: `session.ringing_started` is `SessionRingingStarted`. */
export const capitals = (event: string): string =>
  event
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
