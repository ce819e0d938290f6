/**
 * A sample of each event, for the documentation and for trying a receiver. Identifiers stand for real ones, and have
 * their shapes. The URLs of a recording are added when it is serialised, as those of a real one.
 */
import type { Event } from './event.ts';

const SESSION = '3f2b8c1e-5a4d-4c6b-9e8f-1a2b3c4d5e6f';
const ROOM = '7d1e9a54-2c3b-4f6a-8b7c-0d1e2f3a4b5c';
const OPERATION = 'c0ffee00-1234-4abc-8def-0123456789ab';
const RECORDING = 'rec_5e6f7a8b-9c0d-4e1f-a2b3-c4d5e6f7a8b9';
const MESSAGE = '9b8a7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d';
const CARD = 'card_a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d';
const CVV = 'cvv_b2c3d4e5-f6a7-4b8c-9d0e-1f2a3b4c5d6e';
/** The application that the samples of the documentation are about. */
export const SAMPLE_APP = 'app_0f1e2d3c-4b5a-4697-8899-aabbccddeeff';
const PROMPT = 'https://media.example.com/welcome.wav';
const ofSession = { session_uuid: SESSION } as const;
const ofMember = { session_uuid: SESSION, room_id: ROOM } as const;
const ofRecording = { session_uuid: SESSION, recording_uuid: RECORDING, operation_uuid: OPERATION } as const;
const operation = { session_uuid: SESSION, operation_uuid: OPERATION } as const;

