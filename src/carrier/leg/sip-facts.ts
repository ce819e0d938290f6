/** What an INVITE, or the answer to ours, tells the application beyond its numbers. */
import { detached } from '../../bounds/detached.ts';
import { factText, type SipFacts } from '../../event/call-report.ts';
import { SIP_FACT_HEADERS_MAX } from '../../limits.ts';
import type { Headers } from '../../sip/message/message.ts';
import { withoutPasswords } from '../../sip/redaction.ts';
import { LOOPBACK_FIELD } from '../trunk/loopback.ts';
import { isWithheld } from './identity.ts';

/** Header fields of our own extensions, which are nobody's business. */
const OURS: ReadonlySet<string> = new Set([LOOPBACK_FIELD]);

/**
 * The facts of a call from the far end's message, without an identity that it withholds. Values are cut to
 * SIP_FACT_MAX_CHARS, and addresses are told without passwords. The name of the trunk is `""` in calls of devices.
 */
export function sipFacts(
  headers: Headers,
  trunk: string,
  codec: string | undefined,
  device?: { readonly device: string; readonly dialled: string },
): SipFacts {
  const asserted = addresses(headers, 'p-asserted-identity');
  const verstat = /;\s*verstat\s*=\s*"?([A-Za-z0-9-]{1,64})/i.exec(`${asserted ?? ''} ${headers.get('from') ?? ''}`)?.[1];
  const fields = {
    trunk: trunk === '' ? undefined : trunk,
    device: device?.device,
    dialled: device && told(device.dialled),
    codec,
    headers: extensions(headers),
    p_asserted_identity: isWithheld(headers) ? undefined : asserted,
    diversion: addresses(headers, 'diversion'),
    history_info: addresses(headers, 'history-info'),
    verstat,
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return { call_id: told(headers.get('call-id') ?? ''), ...Object.fromEntries(given) };
}

/** A text of the message, which is kept for as long as the call, and not the message with it. */
export const told = (text: string): string => detached(factText(text));

function listed(headers: Headers, name: string): string | undefined {
  const values = headers.fields(name);
  return values.length === 0 ? undefined : values.join(', ');
}

function addresses(headers: Headers, name: string): string | undefined {
  const values = listed(headers, name);
  return values === undefined ? undefined : told(withoutPasswords(values));
}

/**
 * The `X-` header fields under the names that were sent, SIP_FACT_HEADERS_MAX at most. A repeated one is a list (RFC
 * 3261 §7.3.1).
 */
function extensions(headers: Headers): Readonly<Record<string, string>> | undefined {
  const found = new Map<string, string>();
  for (const name of headers.names) {
    if (!name.startsWith('x-') || OURS.has(name) || found.size >= SIP_FACT_HEADERS_MAX) continue;
    const spelled = headers.spelling(name);
    if (!found.has(spelled)) found.set(spelled, told(listed(headers, name) ?? ''));
  }
  return found.size === 0 ? undefined : Object.fromEntries(found);
}
