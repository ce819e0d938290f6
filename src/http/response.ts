/** Answers and problems as responses: `{code, message}`, top-level fields only (interface, Errors). */
import { inTurns } from '../bounds/in-turns.ts';
import type { Answer } from '../call/ports/sessions.ts';
import { LIST_TURN_ITEMS } from '../limits.ts';
import type { Problem } from '../problem.ts';

/** Answers to credentials are for nobody's cache, and nobody is to guess another type of them. */
export const JSON_HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const;

const encoder = new TextEncoder();

/** The headers that each answer copies. Headers made from an object cost 0.3 µs more. */
const jsonHeaders = new Headers(JSON_HEADERS);

/** The length is told here, so that HEAD, which loses the body on its way, tells it too (RFC 9110 §8.6). */
function json(status: number, body: object, traceparent: string, more: Readonly<Record<string, string>> = {}): Response {
  const text = JSON.stringify(body);
  const response = new Response(text, { status, headers: jsonHeaders });
  const { headers } = response;
  headers.set('content-length', String(Buffer.byteLength(text)));
  headers.set('traceparent', traceparent);
  for (const name in more) headers.set(name, more[name] ?? '');
  return response;
}

/** The response of an answer: JSON, or no body for 204. */
export function answerResponse(answer: Answer, traceparent: string): Response {
  return answer.status === 204
    ? new Response(null, { status: 204, headers: { traceparent } })
    : json(answer.status, answer.body, traceparent);
}

/** A body that is JSON already, whole or as it leaves. */
export function bodyResponse(
  status: number,
  body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>,
  traceparent: string,
): Response {
  const response = new Response(body, { status, headers: jsonHeaders });
  if (body instanceof Uint8Array) response.headers.set('content-length', String(body.length));
  response.headers.set('traceparent', traceparent);
  return response;
}

/** The JSON of an answer in parts, none of which has more items of a list than are written in one turn. */
export async function partsOf(answer: Answer['body']): Promise<readonly Uint8Array<ArrayBuffer>[]> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let text = '{';
  for (const [name, value] of Object.entries(answer)) {
    if (text.length > 1 || parts.length > 0) text += ',';
    text += `${JSON.stringify(name)}:`;
    if (!Array.isArray(value)) {
      text += JSON.stringify(value);
      continue;
    }
    let written = 0;
    const write = (item: unknown) => {
      text += `${written === 0 ? '[' : ','}${JSON.stringify(item)}`;
      written += 1;
      if (written % LIST_TURN_ITEMS !== 0) return;
      parts.push(encoder.encode(text));
      text = '';
    };
    await inTurns(value, write);
    text += written === 0 ? '[]' : ']';
  }
  return [...parts, encoder.encode(`${text}}`)];
}

/** The response of an answer with a list that may be long, which is written as `partsOf` does. */
export async function longResponse(answer: Answer, traceparent: string): Promise<Response> {
  return bodyResponse(answer.status, Buffer.concat(await partsOf(answer.body)), traceparent);
}

/** The response of a problem: `code` and `message` as JSON, with the header fields that its status asks for. */
export function problemResponse(problem: Problem, traceparent: string): Response {
  const headers: Record<string, string> = {};
  if (problem.retryAfterSec !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(problem.retryAfterSec)));
  if (problem.allow !== undefined) headers.allow = problem.allow;
  // The rest of the body is not read, so the connection cannot take another request.
  if (problem.status === 413 && problem.problem === 'payload_too_large') headers.connection = 'close';
  // RFC 9110 §11.6.1.
  if (problem.status === 401) headers['www-authenticate'] = 'Bearer';
  const detail = problem.detail === undefined ? {} : { detail: problem.detail };
  return json(problem.status, { code: problem.problem, message: problem.message, ...detail }, traceparent, headers);
}

/** 500: what went wrong is in the log under the id, and nowhere else. */
export const unexpectedResponse = (supportId: string, traceparent: string): Response =>
  json(500, { code: 'internal_error', message: 'Internal error', support_id: supportId }, traceparent);

/**
 * Keeps the server from telling a length of 0 for a response to HEAD that has none: GET has a body there (RFC 9110
 * §8.6).
 */
export function withoutLength(request: Request, response: Response): void {
  // A body that is looked at becomes a stream, so that of GET is not.
  if (request.method !== 'HEAD' || response.body !== null || response.status === 204 || response.status === 304) return;
  if (!response.headers.has('content-length')) response.headers.set('transfer-encoding', 'chunked');
}
