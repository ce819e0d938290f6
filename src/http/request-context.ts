/** One request on its way through admission, the route it takes, and what an answer is. */
import type { Answer, CommandContext } from '../call/ports/sessions.ts';
import type { BucketName } from '../call/rate/buckets.ts';
import type { KeyedRequest } from '../database/idempotency/key-marks.ts';
import type { Problem } from '../problem.ts';
import { newTraceparent } from '../tracing/tracing.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The facts of a route that are known before any request: who may call it, what it takes, and what it costs. */
export interface RouteFacts {
  readonly method: Method;
  /** The path as Hono writes it: `/v1/sessions/:uuid`. */
  readonly path: string;
  /** `either`: an application or the operator, never by a cookie. */
  readonly auth: 'application' | 'operator' | 'either';
  /** Speaks a protocol of its own, which the OpenAPI document cannot describe. */
  readonly isUndocumented?: boolean;
  /** One line of the API reference. */
  readonly summary: string;
  /** The part of the API reference that the route stands in. */
  readonly tag: string;
  /** Success status and what it says. */
  readonly success: readonly [status: number, description: string];
  /** Largest body; 1 MiB unless told. */
  readonly maxBytes?: number;
  /** A hint on how to stay below `maxBytes`, for the message of the 413. */
  readonly sizeHint?: string;
  /** Status of a body of the wrong shape; 400 unless told. */
  readonly shapeStatus?: 400 | 422;
  /** Changes something: takes Operation-Id and Idempotency-Key. */
  readonly command?: boolean;
  /** The commit that carries the command's effect stores its answer too; else admission does. */
  readonly answerStoredBy?: 'journal';
  /** Opens the audio sources of its body before it is admitted, which takes as long as their servers do. */
  readonly opensSources?: boolean;
  /** Starts something new: refused while the platform drains. */
  readonly starts?: boolean;
  /** Lists what may be very many items: an application has one such list at a time. */
  readonly isList?: boolean;
  /** The name of a missing resource in the 404: `Session`, `Room`… */
  readonly resource?: string;
  readonly buckets?: readonly BucketName[];
  /** The parameters of its path that are 400 unless they are of a form, by their names, for the API reference. */
  readonly forms?: Readonly<Record<string, Form>>;
  readonly query?: readonly QueryFact[];
}

/** The form of a text: a pattern, and what it says in words. */
interface Form {
  readonly pattern: string;
  readonly description: string;
}

/** A query parameter, for the API reference; the route reads it itself. */
interface QueryFact {
  readonly name: string;
  readonly description: string;
  readonly schema: object;
}

/** A route: its facts, and what it does with a request. */
export interface Route extends RouteFacts {
  readonly takesBody: boolean;
  readonly optionalBody: boolean;
  /** The shape of its body; undefined where it takes none. */
  readonly shape: { readonly schema: object } | undefined;
  /** Validates the parsed body and binds it to the work. */
  prepare(context: RequestContext): Find | Problem;
}

export interface RequestContext {
  readonly request: Request;
  readonly route: Route;
  /** Parameters of the path, by the names the route gives them. */
  readonly params: Readonly<Record<string, string>>;
  readonly path: string;
  /** The query of the URL with its question mark; empty where there is none. */
  readonly search: string;
  /** The server's own trace (W3C Trace Context), on every response and in every event the request causes. */
  readonly traceparent: string;
  /** The bytes of the body, after `size`; undefined where the route takes none. */
  raw: Uint8Array | undefined;
  /** The parsed body, after `json`. */
  body: unknown;
  /** The application that asks, after `authentication`; `""` for the operator. */
  appUuid: string;
  /** The operator asks, with a token that permits the request; after `authentication`. */
  isOperator: boolean;
  /** The operator's token may only read; after `authentication`. */
  mayOnlyRead: boolean;
  /**
   * Whether the credentials would let it in again, for an answer that goes on for long. Undefined where they cannot end
   * while the process runs: tokens are settings. Rejects when the database does not answer.
   */
  isStillAdmitted?: () => Promise<boolean>;
  /** The request's, or made here; after `operationId`. */
  operationUuid: string;
  /** The mark of its Idempotency-Key, while it is ours to answer. */
  keyed: KeyedRequest | undefined;
  /** The route's look-up of its resource, bound to the validated request; after `shape`. */
  find: Find;
  /** The work that is left to do once the resource was found; after `ownership`. */
  work: Work | undefined;
  /** The Session that the answer names: the one that a dial made. */
  sessionUuid: string | undefined;
  /** Another node served it, or may have. */
  isForwarded?: boolean;
  /** The time after which the node that forwarded it counts it as failed, so that nothing may be committed. */
  until?: number;
  /** Gives rate tokens back; run when the answer is a problem. */
  refund: (() => void) | undefined;
}

/** A request as it comes to admission. */
export function contextOf(request: Request, route: Route, params: Record<string, string>): RequestContext {
  const { url } = request;
  // The authority has no slash, so the path begins with the first one after `//`.
  const path = url.indexOf('/', url.indexOf('//') + 2);
  const mark = url.indexOf('?', path);
  return {
    request,
    route,
    params,
    path: mark < 0 ? url.slice(path) : url.slice(path, mark),
    search: mark < 0 ? '' : url.slice(mark),
    traceparent: newTraceparent(),
    raw: undefined,
    body: undefined,
    appUuid: '',
    isOperator: false,
    mayOnlyRead: false,
    operationUuid: '',
    keyed: undefined,
    find: findNothing,
    work: undefined,
    sessionUuid: undefined,
    refund: undefined,
  };
}

const findNothing = () => undefined;

/** Looks for the resource; undefined is 404. A Problem ends the request. What it returns runs after the rate limit. */
export type Find = () => Work | Problem | undefined | Promise<Work | Problem | undefined>;
export type Work = () => Promise<Outcome> | Outcome;

/** An answer, a problem, or (where a body is not JSON) a whole response. */
export type Outcome = Answer | Problem | Response;

/** 204. */
export const noContent: Answer = { status: 204, body: {} };
export const ok = (body: Readonly<Record<string, unknown>>): Answer => ({ status: 200, body });
export const created = (body: Readonly<Record<string, unknown>>): Answer => ({ status: 201, body });

/** The query of a request, read. It is made when it is asked for, as most requests have none. */
export const queryOf = ({ search }: RequestContext): URLSearchParams => new URLSearchParams(search);

/** Tells who sent the command and how to answer: application, operation id, idempotency key, trace. */
export const commandContext = (context: RequestContext): CommandContext => ({
  appUuid: context.appUuid,
  operationUuid: context.operationUuid,
  idempotencyKey: context.keyed?.key,
  traceparent: context.traceparent,
  ...(context.until === undefined ? {} : { until: context.until }),
});