/** One sample of every event by its name. The type makes a missing one an error of compilation. */
const SAMPLES: { readonly [Name in Event['event']]: Event & { readonly event: Name } } = {
  'session.created': { event: 'session.created', ...ofSession, caller_id: '+15550100', did: '+15550001', type: 'phone_in' },
  'session.ringing_started': { event: 'session.ringing_started', ...ofSession },
  'session.early_media_started': { event: 'session.early_media_started', ...ofSession },
  'session.answered': { event: 'session.answered', ...operation },
  'session.held': { event: 'session.held', ...ofSession, by: 'far_end' },
  'session.resumed': { event: 'session.resumed', ...ofSession, by: 'far_end' },
  'session.transfer.completed': { event: 'session.transfer.completed', ...operation },
  'session.transfer.failed': { event: 'session.transfer.failed', ...operation, sip_status: 486, reason: 'refused' },
  'session.transfer.requested': { event: 'session.transfer.requested', ...ofSession, target: 'sip:+15550102@example.com' },
  'session.machine_detection.completed': {
    event: 'session.machine_detection.completed',
    ...ofSession,
    result: 'machine',
    after_ms: 2980,
  },
  'session.machine_greeting.ended': { event: 'session.machine_greeting.ended', ...ofSession, beep: true },
  'session.ended': {
    event: 'session.ended',
    ...ofSession,
    answered: true,
    hangup_cause: 'completed',
    hangup_by: 'caller',
    hangup_description: 'Normal call clearing',
    duration_seconds: 42,
  },
  'websocket.connected': { event: 'websocket.connected', ...operation, subprotocol: 'sidetone.v1' },
  'websocket.disconnected': { event: 'websocket.disconnected', ...ofSession, reason: 'remote_closed', close_code: 1000 },
  'websocket.failed': { event: 'websocket.failed', ...operation, reason: 'connection_refused', error: 'network' },
  'websocket.audio_playback_completed': { event: 'websocket.audio_playback_completed', ...ofSession, duration_ms: 1840 },
  'room.created': { event: 'room.created', app_uuid: SAMPLE_APP, room_id: ROOM },
  'room.deleted': { event: 'room.deleted', app_uuid: SAMPLE_APP, room_id: ROOM, reason: 'closed' },
  'room.member.joined': { event: 'room.member.joined', ...ofMember },
  'room.member.left': { event: 'room.member.left', ...ofMember, reason: 'hangup' },
  'room.member.muted': { event: 'room.member.muted', ...ofMember },
  'room.member.unmuted': { event: 'room.member.unmuted', ...ofMember },
  'room.member.voice_activity_changed': { event: 'room.member.voice_activity_changed', ...ofMember, talking: true },
  'room.member.volume_changed': {
    event: 'room.member.volume_changed',
    ...ofMember,
    operation_uuid: OPERATION,
    volume: 80,
    direction: 'both',
  },
  'room.member.volume_change_failed': {
    event: 'room.member.volume_change_failed',
    ...ofMember,
    operation_uuid: OPERATION,
    volume: 80,
    direction: 'both',
    applied_directions: [],
    failed_directions: ['from_member', 'to_member'],
  },
  'room.playback.ended': {
    event: 'room.playback.ended',
    room_id: ROOM,
    operation_uuid: OPERATION,
    urls: [PROMPT],
    reason: 'completed',
  },
  'room.playback.failed': {
    event: 'room.playback.failed',
    room_id: ROOM,
    operation_uuid: OPERATION,
    urls: [PROMPT],
    error: 'playback_error',
  },
  'recording.speech.started': { event: 'recording.speech.started', ...ofRecording, preceding_silence_duration_ms: 1200 },
  'recording.speech.ended': { event: 'recording.speech.ended', ...ofRecording },
  'recording.became_available': { event: 'recording.became_available', ...ofRecording },
  'recording.failed': { event: 'recording.failed', ...ofRecording, error: 'recording unavailable', pull_url: '' },
  'recording.ended': { event: 'recording.ended', ...ofRecording, duration: 42 },
  'playback.started': { event: 'playback.started', ...operation, urls: [PROMPT] },
  'playback.ended': { event: 'playback.ended', ...operation, urls: [PROMPT], reason: 'completed' },
  'playback.failed': { event: 'playback.failed', ...operation, urls: [PROMPT], reason: 'media_unavailable', source_index: 0 },
  'dtmf.received': { event: 'dtmf.received', ...ofSession, digit: '5', duration_ms: 120, method: 'rfc4733' },
  'dtmf.sent': { event: 'dtmf.sent', ...operation, digits: '123#', status: 'completed' },
  'digits.collected': { event: 'digits.collected', ...operation, status: 'success', digits: '1234', terminator: '#' },
  'message.status_changed': {
    event: 'message.status_changed',
    message_uuid: MESSAGE,
    operation_uuid: OPERATION,
    status: 'delivered',
    from: '+15550001',
    to: '+15550100',
    segments: 1,
    error_code: '',
    error_message: '',
  },
  'message.received': {
    event: 'message.received',
    message_uuid: MESSAGE,
    from: '+15550100',
    to: '+15550001',
    text: 'Yes, please call me.',
    segments: 1,
    missing_segments: 0,
  },
  'payment.card.collected': {
    event: 'payment.card.collected',
    ...operation,
    status: 'collected',
    card_uuid: CARD,
    payment_method_details: { card: { brand: 'visa', last4: '1111' } },
  },
  'payment.cvv.collected': { event: 'payment.cvv.collected', ...operation, status: 'collected', cvv_uuid: CVV },
  'payment.charge.completed': {
    event: 'payment.charge.completed',
    ...operation,
    status: 'succeeded',
    retryable: false,
    amount: 2000,
    currency: 'ils',
    provider: 'sandbox',
    terminal_number: '0010000',
    transaction_created_at: '2026-01-01T12:00:00.000Z',
    receipt_created: true,
    installments: 1,
    transaction_type: 'regular',
    payment_method_details: {
      card: { brand: 'visa', last4: '1111', classification: 'debit', issuer: 'sandbox', acquirer: 'sandbox' },
    },
  },
};

/** A sample of every event. */
export const samples = (): readonly Event[] => Object.values(SAMPLES);

/** An identifier: a UUID, bare or behind its prefix (`rec_`). */
const IDENTIFIER = /^((?:[a-z]+_)?)([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})$/;

/**
 * A sample of an event with identifiers of its own: each UUID, also behind a prefix, is replaced by one that `uuid`
 * makes, the same one by the same. Undefined when there is no event of that name.
 */
export function sampleOf(name: string, uuid: () => string): Event | undefined {
  const sample = samples().find((each) => each.event === name);
  if (sample === undefined) return undefined;
  const made = new Map<string, string>();
  const fresh = (value: string): string => {
    const known = made.get(value) ?? uuid();
    made.set(value, known);
    return known;
  };
  const entries = Object.entries(sample).map(([field, value]): [string, unknown] => [
    field,
    typeof value === 'string' ? value.replace(IDENTIFIER, (_, prefix: string, known: string) => prefix + fresh(known)) : value,
  ]);
  return { ...sample, ...Object.fromEntries(entries) };
}
