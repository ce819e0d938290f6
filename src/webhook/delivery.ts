/** One attempt: sign, post, judge the answer (contract §9). */
import type { Clock } from '../clock.ts';
import type { OutboxEvent } from '../database/event/outbox.ts';
import { WEBHOOK_ANSWER_KEPT_BYTES, WEBHOOK_ANSWER_MAX_BYTES } from '../limits.ts';
import { type Outbound, OutboundError } from '../outbound/outbound.ts';
import { signatureHeaders } from '../outbound/webhook-signature.ts';
import type { Endpoint } from './endpoint.ts';
import { retryAfterMs } from './retry.ts';

interface DeliveryOptions {
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly timeoutSec: number;
}

export interface AttemptOutcome {
  /** The receiver's status; null when none came. */
  readonly status: number | null;
  /** `""`: delivered. Otherwise a word: `http_status`, `gone`, `timeout`, `unreachable`, … */
  readonly error: string;
  readonly retryAfterMs: number;
  /** The beginning of the answer's body. */
  readonly response: string;
}

/** Posts the event once. Never rejects. Takes at most `timeoutSec`, the answer's body included. */
export async function attemptDelivery(
  { outbound, clock, timeoutSec }: DeliveryOptions,
  endpoint: Endpoint,
  event: Pick<OutboxEvent, 'appUuid' | 'webhookId' | 'body'>,
  traceparent: string,
): Promise<AttemptOutcome> {
  const abort = new AbortController();
  const cancelTimer = clock.at(clock.now() + timeoutSec * 1000, () => abort.abort());
  try {
    const response = await outbound.fetch({
      url: endpoint.url,
      owner: `webhooks of ${event.appUuid}`,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Sidetone-Webhooks/1',
        ...signatureHeaders(endpoint.keys, event.webhookId, Math.floor(clock.wall() / 1000), event.body),
        traceparent,
      },
      body: event.body,
      signal: abort.signal,
    });
    // The status is the answer. The body is read so that the connection can be used again, and its beginning is kept.
    const answer = await beginningOf(response.body);
    const { status } = response;
    if (status >= 200 && status < 300) return { status, error: '', retryAfterMs: 0, response: answer };
    const wait = retryAfterMs(response.headers.get('retry-after'), clock.wall());
    return { status, error: status === 410 ? 'gone' : 'http_status', retryAfterMs: wait, response: answer };
  } catch (error) {
    const failure = abort.signal.aborted ? 'timeout' : error instanceof OutboundError ? error.failure : 'unreachable';
    return { status: null, error: failure, retryAfterMs: 0, response: '' };
  } finally {
    cancelTimer();
  }
}

/**
 * Reads a body to its end, or gives it up at the limit, at an error or at the abort that ends the attempt. Returns its
 * first WEBHOOK_ANSWER_KEPT_BYTES as text, without NUL, which PostgreSQL takes in no text.
 */
async function beginningOf(body: ReadableStream<Uint8Array> | undefined): Promise<string> {
  if (body === undefined) return '';
  const reader = body.getReader();
  const kept: Uint8Array[] = [];
  const text = (): string =>
    kept.length === 0
      ? ''
      : Buffer.concat(kept).subarray(0, WEBHOOK_ANSWER_KEPT_BYTES).toString('utf8').replaceAll('\0', '\ufffd');
  try {
    for (let bytes = 0; bytes <= WEBHOOK_ANSWER_MAX_BYTES; ) {
      const { done, value } = await reader.read();
      if (done) return text();
      if (bytes < WEBHOOK_ANSWER_KEPT_BYTES) kept.push(value);
      bytes += value.length;
    }
    await reader.cancel();
  } catch {
    // The status line has come: what happens to the body changes nothing.
  }
  return text();
}
