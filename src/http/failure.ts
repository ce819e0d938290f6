/** The answer to a request whose work was thrown out of: 503 while the database is away, else 500 and a log line. */
import { StoreUnavailable } from '../database/journal/journal.ts';
import { stackOf } from '../error-facts.ts';
import { newUuid } from '../id.ts';
import { UNAVAILABLE_RETRY_SEC } from '../limits.ts';
import type { Log } from '../log.ts';
import { type Problem, problems } from '../problem.ts';
import { problemResponse, unexpectedResponse } from './response.ts';

/** 503 with `Retry-After`: the database does not answer. */
export const storeAway = (): Problem =>
  problems.unavailable('Service temporarily unavailable. See Retry-After header.', UNAVAILABLE_RETRY_SEC);

/** Answers for what `route` has thrown. A bug is logged under the `support_id` that the answer tells. */
export function failureResponse(error: unknown, route: string, log: Log, traceparent: string): Response {
  if (error instanceof StoreUnavailable) return problemResponse(storeAway(), traceparent);
  const supportId = newUuid();
  log.error({ support_id: supportId, route, error: stackOf(error) }, 'a request ended in a bug');
  return unexpectedResponse(supportId, traceparent);
}
