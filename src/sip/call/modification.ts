/** Requests that would change a session and cannot: their refusals (RFC 3261 §14.2, RFC 3311 §5.2). */
import type { ServerTransaction } from '../transaction/server.ts';

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
