/**
 * The order of admission (contract §10), in one list. Route and method come before it (`app.ts`); the work comes after
 * it. Whatever ends in a problem gives its rate tokens back, and its Idempotency-Key unless the answer is one that is
 * kept.
 */

import type { Peers } from '../../call/ports/peers.ts';
import { KEPT_REFUSALS } from '../../call/rate/buckets.ts';
import type { TokenBuckets } from '../../call/rate/token-buckets.ts';
import type { Clock } from '../../clock.ts';
import type { IdempotencyStore } from '../../database/idempotency/idempotency.ts';
import type { Log } from '../../log.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { failureResponse } from '../failure.ts';
import type { Outcome, RequestContext, Work } from '../request-context.ts';
import { answerResponse, problemResponse } from '../response.ts';
import { typesLoaded } from '../shape/type.ts';
import { type AuthenticationOptions, authentication } from './authentication.ts';
import { elsewhere } from './elsewhere.ts';
import { idempotencyKey, keep, mark } from './idempotency.ts';
import { json } from './json.ts';
import { ListTurns } from './list-turns.ts';
import { mediaType } from './media-type.ts';
import { operationId } from './operation-id.ts';
import { rateLimit } from './rate-limit.ts';
import { size } from './size.ts';

export interface AdmissionOptions extends AuthenticationOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly idempotency: IdempotencyStore;
  readonly tokens: TokenBuckets;
  /** The other nodes of a cluster; undefined where there are none. */
  readonly peers?: Peers | undefined;
  /** SIGTERM was heard: nothing new is started. */
  readonly draining: () => boolean;
  /** Resolves one turn of the event loop later. */
  readonly turn: () => Promise<void>;
}

/** A step lets the context pass (undefined) or ends it with an answer. */
type Step = (context: RequestContext) => Outcome | undefined | Promise<Outcome | undefined>;

/** Takes a routed request through admission and work to its response. Never rejects. */
export function admission(options: AdmissionOptions): (context: RequestContext) => Promise<Response> {
  const { idempotency, log, tokens, clock } = options;
  const mayKeep = (appUuid: string) =>
    typeof tokens.take([{ name: `kept_refusals ${appUuid}`, bucket: KEPT_REFUSALS }], clock.now()) !== 'number';
  const order: readonly Step[] = [
    size, // 413
    authentication(options), // 400, 401
    mediaType, // 415
    json, // 400
    operationId, // 400
    idempotencyKey, // 400: what could never be a key
    shape(idempotency), // 400, 422
    (context) => mark(idempotency, context), // replay, 409, 422
    ...(options.peers === undefined ? [] : [connected(options.turn), elsewhere(options.peers)]), // the node that has it
    ownership, // 404
    rateLimit(tokens, () => clock.now(), options.peers), // 429
    draining(options.draining), // 503
    connected(options.turn), // nothing where nobody can be answered
    state(new ListTurns()), // 409, then the work
  ];

  return async (context) => {
    try {
      const outcome = await inOrder(order, context);
      settle(context, outcome);
      if (context.keyed !== undefined) await keep(idempotency, context, outcome, mayKeep);
      if (outcome instanceof Response) return traced(outcome, context.traceparent);
      return isProblem(outcome) ? problemResponse(outcome, context.traceparent) : answerResponse(outcome, context.traceparent);
    } catch (error) {
      giveBack(context);
      if (context.keyed !== undefined) await idempotency.release(context.keyed).catch(() => {});
      return failureResponse(error, context.route.path, log, context.traceparent);
    }
  };
}

/**
 * Serves an operation that another node admitted, from its shape on. Rejects where the store is away or a bug came up.
 */
export function performing(
  options: Omit<AdmissionOptions, 'operatorToken' | 'apps' | 'credentials' | 'turn'>,
): (context: RequestContext) => Promise<Outcome> {
  const order: readonly Step[] = [
    shape(options.idempotency),
    ownership,
    rateLimit(options.tokens, () => options.clock.now(), options.peers),
    draining(options.draining),
    state(new ListTurns()),
  ];
  return async (context) => {
    try {
      const outcome = await inOrder(order, context);
      settle(context, outcome);
      return outcome;
    } catch (error) {
      giveBack(context);
      throw error;
    }
  };
}

