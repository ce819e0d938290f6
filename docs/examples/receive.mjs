// Takes webhooks: what the platform has signed, and each event once. The other programs here import it, so copy it with them.
// A package for your language verifies as well: docs/webhooks.md, "Verify". SECRET is that of the application, whsec_…
import { createHmac, timingSafeEqual } from 'node:crypto';
import { buffer } from 'node:stream/consumers';

const key = Buffer.from((process.env.SECRET ?? '').replace(/^whsec_/, ''), 'base64');
/** The identifiers of the events that were handled lately. A real application has a table for them. */
const handled = new Set();

/** Whether the platform has signed these bytes, at most five minutes ago. While the secret is rotated there are two signatures. */
function isSigned(raw, { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures = '' }) {
  const hmac = createHmac('sha256', key).update(`${id}.${at}.`).update(raw).digest('base64');
  const ours = Buffer.from(`v1,${hmac}`);
  const isOurs = (signature) => signature.length === ours.length && timingSafeEqual(Buffer.from(signature, 'latin1'), ours);
  return Math.abs(Date.now() / 1000 - Number(at)) <= 300 && signatures.split(' ').some(isOurs);
}

/**
 * Reads a delivery and resolves with its body, which is still to be answered. It resolves with undefined where there is
 * nothing to do, and has answered then: to a browser or `bin/sidetone doctor` (405), to a stranger (401), and where the
 * event was handled before (204).
 */
export async function verified(request, response) {
  const answer = (status) => void response.writeHead(status).end();
  if (request.method !== 'POST') return answer(405);
  const raw = await buffer(request);
  if (isSigned(raw, request.headers)) return handled.has(request.headers['webhook-id']) ? answer(204) : raw;
  console.log('refused: not signed with SECRET');
  return answer(401);
}

/** Remembers that the event of a delivery was handled, and forgets the oldest of ten thousand. */
export function remember(request) {
  if (handled.size === 10_000) handled.delete(handled.values().next().value);
  handled.add(request.headers['webhook-id']);
}

/** Reads a delivery and answers it at once, since the next event of a call is sent when this one is settled. Resolves with its event. */
export async function received(request, response) {
  const raw = await verified(request, response);
  if (raw === undefined) return undefined;
  response.writeHead(204).end();
  remember(request);
  return JSON.parse(raw);
}
