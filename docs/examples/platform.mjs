// What the other programs here share: requests to the platform, which come back when they were too fast, and its webhooks, of
// which only those that it has signed are taken, and each event once. Copy it along with the program that you copy.
// APP, KEY and SECRET are those of the application: `bin/sidetone apps create NAME` prints them.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

const { APP, KEY, SECRET = '', SIDETONE_URL = 'http://127.0.0.1:8080' } = process.env;

/**
 * Sends a request. What is refused is told and is no error, since a call may end at any time. An answer with Retry-After says
 * when to come back: 429 is too fast (as the eleventh Room at once), 503 and 529 are no room now.
 */
export async function send(method, path, body, headers = {}) {
  for (;;) {
    const response = await fetch(SIDETONE_URL + path, {
      method,
      headers: { authorization: `Bearer ${APP}:${KEY}`, 'content-type': 'application/json', ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const answer = await response.json().catch(() => ({}));
    const wait = Number(response.headers.get('retry-after') ?? 0);
    if (wait === 0) {
      if (!response.ok) console.log(path, response.status, answer.message);
      return { ok: response.ok, answer, isRepeated: response.headers.has('idempotent-replayed') };
    }
    await pause(wait * 1000);
  }
}

/** Sends a request and resolves with its answer; with {} where that has no body. */
export const call = async (method, path, body, headers) => (await send(method, path, body, headers)).answer;

const key = Buffer.from(SECRET.replace(/^whsec_/, ''), 'base64');
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
