/** The timeline of a call and its entries, each kind with its fields, as JSON Schema. */
import { object, openObject, openWord, ref, type Schema, text, time, timeOrNone, webhookId, whole } from './schema.ts';

const number = { type: 'number' } as const;
/** An entry of one kind, with all of its fields. */
const entry = (kind: string, fields: Schema): Schema => object({ at: time, kind: { const: kind }, ...fields });

const MEDIA = [
  'connected',
  'early_media',
  'started',
  'timeout',
  'lost',
  'held',
  'resumed',
  'digit',
  'digits_sent',
  'playback_started',
  'playback_completed',
  'playback_stopped',
  'playback_failed',
  'room_joined',
  'room_left',
  'recording_started',
  'recording_ended',
  'recording_failed',
  'speech_started',
  'speech_ended',
  'link_connected',
  'link_failed',
  'link_closed',
  'link_lost',
  'timeline_full',
];

/** The kinds of entries, by the value of `kind`. */
const KINDS = {
  command: 'TimelineCommand',
  sip: 'TimelineSip',
  media: 'TimelineMedia',
  event: 'TimelineEvent',
  webhook: 'TimelineWebhook',
  quality: 'TimelineQuality',
} as const;

export const TIMELINE_SCHEMAS: Readonly<Record<string, Schema>> = {
  Timeline: object({
    session: ref('Call'),
    entries: {
      type: 'array',
      items: {
        oneOf: Object.values(KINDS).map(ref),
        discriminator: {
          propertyName: 'kind',
          mapping: Object.fromEntries(Object.entries(KINDS).map(([kind, name]) => [kind, `#/components/schemas/${name}`])),
        },
      },
    },
  }),
  TimelineCommand: entry('command', { method: text, path: text, status: whole, operation_uuid: text, took_ms: number }),
  TimelineSip: entry('sip', {
    direction: { enum: ['in', 'out'] },
    transport: text,
    peer: { type: 'string', description: 'Address and port of the far end.' },
    first_line: text,
    call_id: text,
    cseq: text,
  }),
  TimelineMedia: {
    ...openObject(
      { at: time, kind: { const: 'media' }, what: openWord(MEDIA, 'What happened.') },
      {
        codec: text,
        by: { enum: ['application', 'far_end'] },
        digit: { type: 'string', description: 'Absent while a card is collected.' },
        duration_ms: number,
        method: { enum: ['rfc4733', 'inband', 'sip_info'] },
        operation_uuid: text,
        recording_uuid: text,
        reason: text,
      },
    ),
    description: 'Something in the audio of the call. Further fields depend on `what`.',
  },
  TimelineEvent: entry('event', {
    name: text,
    webhook_id: webhookId,
    body: { type: 'object', description: 'As it is sent to the webhook.' },
  }),
  TimelineWebhook: entry('webhook', {
    webhook_id: webhookId,
    attempt: { type: 'integer', minimum: 1 },
    status: { type: 'integer', description: '0 where there was no answer.' },
    error: text,
    took_ms: number,
    response: { type: 'string', description: 'The first 2 kB of the answer.' },
    next_at: timeOrNone,
  }),
  TimelineQuality: entry('quality', {
    packets_in: whole,
    packets_lost: whole,
    jitter_ms: number,
    round_trip_ms: number,
    mos: number,
  }),
};
