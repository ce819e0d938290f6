/** The webhooks of the OpenAPI document: every event with the body that is posted, from its sample. */
import { platformEvent } from '../../event/platform-event.ts';
import { SAMPLE_APP, samples } from '../../event/samples.ts';

const AT = Date.UTC(2026, 0, 31, 12);
const EXPIRES_AT = AT + 3_600_000;
/** Signed URLs as they look; the signature is of nobody. */
const links = (recordingUuid: string) => {
  const url = (kind: 'pull' | 'live') =>
    `https://voice.example.com/v1/media/${recordingUuid}/${kind}?expires=${EXPIRES_AT / 1000}&signature=${'0123456789abcdef'.repeat(4)}`;
  return { mediaUrl: url('pull'), liveUrl: url('live'), expiresAt: EXPIRES_AT };
};
const ABOUT = { appUuid: SAMPLE_APP, clientState: '', traceparent: '', webhookId: '', now: AT, links };

/** What an event is about; the fields that name it are always there. */
const OWNERS = ['session_uuid', 'room_id', 'message_uuid', 'recording_uuid', 'operation_uuid'];

/** The events by name, as OpenAPI 3.1 has webhooks: a request that the platform sends. */
export function webhooks(): Readonly<Record<string, object>> {
  return Object.fromEntries(
    samples().map((sample) => {
      const example: Record<string, unknown> = JSON.parse(platformEvent(sample, ABOUT).body);
      const fields = Object.entries(example).map(([name, value]) => [name, { type: typeOf(value) }] as const);
      const schema = {
        type: 'object',
        required: ['aud', 'event', 'timestamp', ...OWNERS.filter((name) => name in example)],
        properties: { ...Object.fromEntries(fields), event: { const: sample.event } },
      };
      const post = {
        operationId: `on${sample.event
          .split(/[._]/)
          .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
          .join('')}`,
        // Each request is signed (Standard Webhooks); that is no security scheme of OpenAPI.
        security: [],
        summary: sample.event,
        tags: ['Webhooks'],
        requestBody: { required: true, content: { 'application/json': { schema, example } } },
        responses: { '2XX': { description: 'Taken. Anything else is sent again (docs/webhooks.md).' } },
      };
      return [sample.event, { post }];
    }),
  );
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value;
}
