/** The webhooks of the OpenAPI document: every event with the schema of the body that is posted, and a sample of it. */
import { platformEvent } from '../../event/platform-event.ts';
import { SAMPLE_APP, samples } from '../../event/samples.ts';
import { capitals } from './event/events.ts';
import { ref } from './schema.ts';

const AT = Date.UTC(2026, 0, 31, 12);
const EXPIRES_AT = AT + 3_600_000;
/** Signed URLs as they look; the signature is of nobody. */
const links = (recordingUuid: string) => {
  const url = (kind: 'pull' | 'live') =>
    `https://voice.example.com/v1/media/${recordingUuid}/${kind}?expires=${EXPIRES_AT / 1000}&signature=${'0123456789abcdef'.repeat(4)}`;
  return { mediaUrl: url('pull'), liveUrl: url('live'), expiresAt: EXPIRES_AT };
};
const ABOUT = { appUuid: SAMPLE_APP, clientState: '', traceparent: '', webhookId: '', now: AT, links };

/** The header fields of a delivery, by their names among the parameters of the document. */
export const WEBHOOK_PARAMETERS = {
  WebhookId: {
    name: 'Webhook-Id',
    description: 'The event: the same over all attempts. One may come twice.',
    schema: { type: 'string', pattern: '^evt_[0-9a-f-]{36}$' },
  },
  WebhookTimestamp: {
    name: 'Webhook-Timestamp',
    description: 'When this attempt was made, in seconds since the epoch. Refuse what is older than five minutes.',
    schema: { type: 'string', pattern: '^[0-9]+$' },
  },
  WebhookSignature: {
    name: 'Webhook-Signature',
    description:
      '`v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64 (Standard Webhooks 1.0). While the secret is rotated there are several, separated by spaces.',
    schema: { type: 'string', pattern: '^v1,[A-Za-z0-9+/=]{44}( v1,[A-Za-z0-9+/=]{44})*$' },
  },
  WebhookTraceparent: {
    name: 'traceparent',
    description: 'The trace of the request that caused the event (W3C Trace Context).',
    schema: { type: 'string' },
  },
} as const;

/** The events by name, as OpenAPI 3.1 has webhooks: a request that the platform sends. */
export function webhooks(): Readonly<Record<string, object>> {
  return Object.fromEntries(
    samples().map((sample) => {
      const example: unknown = JSON.parse(platformEvent(sample, ABOUT).body);
      const post = {
        operationId: `on${capitals(sample.event)}`,
        // Each request is signed (Standard Webhooks); that is no security scheme of OpenAPI.
        security: [],
        summary: sample.event,
        tags: ['Webhooks'],
        parameters: Object.keys(WEBHOOK_PARAMETERS).map((name) => ({ $ref: `#/components/parameters/${name}` })),
        requestBody: {
          required: true,
          content: { 'application/json': { schema: ref(`${capitals(sample.event)}Event`), example } },
        },
        responses: { '2XX': { description: 'Taken. Anything else is sent again (docs/webhooks.md).' } },
      };
      return [sample.event, { post }];
    }),
  );
}
