/**
 * Tells the `hangup_cause` and `hangup_by` of a call from its end on the wire (contract §2; interface, Session events).
 */
import type { LegEnd } from '../../call/ports/leg.ts';
import type { HangupBy, HangupCause, RejectReason } from '../../event/hangup.ts';
import type { CallEnd } from '../../sip/call/call-event.ts';
import { told } from './sip-facts.ts';

/** The end of a leg for which no RTP ports are free. */
export const NO_PORTS: LegEnd = { cause: 'carrier_congested', by: 'system', description: 'No media ports are free' };

/** The end of a leg whose call we have cancelled. */
export const CANCELLED: LegEnd = {
  cause: 'cancelled',
  by: 'caller',
  description: 'The call was cancelled before it was answered',
};

/** The end of a leg whose far end has answered our offer with no audio that we can take. */
export const UNUSABLE: LegEnd = {
  cause: 'failed',
  by: 'system',
  description: 'The far end answered with audio that cannot be used',
};

/** The ITU-T Q.850 causes that say more than the SIP status. */
const CAUSE_OF_Q850: ReadonlyMap<number, HangupCause> = new Map([
  [1, 'invalid_number'],
  [3, 'carrier_unreachable'],
  [17, 'busy'],
  [18, 'not_answered'],
  [19, 'timeout'],
  [20, 'not_answered'],
  [21, 'rejected'],
  [27, 'carrier_unreachable'],
  [28, 'invalid_number'],
  [34, 'carrier_congested'],
  [38, 'carrier_unreachable'],
  [41, 'carrier_congested'],
  [42, 'carrier_congested'],
  [44, 'carrier_congested'],
  [47, 'carrier_congested'],
]);

const CAUSE_OF_STATUS: ReadonlyMap<number, HangupCause> = new Map([
  [401, 'carrier_unreachable'],
  [403, 'rejected'],
  [404, 'invalid_number'],
  [407, 'carrier_unreachable'],
  [408, 'timeout'],
  [410, 'not_answered'],
  [433, 'rejected'],
  [480, 'not_answered'],
  [484, 'invalid_number'],
  [485, 'invalid_number'],
  [486, 'busy'],
  [502, 'carrier_unreachable'],
  [503, 'carrier_congested'],
  [504, 'carrier_unreachable'],
  [600, 'busy'],
  [603, 'rejected'],
  [604, 'invalid_number'],
  [607, 'rejected'],
  [608, 'rejected'],
]);

/** The causes that the called party itself decides. Any other refusal is the network's. */
const CAUSES_OF_CALLEE: ReadonlySet<HangupCause> = new Set(['busy', 'rejected', 'not_answered', 'timeout']);

/** The cause of a failure response to our INVITE. */
export function causeOfResponse(status: number, q850: number | undefined, retryAfter: boolean): HangupCause {
  const told = q850 === undefined ? undefined : CAUSE_OF_Q850.get(q850);
  if (told !== undefined) return told;
  if (status >= 300 && status < 400) return 'not_answered';
  if (status === 500 && retryAfter) return 'carrier_congested';
  return CAUSE_OF_STATUS.get(status) ?? 'failed';
}

const ended = (cause: HangupCause, by: HangupBy, description: string): LegEnd => ({ cause, by, description });

/** The end of a leg of that direction, with what the far end said of it. */
export function legEnd(end: CallEnd, direction: 'inbound' | 'outbound'): LegEnd {
  const { status, q850, reason } = { status: undefined, q850: undefined, reason: undefined, ...end };
  const said = Object.entries({ status, q850, reason: reason && told(reason) }).filter(([, value]) => value !== undefined);
  return { ...endOf(end, direction), ...(said.length === 0 ? {} : { sip: Object.fromEntries(said) }) };
}

function endOf(end: CallEnd, direction: 'inbound' | 'outbound'): LegEnd {
  const farEnd: HangupBy = direction === 'inbound' ? 'caller' : 'callee';
  const ourEnd: HangupBy = direction === 'inbound' ? 'callee' : 'caller';
  switch (end.why) {
    case 'local':
      return ended('completed', ourEnd, 'The call was hung up');
    case 'bye': {
      const told = end.q850 === undefined ? undefined : CAUSE_OF_Q850.get(end.q850);
      const cause = told ?? 'completed';
      return { ...ended(cause, cause.startsWith('carrier_') ? 'network' : farEnd, 'The far end hung up'), hungUp: true };
    }
    case 'cancelled':
      return ended('cancelled', farEnd, 'The caller hung up before the call was answered');
    case 'refused': {
      const cause = causeOfResponse(end.status, end.q850, end.retryAfter);
      const by = end.status === 408 && cause === 'timeout' ? 'system' : CAUSES_OF_CALLEE.has(cause) ? 'callee' : 'network';
      return ended(cause, by, `The far end refused the call with ${end.status}`);
    }
    case 'no_response':
      return ended('timeout', 'system', 'The carrier did not respond');
    case 'unreachable':
      return ended('carrier_unreachable', 'network', 'The carrier could not be reached');
    case 'unacknowledged':
      return ended('failed', 'network', 'The far end did not acknowledge the answer');
    case 'session_expired':
      return ended('timeout', 'system', 'The session was not refreshed in time');
    case 'gone':
      return ended('timeout', 'system', 'The far end no longer knows the call');
    case 'unresponsive':
      return { ...ended('timeout', 'system', 'The far end did not answer a probe'), orphaned: true };
    case 'expired':
      return ended('timeout', farEnd, 'The caller waited no longer');
  }
}

/** The status that each reason of `reject` sends (contract §2). */
export const REJECT_STATUS: Readonly<Record<RejectReason, number>> = {
  number_not_found: 404,
  invalid_number: 484,
  timeout: 480,
  busy: 486,
  rejected: 603,
};
