/** 400: `Operation-Id` is a lowercase UUID v4; made here when omitted. */
import { isUuid, newUuid } from '../../id.ts';
import { type Problem, problems } from '../../problem.ts';
import type { Exchange } from '../request-context.ts';

export function operationId(exchange: Exchange): Problem | undefined {
  if (exchange.route.command !== true) return undefined;
  const given = exchange.request.headers.get('operation-id');
  if (given !== null && !isUuid(given)) return problems.invalid('Operation-Id: must be a lowercase UUID v4');
  exchange.operationUuid = given ?? newUuid();
  return undefined;
}
