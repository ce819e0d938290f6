/** Standard Webhooks 1.0: `Webhook-Id`, `Webhook-Timestamp`, `Webhook-Signature`. */
import { createHmac } from 'node:crypto';

/** The bytes of a `whsec_…` secret. Throws on anything else: secrets are our own. */
export function signingKey(secret: string): Uint8Array {
  if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) throw new Error('not a webhook secret');
  return new Uint8Array(Buffer.from(secret.slice('whsec_'.length), 'base64'));
}

/** The three headers of one attempt at `timestampSec`; a signature for each key, the newest first. */
export function signatureHeaders(
  keys: readonly Uint8Array[],
  webhookId: string,
  timestampSec: number,
  body: string,
): Readonly<Record<string, string>> {
  const signed = `${webhookId}.${timestampSec}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(signed, 'utf8').digest('base64')}`);
  return {
    'webhook-id': webhookId,
    'webhook-timestamp': String(timestampSec),
    'webhook-signature': signatures.join(' '),
  };
}
