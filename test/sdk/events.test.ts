/**
 * The events as the SDK of TypeScript types them. The compiler holds them against the events that the machines emit,
 * and holds the fields that `shown` reads.
 */
import { expect, test } from 'bun:test';
import type { CallQuality, SipEnd, SipFacts, WebhookEvent } from '../../sdk/typescript/src/index.ts';
import type * as report from '../../src/event/call-report.ts';
import type { Event } from '../../src/event/event.ts';

/** What an application might show of an event, by narrowing it to its name and its kind. */
function shown(event: WebhookEvent): string {
  switch (event.event) {
    case 'session.created':
      return `${event.type} ${event.sip?.headers?.['X-Queue'] ?? ''}`;
    case 'session.ended':
      return `${event.hangup_by} ${event.quality?.mos.toFixed(1)} ${event.sip?.q850} ${event.client_state}`;
    case 'recording.ended':
      return 'room_id' in event ? `Room ${event.room_id}` : `Session ${event.session_uuid}`;
    case 'payment.card.collected':
      return event.status === 'failed' ? event.reason : event.payment_method_details.card.last4;
    case 'payment.charge.completed':
      return event.status === 'succeeded' ? event.payment_method_details.card.brand : event.failure_reason;
    case 'playback.ended':
      return (event.urls ?? []).map((url) => url.toUpperCase()).join();
    default:
      return event.aud;
  }
}

const common = { aud: 'app_1', timestamp: '2026-01-31T12:00:00.000Z' };
const ofSession = { ...common, session_uuid: 's' };
const operation = { ...ofSession, operation_uuid: 'o' };
const charge = { ...operation, retryable: false, amount: 1, currency: 'ils', provider: 'sandbox', terminal_number: '1' };

test('the types of the SDK tell the kinds of an event apart, and know the fields that may be absent', () => {
  const events: readonly WebhookEvent[] = [
    {
      ...ofSession,
      event: 'session.created',
      caller_id: '',
      did: '',
      type: 'sip',
      sip: { call_id: 'c', headers: { 'X-Queue': 'sales' } },
    },
    { ...common, event: 'recording.ended', room_id: 'r', recording_uuid: 'rec', operation_uuid: 'o', ...urls(), duration: 1 },
    { ...operation, event: 'recording.ended', recording_uuid: 'rec', ...urls(), duration: 1 },
    { ...operation, event: 'payment.card.collected', status: 'failed', reason: 'luhn_check_failed', client_state: 'x' },
    { ...charge, event: 'payment.charge.completed', status: 'declined', failure_reason: 'card_declined', test: true },
    { ...operation, event: 'playback.ended', reason: 'stopped' },
  ];
  expect(events.map(shown)).toEqual(['sip sales', 'Room r', 'Session s', 'luhn_check_failed', 'card_declined', '']);
});

/** The fields that the events of a name have in a union of events. */
type FieldOf<Each, Name> = Each extends { readonly event: infer Names } ? (Name extends Names ? keyof Each : never) : never;
/** Fields that a machine emits, and that the SDK does not know. */
type Unknown =
  | { [Name in Event['event']]: Exclude<FieldOf<Event, Name>, FieldOf<WebhookEvent, Name>> }[Event['event']]
  | Exclude<keyof report.SipFacts, keyof SipFacts>
  | Exclude<keyof report.SipEnd, keyof SipEnd>
  | Exclude<keyof report.CallQuality, keyof CallQuality>;
/** Events whose URLs are added as they are serialised, and those that have a wider type in the union of events. */
type Apart =
  | 'recording.became_available'
  | 'recording.ended'
  | `payment.${'card.collected' | 'charge.completed'}`
  | 'message.status_changed';

test('each event that a machine emits is one of the SDK, field by field', () => {
  const isKnown: [Unknown] extends [never] ? true : Unknown = true;
  const asTyped = (event: Exclude<Event, { readonly event: Apart }>): WebhookEvent => ({ ...common, ...event });
  expect([isKnown, asTyped({ event: 'session.ringing_started', session_uuid: 's' })]).toEqual([
    true,
    { ...ofSession, event: 'session.ringing_started' },
  ]);
});

function urls() {
  return { pull_url: 'https://voice.example.com/', expires_at: common.timestamp };
}
