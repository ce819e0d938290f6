/** What a call may be transferred to and which keys may be sent to it, whoever asks: HTTP or a bot. */

import { isIPv6 } from 'node:net';
import { DTMF_SEND_MAX_DIGITS, TRANSFER_URI_MAX_CHARS } from '../../limits.ts';
import type { TransferTarget } from '../../machine/session/input.ts';
import { isE164 } from '../../phone-number.ts';
import { parseUri } from '../../sip/message/uri.ts';

/** Keys, and `w` and `W` for pauses. */
export const SENT_DIGITS = new RegExp(`^[0-9A-D*#wW]{1,${DTMF_SEND_MAX_DIGITS}}$`);

/** A SIP URI without a password and without headers. Its scheme has no case (RFC 3261 §19.1.4). */
const SIP_URI =
  /^[sS][iI][pP]:(?:[A-Za-z0-9\-_.!~*'()+&=$,;/?%]+@)?(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9][A-Za-z0-9.-]{0,252})(?::[0-9]{1,5})?(?:;[A-Za-z0-9\-_.!~*'+%=]+)*$/;

/** An E.164 number with leading + or a SIP URI; undefined where it is neither. */
export function targetOf(to: string): TransferTarget | undefined {
  if (isE164(to)) return { number: to };
  return to.length <= TRANSFER_URI_MAX_CHARS && SIP_URI.test(to) && leadsToHost(to) ? { uri: to } : undefined;
}

/** Whether a host can be read in a URI of that form: its port, its escapes and its IPv6 address may be none. */
function leadsToHost(uri: string): boolean {
  const host = parseUri(uri)?.host;
  return host !== undefined && (!host.includes(':') || isIPv6(host));
}
