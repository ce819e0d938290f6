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
