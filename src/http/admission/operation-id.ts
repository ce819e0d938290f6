/** 400: `Operation-Id` is a lowercase UUID v4; made here when omitted. */
import { isUuid, newUuid } from '../../id.ts';
import { type Problem, problems } from '../../problem.ts';
import type { RequestContext } from '../request-context.ts';

export function operationId(context: RequestContext): Problem | undefined {
  if (context.route.command !== true) return undefined;
  const given = context.request.headers.get('operation-id');
  if (given !== null && !isUuid(given)) return problems.invalid('Operation-Id: must be a lowercase UUID v4');
  context.operationUuid = given ?? newUuid();
  return undefined;
}
