/** A route: what it takes, who may call it, what it costs, and what it does. */
import type { Problem } from '../problem.ts';
import type { BucketName } from './rate.ts';
import type { Find, RequestContext } from './request-context.ts';
import { inBody, noBody, type Shape } from './shape.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

interface RouteFacts {
  readonly method: Method;
  /** As Hono writes it: `/v1/sessions/:uuid`. */
  readonly path: string;
  readonly auth: 'application' | 'operator';
  /** One line of the API reference. */
  readonly summary: string;
  /** Which part of the API reference. */
  readonly tag: string;
  /** Success status and what it says. */
  readonly success: readonly [status: number, description: string];
  /** Largest body; 1 MiB unless told. */
  readonly maxBytes?: number;
  /** How to stay below `maxBytes`, for the message of the 413. */
  readonly sizeHint?: string;
  /** Status of a body of the wrong shape; 400 unless told. */
  readonly shapeStatus?: 400 | 422;
  /** Changes something: takes Operation-Id and Idempotency-Key. */
  readonly command?: boolean;
  /** The commit that carries the command's effect stores its answer too; else admission does. */
  readonly answerStoredBy?: 'journal';
  /** Starts something new: refused while the platform drains. */
  readonly starts?: boolean;
  /** What a missing resource is called: `Session`, `Room`… */
  readonly resource?: string;
  readonly buckets?: readonly BucketName[];
  readonly query?: readonly QueryFact[];
}

/** A query parameter, for the API reference; the route reads it itself. */
export interface QueryFact {
  readonly name: string;
  readonly description: string;
  readonly schema: object;
}

export interface Route extends RouteFacts {
  readonly takesBody: boolean;
  readonly optionalBody: boolean;
  readonly schema: object | undefined;
  /** Validates the parsed body and binds it to the work. */
  prepare(context: RequestContext): Find | Problem;
}

/** A route without a body. */
export function route(facts: RouteFacts, find: (context: RequestContext) => ReturnType<Find>): Route {
  return { ...facts, takesBody: false, optionalBody: true, schema: undefined, prepare: (context) => () => find(context) };
}

/** A route with a JSON object as its body. `optional`: no body at all counts as `{}`. */
export function bodyRoute<B>(
  facts: RouteFacts & { readonly optional?: boolean },
  shape: Shape<B>,
  find: (context: RequestContext, body: B) => ReturnType<Find>,
): Route {
  const { optional = false, ...rest } = facts;
  return {
    ...rest,
    takesBody: true,
    optionalBody: optional,
    schema: shape.schema,
    prepare(context) {
      const checked = inBody(shape, context.body, facts.shapeStatus ?? 400);
      return 'problem' in checked ? checked.problem : () => find(context, checked.value);
    },
  };
}

/** A command without fields: `{}` or no body (contract §2). */
export const bareRoute = (facts: RouteFacts, find: (context: RequestContext) => ReturnType<Find>): Route =>
  bodyRoute({ ...facts, optional: true }, noBody, (context) => find(context));
