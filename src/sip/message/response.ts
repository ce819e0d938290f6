/** Responses to a request (RFC 3261 §8.2.6). */
import { Headers, NO_BODY, type SipRequest, type SipResponse } from './message.ts';
import { tagOf } from './uri.ts';

const REASONS: Readonly<Record<number, string>> = {
  100: 'Trying',
  180: 'Ringing',
  181: 'Call Is Being Forwarded',
  183: 'Session Progress',
  200: 'OK',
  202: 'Accepted',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  410: 'Gone',
  415: 'Unsupported Media Type',
  416: 'Unsupported URI Scheme',
  420: 'Bad Extension',
  422: 'Session Interval Too Small',
  423: 'Interval Too Brief',
  469: 'Bad Info Package',
  480: 'Temporarily Unavailable',
  481: 'Call/Transaction Does Not Exist',
  482: 'Loop Detected',
  483: 'Too Many Hops',
  484: 'Address Incomplete',
  486: 'Busy Here',
  487: 'Request Terminated',
  488: 'Not Acceptable Here',
  489: 'Bad Event',
  491: 'Request Pending',
  500: 'Server Internal Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  504: 'Server Time-out',
  505: 'Version Not Supported',
  513: 'Message Too Large',
  603: 'Decline',
};

export const reasonPhrase = (status: number): string => REASONS[status] ?? 'Unknown';

/**
 * A response with the header fields that every response copies, Timestamp included (§8.2.6.1, §20.38). `toTag` is added
 * to To unless the request's To has a tag (§8.2.6.2); Record-Route is copied where a dialog may come of it (§12.1.1).
 */
export function makeResponse(request: SipRequest, status: number, toTag: string, body: Uint8Array = NO_BODY): SipResponse {
  const headers = new Headers();
  const from = request.headers;
  const dialogForming = request.method === 'INVITE' && status > 100 && status < 300;
  for (let i = 0; i < from.names.length; i++) {
    const name = from.names[i];
    const value = from.values[i];
    if (name === undefined || value === undefined) continue;
    if (name === 'via' || name === 'from' || name === 'call-id' || name === 'cseq' || name === 'timestamp')
      headers.add(name, value);
    else if (name === 'to')
      headers.add(name, status === 100 || toTag === '' || tagOf(value) !== undefined ? value : `${value};tag=${toTag}`);
    else if (name === 'record-route' && dialogForming) headers.add(name, value);
  }
  return { kind: 'response', status, reason: reasonPhrase(status), headers, body };
}
