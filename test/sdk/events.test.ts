/** The events as the SDK of TypeScript types them. The compiler holds the fields that `shown` reads. */
import { expect, test } from 'bun:test';
import type { WebhookEvent } from '../../sdk/typescript/src/index.ts';

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

function urls() {
  return { pull_url: 'https://voice.example.com/', expires_at: common.timestamp };
}
