/** Webhooks as your application receives them: verified, and typed by their name (Standard Webhooks 1.0). */
import type { WebhookEvent } from './api.ts';

/** The request is not one of the platform's, or it is too old. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

type HeaderSource = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

const TOLERANCE_SEC = 5 * 60;

/**
 * Verifies a webhook and returns its event. `raw` is the body exactly as it came, `secrets` is the secret of the
 * application (`whsec_…`), or several while one is rotated. Rejects with WebhookVerificationError, and with TypeError
 * for a secret that is none and a body that was parsed already.
 */
export async function verifyWebhook(
  raw: string | Uint8Array | ArrayBuffer,
  headers: HeaderSource,
  secrets: string | readonly string[],
  now: () => number = Date.now,
): Promise<WebhookEvent> {
  const id = read(headers, 'webhook-id');
  const timestamp = read(headers, 'webhook-timestamp');
  const signatures = read(headers, 'webhook-signature');
  if (!/^[0-9]{1,12}$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp: is not a number of seconds');
  if (Math.abs(now() / 1000 - Number(timestamp)) > TOLERANCE_SEC)
    throw new WebhookVerificationError('webhook-timestamp: is too far from the time of now');
  const bytes = raw instanceof ArrayBuffer ? new Uint8Array(raw) : raw;
  const body = typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes;
  if (!(body instanceof Uint8Array)) throw new TypeError('raw must be the body as it came: text or bytes, and not parsed');
  const known = Array.isArray(secrets) ? secrets : [secrets];
  if (known.length === 0) throw new TypeError('no secret is given');
  const given = signatures.split(' ').flatMap((each) => (each.startsWith('v1,') ? [each.slice(3)] : []));
  for (const secret of known) {
    const expected = await signature(secret, `${id}.${timestamp}.`, body);
    if (given.some((each) => isEqual(each, expected))) return JSON.parse(new TextDecoder().decode(body));
  }
  throw new WebhookVerificationError('webhook-signature: is not one of this application');
}

/** The signature of the bytes that came: text that was made of them may be the same for other bytes. */
async function signature(secret: unknown, head: string, body: Uint8Array): Promise<string> {
  const key = await crypto.subtle.importKey('raw', keyOf(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const start = new TextEncoder().encode(head);
  const whole = new Uint8Array(start.length + body.length);
  whole.set(start);
  whole.set(body, start.length);
  const signed = new Uint8Array(await crypto.subtle.sign('HMAC', key, whole));
  return btoa(String.fromCharCode(...signed));
}

/** The key in a secret. Throws TypeError where there is none: an empty one would let anybody sign. */
function keyOf(secret: unknown): Uint8Array<ArrayBuffer> {
  // An environment variable that is not set is no text, whatever the types say.
  const text = String(secret ?? '')
    .replace(/^whsec_/, '')
    .replace(/={1,2}$/, '');
  if (!/^[A-Za-z0-9+/]{2,}$/.test(text) || text.length % 4 === 1)
    throw new TypeError('a secret is whsec_ and base64, as the platform gave it');
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** Compares in a time that does not depend on where two texts differ. */
function isEqual(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let at = 0; at < b.length; at++) difference |= (a.charCodeAt(at) || 0) ^ b.charCodeAt(at);
  return difference === 0;
}

/** The value of a header field, whatever the case of its name (RFC 9110 §5.1). `name` is in lower case. */
function read(headers: HeaderSource, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : (headers[name] ?? Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1]);
  const text = Array.isArray(value) ? value[0] : value;
  if (typeof text !== 'string' || text === '') throw new WebhookVerificationError(`${name}: is missing`);
  return text;
}

/** What a delivery says beside its event. */
export interface WebhookDelivery {
  /** `Webhook-Id`, the same over all attempts: what has been handled under it is not handled again. */
  readonly webhookId: string;
}

type OnEvent = (event: WebhookEvent, delivery: WebhookDelivery) => void | Promise<void>;

const deliveryOf = (headers: HeaderSource): WebhookDelivery => ({ webhookId: read(headers, 'webhook-id') });

/**
 * A receiver for everything that speaks `Request` and `Response`: Bun, Deno, workers at the edge, Next.js. 204 is sent
 * when `onEvent` is through; when it throws, 500 is sent and the platform tries again.
 */
export function webhookHandler(secrets: string | readonly string[], onEvent: OnEvent): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'POST' } });
    let event: WebhookEvent;
    try {
      event = await verifyWebhook(await request.text(), request.headers, secrets);
    } catch (error) {
      if (error instanceof WebhookVerificationError) return new Response(error.message, { status: 401 });
      throw error;
    }
    await onEvent(event, deliveryOf(request.headers));
    return new Response(null, { status: 204 });
  };
}

/** A handler of Hono: `app.post('/hook', honoWebhook(secret, onEvent))`. */
export const honoWebhook = (secrets: string | readonly string[], onEvent: OnEvent) => {
  const handle = webhookHandler(secrets, onEvent);
  return (context: { readonly req: { readonly raw: Request } }): Promise<Response> => handle(context.req.raw);
};

interface ExpressRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body?: unknown;
}
interface ExpressResponse {
  status(code: number): ExpressResponse;
  send(body: string): unknown;
  end(): unknown;
}

/**
 * A handler of Express, after `express.raw({ type: 'application/json' })`: the signature covers the bytes that came.
 */
export const expressWebhook =
  (secrets: string | readonly string[], onEvent: OnEvent) =>
  async (request: ExpressRequest, response: ExpressResponse, next: (error: unknown) => void): Promise<void> => {
    try {
      if (!(request.body instanceof Uint8Array))
        throw new Error("use express.raw({ type: 'application/json' }) before this handler");
      const event = await verifyWebhook(request.body, request.headers, secrets);
      await onEvent(event, deliveryOf(request.headers));
      response.status(204).end();
    } catch (error) {
      if (error instanceof WebhookVerificationError) response.status(401).send(error.message);
      else next(error);
    }
  };
