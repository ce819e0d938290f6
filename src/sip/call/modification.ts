/**
 * Requests that change a session: what accepts them, and the refusals of those that cannot (RFC 3261 §14.2, RFC 3311
 * §5.2).
 */
import { type AgentContext, contactFor } from '../agent-context.ts';
import { ALLOWED, supportedBy } from '../message/capability.ts';
import type { ServerTransaction } from '../transaction/server.ts';
import { answerTimer } from './session-timer.ts';

/** The 200 to a re-INVITE or UPDATE, and the session timer that it sets up. */
export function acceptance(context: AgentContext, transaction: ServerTransaction, body: Uint8Array) {
  const response = transaction.make(200, body);
  response.headers
    .add('contact', contactFor(context, transaction.source))
    .add('allow', ALLOWED)
    .add('supported', supportedBy(transaction.source));
  const timer = answerTimer(transaction.request.headers, transaction.source);
  if (timer !== undefined) {
    response.headers.add('session-expires', timer.value);
    if (timer.require) response.headers.add('require', 'timer');
  }
  if (body.length > 0) response.headers.add('content-type', 'application/sdp');
  return { response, timer: timer?.timer };
}

/** Answers 415: the body is of a type that we do not read. */
export function refuseType(transaction: ServerTransaction): void {
  const response = transaction.make(415);
  response.headers.add('accept', 'application/sdp');
  transaction.send(response);
}

/** Answers 500 with a Retry-After of 0 to 10 s: another change is under way. `fraction` is random in [0, 1). */
export function refuseForNow(transaction: ServerTransaction, fraction: number): void {
  const response = transaction.make(500);
  response.headers.add('retry-after', String(Math.floor(fraction * 10)));
  transaction.send(response);
}
