/** Decides about a call from a carrier: whether its source is a trunk of ours, and which application its number belongs to. */
import type { IncomingCall } from '../call/ports/leg.ts';
import { SIP_RETRY_AFTER_SEC } from '../limits.ts';
import type { Log } from '../log.ts';
import { toE164 } from '../phone-number.ts';
import { Negotiation } from '../sdp/negotiation.ts';
import type { Call } from '../sip/call/call.ts';
import type { CallEvent } from '../sip/call/call-event.ts';
import type { SipRequest } from '../sip/message/message.ts';
import { parseNameAddress, parseUri } from '../sip/message/uri.ts';
import { InboundLeg } from './leg/inbound-leg.ts';
import { isRefused, type PhoneLegOptions } from './leg/phone-leg.ts';

/** The E.164 number of the caller. `""` when the far end withholds it or it is no number (interface, Session). */
export function callerId(request: SipRequest): string {
  const from = parseNameAddress(request.headers.get('from') ?? '');
  const uri = from === undefined ? undefined : parseUri(from.uri);
  return uri === undefined || uri.user.toLowerCase() === 'anonymous' ? '' : (toE164(uri.user) ?? '');
}

/** The numbers that may be the called one: that of the Request-URI, then that of To. */
function calledNumbers(request: SipRequest): string[] {
  const to = parseNameAddress(request.headers.get('to') ?? '');
  const users = [parseUri(request.uri)?.user, to === undefined ? undefined : parseUri(to.uri)?.user];
  return [...new Set(users.flatMap((user) => (user === undefined ? [] : (toE164(user) ?? []))))];
}

export interface InboundOptions {
  readonly log: Log;
  /** The application of a number. Rejects when the database cannot tell. */
  numberOwner(e164: string): Promise<string | undefined>;
  /** The name of the trunk that a source address belongs to. Undefined when it belongs to none. */
  trunkOf(address: string): string | undefined;
  /** Takes a channel of the trunk. Undefined when all are in use. */
  reserve(trunk: string, address: string): PhoneLegOptions | undefined;
  onInvite(call: IncomingCall & { readonly trunk: string }): void | Promise<void>;
}

/** Decides about one INVITE: refuses it, or hands it to its application. `refuse` and `listen` act on its call. */
export async function admitInvite(
  options: InboundOptions,
  call: Call,
  request: SipRequest,
  address: string,
  refuse: (status: number, fields?: readonly (readonly [string, string])[]) => void,
  listen: (listener: (event: CallEvent) => void) => void,
): Promise<void> {
  // The caller may give up while the number is looked up.
  let gone = false;
  listen((event) => {
    gone ||= event.type === 'ended';
  });
  const retry = [['retry-after', String(SIP_RETRY_AFTER_SEC)]] as const;
  const trunk = options.trunkOf(address);
  if (trunk === undefined) {
    refuse(403);
    return;
  }
  const numbers = calledNumbers(request);
  if (numbers.length === 0) {
    refuse(404);
    return;
  }
  let owner: { did: string; appUuid: string } | undefined;
  try {
    for (const did of numbers) {
      const appUuid = await options.numberOwner(did);
      if (gone) return;
      if (appUuid !== undefined) {
        owner = { did, appUuid };
        break;
      }
    }
  } catch {
    options.log.warn({ trunk }, 'a call was refused: its number could not be looked up');
    if (!gone) refuse(503, retry);
    return;
  }
  if (owner === undefined) {
    refuse(404);
    return;
  }
  const leg = options.reserve(trunk, address);
  if (leg === undefined) {
    refuse(503, retry);
    return;
  }
  if (request.body.length > 0) {
    const trial = new Negotiation({ host: '127.0.0.1', port: 9, codecs: leg.codecs, sessionId: 0 }).answer(request.body);
    if (isRefused(trial)) {
      leg.onEnded();
      refuse(trial.refused);
      return;
    }
  }
  const inbound = new InboundLeg(leg, call, request.body);
  listen((event) => inbound.take(event));
  await options.onInvite({
    callerId: callerId(request),
    ...owner,
    trunk,
    leg: inbound,
    listen: (listener) => inbound.listen(listener),
  });
}
