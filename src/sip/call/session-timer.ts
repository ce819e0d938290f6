/** Session timers (RFC 4028): who refreshes, how often, and when a call that nobody refreshed is over. */
import { SIP_MIN_SE_SEC, SIP_SESSION_EXPIRES_SEC } from '../../limits.ts';
import type { Peer } from '../flow.ts';
import { hasTag } from '../message/capability.ts';
import { type Headers, parseDeltaSeconds } from '../message/message.ts';
import type { ServerTransaction } from '../transaction/server.ts';

export interface SessionTimer {
  readonly intervalSec: number;
  /** Whether we send the refreshes. */
  readonly ours: boolean;
}

interface SessionExpires {
  readonly seconds: number;
  readonly refresher: 'uac' | 'uas' | undefined;
}

/** Reads Session-Expires. Undefined when it is absent or malformed. */
function parseSessionExpires(headers: Headers): SessionExpires | undefined {
  const value = headers.get('session-expires');
  const seconds = parseDeltaSeconds(value);
  if (value === undefined || seconds === undefined) return undefined;
  const refresher = /;\s*refresher\s*=\s*(uac|uas)\b/i.exec(value)?.[1]?.toLowerCase();
  return { seconds, refresher: refresher === 'uac' || refresher === 'uas' ? refresher : undefined };
}

/** Whether a request asks for a shorter session than we accept. It is answered 422 with Min-SE (RFC 4028 §6). */
export const isTooSmall = (headers: Headers, peer: Peer): boolean => {
  if (peer.profile?.sessionTimer === false) return false;
  const asked = parseSessionExpires(headers);
  return asked !== undefined && asked.seconds < SIP_MIN_SE_SEC && hasTag(headers, 'supported', 'timer');
};

/**
 * What a UAS answers (§9): the session interval and the refresher, or no timer when the far end asked for none and does
 * not know the extension.
 * `value` goes into Session-Expires; `require` says that the far end must take part.
 */
export function answerTimer(
  headers: Headers,
  peer: Peer,
): { readonly timer: SessionTimer; readonly value: string; readonly require: boolean } | undefined {
  if (peer.profile?.sessionTimer === false) return undefined;
  const asked = parseSessionExpires(headers);
  const knows = hasTag(headers, 'supported', 'timer') || hasTag(headers, 'require', 'timer');
  if (asked === undefined && !knows) return undefined;
  const least = Math.max(SIP_MIN_SE_SEC, parseDeltaSeconds(headers.get('min-se')) ?? 0);
  const intervalSec = Math.max(least, asked?.seconds ?? SIP_SESSION_EXPIRES_SEC);
  const refresher = knows ? (asked?.refresher ?? 'uac') : 'uas';
  return {
    timer: { intervalSec, ours: refresher === 'uas' },
    value: `${intervalSec};refresher=${refresher}`,
    require: refresher === 'uac',
  };
}

/** The session timer that a 2xx to our request sets up (RFC 4028 §7.2). Undefined when it sets up none. */
export function settledTimer(response: Headers): SessionTimer | undefined {
  const answered = parseSessionExpires(response);
  if (answered === undefined) return undefined;
  return { intervalSec: Math.max(answered.seconds, SIP_MIN_SE_SEC), ours: answered.refresher !== 'uas' };
}

/** The time of our next refresh, in milliseconds after the last one: half the interval (RFC 4028 §10). */
export const refreshAfterMs = (timer: SessionTimer): number => timer.intervalSec * 500;

/**
 * The time at which the call is over for want of a refresh, in milliseconds: a third of the interval, at most 32 s,
 * before it expires (RFC 4028 §10).
 */
export const expiresAfterMs = (timer: SessionTimer): number =>
  (timer.intervalSec - Math.min(32, Math.floor(timer.intervalSec / 3))) * 1000;

/** Answers 422 with the least interval that we accept (RFC 4028 §6). */
export function refuseInterval(transaction: ServerTransaction): void {
  const response = transaction.make(422);
  response.headers.add('min-se', String(SIP_MIN_SE_SEC));
  transaction.send(response);
}