/** Gives the tokens of what was refused back, and notes the Session that an answer names. */
function settle(context: RequestContext, outcome: Outcome): void {
  if (isProblem(outcome)) giveBack(context);
  else if (!(outcome instanceof Response)) context.sessionUuid = sessionOf(outcome.body);
}

/** Gives the tokens back that a request has taken, once. */
function giveBack(context: RequestContext): void {
  context.refund?.();
  context.refund = undefined;
}

/** Takes the context through the steps from the one at `from` on. Only a step that waits makes it wait. */
function inOrder(order: readonly Step[], context: RequestContext, from = 0): Outcome | Promise<Outcome> {
  for (let at = from; at < order.length; at++) {
    const verdict = order[at]?.(context);
    if (verdict instanceof Promise) return goOn(verdict, order, context, at + 1);
    if (verdict !== undefined) return verdict;
  }
  throw new Error('a route without work');
}

/** A function of its own: one within the loop would have a scope made for each turn of it. */
const goOn = (verdict: Promise<Outcome | undefined>, order: readonly Step[], context: RequestContext, from: number) =>
  verdict.then((outcome) => outcome ?? inOrder(order, context, from));

/**
 * Binds the work to the validated body. A 422 of the shape is an answer that is kept under the key, and replayed from
 * it.
 */
function shape(idempotency: IdempotencyStore): Step {
  const bind: Step = (context) => {
    const prepared = context.route.prepare(context);
    if (!isProblem(prepared)) {
      context.find = prepared;
      return undefined;
    }
    if (prepared.status !== 422) return prepared;
    return mark(idempotency, context)?.then((earlier) => (earlier instanceof Response ? earlier : prepared)) ?? prepared;
  };
  return (context) => {
    const loading = context.route.shape === undefined ? undefined : typesLoaded();
    return loading === undefined ? bind(context) : loading.then(() => bind(context));
  };
}

/** A resource of another application, or of none, is 404. */
function ownership(context: RequestContext): Outcome | undefined | Promise<Outcome | undefined> {
  const found = isFindable(context) ? context.find() : undefined;
  return found instanceof Promise ? found.then((work) => owned(context, work)) : owned(context, found);
}

/** PostgreSQL knows no text with U+0000, and refuses to look for it. A PUT judges the name that it is to make. */
function isFindable({ route, params }: RequestContext): boolean {
  if (route.method === 'PUT') return true;
  for (const name in params) if (params[name]?.includes('\0') === true) return false;
  return true;
}

function owned(context: RequestContext, found: Work | Problem | undefined): Outcome | undefined {
  if (found === undefined) return problems.notFound(context.route.resource ?? 'Resource');
  if (isProblem(found)) return found;
  context.work = found;
  return undefined;
}

const draining =
  (isDraining: () => boolean): Step =>
  (context) =>
    context.route.starts === true && isDraining() ? problems.draining() : undefined;

/**
 * Refuses a command whose caller can no longer be answered. The runtime closes a connection on which another request
 * was pipelined behind a pending one, and tells so a turn of the event loop later; a command is not to take effect then
 * (RFC 9112 §9.3.2 leaves it to the client to try again).
 */
const connected =
  (turn: () => Promise<void>): Step =>
  ({ route, request, keyed }) => {
    const refusal = () =>
      request.signal.aborted ? problems.invalid('connection: was closed before the command was admitted') : undefined;
    if (route.method === 'GET') return undefined;
    // The mark of an Idempotency-Key has taken a turn already. Commands whose marks came together then commit together.
    return keyed === undefined ? turn().then(refusal) : refusal();
  };

/** 409 is decided where the state is: by the Session's machine. */
const state =
  (lists: ListTurns): Step =>
  (context) =>
    context.route.isList === true ? lists.serve(context) : context.work?.();

/** A response that a route made itself is for nobody's cache either, unless the route says otherwise. */
function traced(response: Response, traceparent: string): Response {
  const { headers } = response;
  headers.set('traceparent', traceparent);
  headers.set('x-content-type-options', 'nosniff');
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
  return response;
}

const sessionOf = ({ session_uuid: sessionUuid }: Readonly<Record<string, unknown>>): string | undefined =>
  typeof sessionUuid === 'string' ? sessionUuid : undefined;
