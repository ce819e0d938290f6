/** The schemas of the events of playback, digits and recordings. */
import type { PlaybackFailure } from '../../../event/event.ts';
import { oneOfWords, openWord, recordingUuid, type Schema, text, uuid, whole } from '../schema.ts';
import { count, instant, milliseconds, operationUuid, told, toldOfSession, urls } from './event-schema.ts';

const FAILURES: Readonly<Record<PlaybackFailure, true>> = {
  media_unavailable: true,
  no_active_playback: true,
  source_disconnected: true,
  ingest_timeout: true,
  decode_error: true,
  internal_error: true,
};
const urlsOfFiles = { ...urls, description: 'The whole playlist, in its order. Absent for a stream, a silence or a push.' };

const PLAYBACK = {
  PlaybackStartedEvent: toldOfSession('playback.started', 'The first of the files is heard.', {
    operation_uuid: operationUuid,
    urls,
  }),
  PlaybackEndedEvent: toldOfSession(
    'playback.ended',
    'The playback is over.',
    {
      operation_uuid: operationUuid,
      reason: oneOfWords<'completed' | 'stopped'>({ completed: true, stopped: true }),
    },
    { urls: urlsOfFiles },
  ),
  PlaybackFailedEvent: toldOfSession(
    'playback.failed',
    'A source failed after it was admitted, or a command found nothing playing.',
    { operation_uuid: operationUuid, reason: oneOfWords(FAILURES) },
    { urls: urlsOfFiles, source_index: { ...count, description: 'The source that failed, where one is known.' } },
  ),
} as const;

const DIGITS = {
  DtmfReceivedEvent: toldOfSession('dtmf.received', 'A key was released.', {
    digit: { type: 'string', pattern: '^[0-9A-D*#]$' },
    duration_ms: milliseconds,
    method: oneOfWords<'rfc4733' | 'inband' | 'sip_info'>({ rfc4733: true, inband: true, sip_info: true }),
  }),
  DtmfSentEvent: toldOfSession('dtmf.sent', 'The digits were sent, or the call ended first.', {
    operation_uuid: operationUuid,
    digits: text,
    status: oneOfWords<'completed' | 'stopped'>({ completed: true, stopped: true }),
  }),
  DigitsCollectedEvent: toldOfSession(
    'digits.collected',
    'A collection of digits is over. It comes once for each that was admitted.',
    {
      operation_uuid: operationUuid,
      status: oneOfWords<'success' | 'no_input' | 'partial_then_timeout' | 'cancelled' | 'failure'>({
        success: true,
        no_input: true,
        partial_then_timeout: true,
        cancelled: true,
        failure: true,
      }),
      digits: text,
      terminator: { type: 'string', description: 'The key that ended it; `""` for none.' },
    },
    {
      reason: openWord(
        ['too_few_digits', 'session_ended', ...Object.keys(FAILURES)],
        'Why it failed, or was cancelled without a command for it.',
      ),
    },
  ),
} as const;

const recorded = {
  recording_uuid: recordingUuid,
  operation_uuid: { ...uuid, description: 'The operation that created the recording.' },
} as const;
const signed = { type: 'string', format: 'uri', description: 'Signed; valid until `expires_at`.' } as const;

/** An event of a recording: a Session's names the Session, a Room's the Room. */
const toldOfRecording = (
  name: 'recording.became_available' | 'recording.ended',
  description: string,
  fields: Schema,
  optional: Schema = {},
): Schema => ({
  description,
  anyOf: [
    toldOfSession(name, 'A recording of a Session.', { ...recorded, ...fields }, optional),
    told(name, 'A recording of a Room.', { room_id: uuid, ...recorded, ...fields }, optional),
  ],
});

const RECORDINGS = {
  RecordingBecameAvailableEvent: toldOfRecording(
    'recording.became_available',
    'The first audio of a recording is durable, and can be fetched.',
    { pull_url: signed, live_url: signed, expires_at: instant },
  ),
  RecordingEndedEvent: toldOfRecording(
    'recording.ended',
    'A recording is over. It comes once for each, whatever ended it.',
    { pull_url: signed, expires_at: instant, duration: { ...count, description: 'Seconds, rounded down.' } },
    {
      duration_unknown: {
        const: true,
        description: 'The file was out of reach, so `duration` is 0 and says nothing. It is mended when it is back.',
      },
    },
  ),
  RecordingFailedEvent: toldOfSession('recording.failed', 'No audio of a recording was durable in time.', {
    ...recorded,
    error: { const: 'recording unavailable' },
    pull_url: { const: '' },
  }),
  RecordingSpeechStartedEvent: toldOfSession(
    'recording.speech.started',
    'The far end began to speak; where the recording asks for it.',
    recorded,
    { preceding_silence_duration_ms: { ...whole, minimum: 0, description: 'Absent the first time.' } },
  ),
  RecordingSpeechEndedEvent: toldOfSession(
    'recording.speech.ended',
    'The far end has been silent for `silence_duration_ms`.',
    recorded,
  ),
} as const;

export const MEDIA_EVENTS = { ...PLAYBACK, ...DIGITS, ...RECORDINGS } as const;
