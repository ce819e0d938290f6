/**
 * `Idempotency-Key` (contract §10): the first answer again for the same request, 409 while the first is in flight, 422
 * for another request under the same key. What is admitted is stored by the commit that carries its effect; here are
 * stored the 422 and 403 of shape and policy, and the answers of routes that have no such commit. The 403 of a cap on
 * Rooms is that of a state, as is the 409 of a Room that is full: it passes when one closes, and is not stored.
 */
import { createHash } from 'node:crypto';
import type { Answer } from '../../call/ports/sessions.ts';
import type { IdempotencyStore } from '../../database/idempotency/idempotency.ts';
import type { KeyedRequest } from '../../database/idempotency/key-marks.ts';
import { IDEMPOTENCY_KEY_MAX_CHARS } from '../../limits.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { Outcome, RequestContext } from '../request-context.ts';
import { JSON_HEADERS } from '../response.ts';

/** What a key looks like. */
export const IDEMPOTENCY_KEY = new RegExp(`^[\\x21-\\x7e]([\\x20-\\x7e]{0,${IDEMPOTENCY_KEY_MAX_CHARS - 2}}[\\x21-\\x7e])?$`);

export const IDEMPOTENCY_KEY_WORDS = `1 to ${IDEMPOTENCY_KEY_MAX_CHARS} printable ASCII characters`;

/** 400 for a key that could not be kept. */
export function idempotencyKey(context: RequestContext): Problem | undefined {
  if (context.route.command !== true) return undefined;
  const given = context.request.headers.get('idempotency-key');
  if (given === null || IDEMPOTENCY_KEY.test(given)) return undefined;
  return problems.invalid(`Idempotency-Key: must be ${IDEMPOTENCY_KEY_WORDS}`);
}

/** Marks the key as in flight, or says what came of it before. Undefined at once: the request has none. */
export function mark(store: IdempotencyStore, context: RequestContext): Promise<Outcome | undefined> | undefined {
  if (context.route.command !== true) return undefined;
  const key = context.request.headers.get('idempotency-key');
  return key === null ? undefined : begin(store, context, { appUuid: context.appUuid, key, fingerprint: fingerprint(context) });
}

async function begin(store: IdempotencyStore, context: RequestContext, keyed: KeyedRequest): Promise<Outcome | undefined> {
  const found = await store.begin(keyed);
  if (found.state === 'mismatch') return problems.keyReused();
  if (found.state === 'in_flight') return problems.requestInProgress();
  if (found.state === 'replay') return replay(found.status, found.body);
  context.keyed = keyed;
  return undefined;
}

/**
 * Keeps the answer under the key after the work, or gives the key back. No rate limit counts what is refused, so
 * `mayKeep` is asked before that is stored: a row for each would fill the database.
 */
export async function keep(
  store: IdempotencyStore,
  context: RequestContext,
  outcome: Outcome,
  mayKeep: (appUuid: string) => boolean,
): Promise<void> {
  const { keyed } = context;
  if (keyed === undefined) return;
  context.keyed = undefined;
  try {
    if (outcome instanceof Response) store.left(keyed);
    else if (!isProblem(outcome)) {
      if (context.route.answerStoredBy === 'journal') store.stored(keyed);
      else await store.finish(keyed, outcome.status, bodyText(outcome));
    } else if (outcome.isPassing !== true && (outcome.status === 403 || outcome.status === 422) && mayKeep(keyed.appUuid))
      await store.finish(keyed, outcome.status, JSON.stringify({ code: outcome.problem, message: outcome.message }));
    else if (outcome.isInDoubt === true) store.left(keyed);
    else await store.release(keyed);
  } catch (error) {
    store.left(keyed);
    throw error;
  }
}

const bodyText = (answer: Answer): string => (answer.status === 204 ? '' : JSON.stringify(answer.body));

function replay(status: number, body: string): Response {
  const headers = { 'idempotent-replayed': 'true', ...(status === 204 ? {} : JSON_HEADERS) };
  return new Response(status === 204 ? null : body, { status, headers });
}

/** Method, path and body, the body without regard to spacing and the order of its fields. */
function fingerprint(context: RequestContext): string {
  const hash = createHash('sha256').update(`${context.request.method} ${context.path}\n`, 'utf8');
  if (context.route.takesBody) {
    const text = canonical(context.body, 0);
    hash.update(text ?? context.raw ?? '');
  }
  return hash.digest('base64url');
}

/** Nothing this deep has a valid shape; such a body is compared byte by byte. */
const CANONICAL_MAX_DEPTH = 32;

function canonical(value: unknown, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (depth >= CANONICAL_MAX_DEPTH) return undefined;
  const isList = Array.isArray(value);
  const parts: string[] = [];
  const fields: [string, unknown][] = isList
    ? value.map((each) => ['', each])
    : Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, each] of fields) {
    const text = canonical(each, depth + 1);
    if (text === undefined) return undefined;
    parts.push(isList ? text : `${JSON.stringify(name)}:${text}`);
  }
  return isList ? `[${parts.join(',')}]` : `{${parts.join(',')}}`;
}
