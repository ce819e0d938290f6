/** The ways to write a route: without a body, with one, or with an empty one. */
import type { Find, RequestContext, Route, RouteFacts } from './request-context.ts';
import { inBody, noBody, type Shape } from './shape/shape.ts';

/** A route without a body. */
export function route(facts: RouteFacts, find: (context: RequestContext) => ReturnType<Find>): Route {
  return { ...facts, takesBody: false, optionalBody: true, shape: undefined, prepare: (context) => () => find(context) };
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
    shape,
    prepare(context) {
      const checked = inBody(shape, context.body, facts.shapeStatus ?? 400);
      return 'problem' in checked ? checked.problem : () => find(context, checked.value);
    },
  };
}

/** A command without fields: `{}` or no body (contract §2). */
export const bareRoute = (facts: RouteFacts, find: (context: RequestContext) => ReturnType<Find>): Route =>
  bodyRoute({ ...facts, optional: true }, noBody, (context) => find(context));
