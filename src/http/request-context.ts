/** One request on its way through admission, and what an answer is. */
import type { Answer, CommandContext } from '../call/ports/sessions.ts';
import type { KeyedRequest } from '../database/idempotency.ts';
import type { Problem } from '../problem.ts';
import type { Route } from './route.ts';

export interface RequestContext {
  readonly request: Request;
  readonly route: Route;
  /** Parameters of the path, by the names the route gives them. */
  readonly params: Readonly<Record<string, string>>;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The server's own trace (W3C Trace Context), on every response and in every event the request causes. */
  readonly traceparent: string;
  /** The bytes of the body, after `size`; undefined where the route takes none. */
  raw: Uint8Array | undefined;
  /** The parsed body, after `json`. */
  body: unknown;
  /** Who asks, after `authentication`; `""` for the operator. */
  appUuid: string;
  /** The request's, or made here; after `operationId`. */
  operationUuid: string;
  /** The mark of its Idempotency-Key, while it is ours to answer. */
  keyed: KeyedRequest | undefined;
  /** What the route does with the validated request; after `shape`. */
  find: Find;
  /** What is left to do, once its resource was found; after `ownership`. */
  work: Work | undefined;
  /** Gives rate tokens back; run when the answer is a problem. */
  refund: (() => void) | undefined;
}

/** Looks for the resource; undefined is 404. A Problem ends the request. What it returns runs after the rate limit. */
export type Find = () => Work | Problem | undefined | Promise<Work | Problem | undefined>;
export type Work = () => Promise<Outcome> | Outcome;

/** An answer, a problem, or (where a body is not JSON) a whole response. */
export type Outcome = Answer | Problem | Response;

/** 204. */
export const noContent: Answer = { status: 204, body: {} };
export const ok = (body: Readonly<Record<string, unknown>>): Answer => ({ status: 200, body });
export const created = (body: Readonly<Record<string, unknown>>): Answer => ({ status: 201, body });

/** What the actor is told besides the command itself. */
export const commandContext = (context: RequestContext): CommandContext => ({
  appUuid: context.appUuid,
  operationUuid: context.operationUuid,
  idempotencyKey: context.keyed?.key,
  traceparent: context.traceparent,
});
