/** The identity of a caller: From, P-Asserted-Identity, Remote-Party-ID and Privacy, both ways, and their numbers. */

import type { Headers, SipRequest } from '../../sip/message/message.ts';
import { escapeUser, parseNameAddress, parseUri, quote } from '../../sip/message/uri.ts';
import { formatNumber, normaliseNumber } from '../trunk/number-plan.ts';
import { plainUser, type Trunk } from '../trunk/trunk.ts';

/** The number in a name-addr, in the form of the trunk. Undefined when it has none. */
function numberIn(value: string | undefined, trunk: Trunk): string | undefined {
  const address = value === undefined ? undefined : parseNameAddress(value);
  const uri = address === undefined ? undefined : parseUri(address.uri);
  if (uri === undefined || uri.user.toLowerCase() === 'anonymous') return undefined;
  // A tel URI has its context beside the number, a SIP URI within its user part.
  const context = uri.parameters.get('phone-context');
  return numberOf(context === undefined ? uri.user : `${uri.user};phone-context=${context}`, trunk);
}

/** The number that a user part is on that trunk. Undefined when it is none. */
export const numberOf = (user: string, { settings }: Trunk): string | undefined =>
  normaliseNumber(user, settings.inbound_format ?? 'auto', settings.country_code);

/**
 * Whether the caller withholds its identity: the asserted one (`id`, RFC 3325 §9.3), or that of From (`user`, RFC 3323
 * §4.2), by which it means the other one too.
 */
export function isWithheld(headers: Headers): boolean {
  const privacy = headers.list('privacy').flatMap((each) =>
    each
      .toLowerCase()
      .split(';')
      .map((value) => value.trim()),
  );
  if (privacy.includes('id') || privacy.includes('user')) return true;
  return headers.list('remote-party-id').some((each) => /;\s*privacy\s*=\s*"?(full|name|uri|on|yes)\b/i.test(each));
}

/**
 * The E.164 number of the caller. `""` when the caller withholds it, or when it is no number. An asserted identity (RFC
 * 3325) wins over From where the trunk is trusted with it.
 */
export function callerId({ headers }: SipRequest, trunk: Trunk): string {
  if (isWithheld(headers)) return '';
  const told = [...headers.list('p-asserted-identity'), ...headers.list('remote-party-id')];
  const asserted = trunk.settings.trust_identity === true ? told : [];
  for (const value of asserted) {
    const number = numberIn(value, trunk);
    if (number !== undefined) return number;
  }
  return numberIn(headers.get('from'), trunk) ?? '';
}

/**
 * The numbers that may be the called one, the likeliest first: that of P-Called-Party-ID, which is the Request-URI
 * before a registrar put our Contact in its place (RFC 7315 §4.2), then those of the Request-URI and of To. A
 * Request-URI that is our Contact says only which trunk is meant, so To comes before it.
 */
export function calledNumbers(request: SipRequest, trunk: Trunk): string[] {
  const { headers, uri } = request;
  const [asked, to] = [`<${uri}>`, headers.get('to')];
  const told = isRegisteredContact(uri, trunk) ? [to, asked] : [asked, to];
  return [...new Set([headers.get('p-called-party-id'), ...told].flatMap((value) => numberIn(value, trunk) ?? []))];
}

/** Whether a Request-URI has the user of the Contact that the trunk is registered with. */
function isRegisteredContact(uri: string, { register, username, settings }: Trunk): boolean {
  const user = settings.contact_user === undefined ? username : plainUser(settings.contact_user);
  return register && user !== undefined && parseUri(uri)?.user === user;
}

/** The user parts of a call that we place. */
export function dialledUsers(
  trunk: Trunk,
  order: { readonly to: string; readonly from: string },
): { readonly to: string; readonly from: string; readonly caller: string } {
  const {
    outbound_format: format = 'plus_e164',
    country_code: code,
    outbound_prefix: prefix = '',
    from_user: user,
  } = trunk.settings;
  const caller = formatNumber(order.from, format, code);
  return { to: `${prefix}${formatNumber(order.to, format, code)}`, from: user === undefined ? caller : plainUser(user), caller };
}

/** The parameter by which a SIP URI says that its user part is a number (RFC 3261 §19.1.1), if the trunk wants it. */
export const phoneForm = ({ user_phone: isTold }: Trunk['settings']): string => (isTold === true ? ';user=phone' : '');

/** The header field that asserts the caller's identity, if the trunk wants one. */
export function assertedIdentity(
  { settings }: Trunk,
  caller: string,
  domain: string,
  displayName: string | undefined,
): readonly (readonly [string, string])[] {
  const display = displayName === undefined ? '' : `${displayForm(displayName)} `;
  const address = `${display}<sip:${escapeUser(caller)}@${domain}${phoneForm(settings)}>`;
  if (settings.identity === 'pai') return [['p-asserted-identity', address]];
  if (settings.identity === 'ppi') return [['p-preferred-identity', address]];
  if (settings.identity === 'rpid') return [['remote-party-id', `${address};party=calling;screen=yes;privacy=off`]];
  return [];
}

/** A display name as a quoted string of one line. */
export const displayForm = (name: string): string => quote(name.replace(/[\x00-\x1f\x7f]/g, ' '));
