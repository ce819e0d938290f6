/**
 * INFO within a call (RFC 6086). Keys are what we take from it; an INFO without a body is a sign of life. The rest is
 * refused, so that a far end that can do what it wants in another way does: 415 tells which bodies we understand (RFC
 * 3261 §8.2.3), 469 that we take part in no Info Package.
 */
import type { CallEvent } from './call/call-event.ts';
import { contentType } from './message/capability.ts';
import type { SipRequest } from './message/message.ts';
import { isOptional } from './message/multipart.ts';
import type { ServerTransaction } from './transaction/server.ts';

const KEYS = ['application/dtmf-relay', 'application/dtmf'];
/** The type that asks for a fresh picture (RFC 5168). A gateway that is refused one would ask again. */
const PICTURES = 'application/media_control+xml';

/** Answers an INFO, and tells of it where it was accepted. */
export function answerInfo(transaction: ServerTransaction, tell: (event: CallEvent) => void): void {
  const { request } = transaction;
  const status = statusOf(request);
  const response = transaction.make(status);
  if (status === 415) response.headers.add('accept', KEYS.join(', '));
  if (status === 469) response.headers.add('recv-info', '');
  transaction.send(response);
  if (status === 200) tell({ type: 'info', contentType: contentType(request.headers), body: request.body });
}

function statusOf({ headers, body }: SipRequest): 200 | 415 | 469 {
  const type = contentType(headers);
  // Some gateways name a package of their own for keys in the usual form.
  if (body.length > 0 && KEYS.includes(type)) return 200;
  if (headers.has('info-package')) return 469;
  return body.length === 0 || type === PICTURES || isOptional(headers) ? 200 : 415;
}
