/** The answers whose words the interface writes out (Errors, Limits, Authentication), each as it leaves. */
import { expect, test } from 'bun:test';
import { problemResponse } from '../../src/http/response.ts';
import { type Problem, problems } from '../../src/problem.ts';

const rows: readonly (readonly [message: string, status: number, code: string, retryAfter: string | null, problem: Problem])[] = [
  ['Missing API key', 401, 'unauthorized', null, problems.missingApiKey()],
  ['Invalid API key', 401, 'unauthorized', null, problems.invalidApiKey()],
  ['No route matches this path', 404, 'not_found', null, problems.noRoute()],
  ['Session not found', 404, 'not_found', null, problems.notFound('Session')],
  ['Room not found', 404, 'not_found', null, problems.notFound('Room')],
  ['Maximum number of rooms reached for this application', 403, 'forbidden', null, problems.tooManyRooms()],
  ['Room is full', 409, 'room_full', null, problems.roomFull()],
  ['Too many results to return; narrow your query using filters.', 413, 'result_set_too_large', null, problems.tooManySessions()],
  ['Too many results to return.', 413, 'result_set_too_large', null, problems.tooManyResults()],
  ['Command rate limit exceeded. See Retry-After header.', 429, 'rate_limited', '1', problems.rateLimited(0.2)],
  ['No outbound capacity. See Retry-After header.', 529, 'unavailable', '2', problems.noCapacity(2)],
  ['Recording is not configured', 503, 'unavailable', null, problems.notConfigured('Recording')],
];

test.each(rows)('"%s" is %d %s', async (message, status, code, retryAfter, problem) => {
  const response = problemResponse(problem, '00-00000000000000000000000000000001-0000000000000001-01');
  expect(response.status).toBe(status);
  expect(await response.json()).toEqual({ code, message });
  expect(response.headers.get('retry-after')).toBe(retryAfter);
});
