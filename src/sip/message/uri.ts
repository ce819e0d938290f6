/** SIP and SIPS URIs (RFC 3261 §19.1) and name-addr, the form of From, To, Contact, Route (§20.10). */
import ipaddr from 'ipaddr.js';
import { remembered } from '../../bounds/remembered.ts';
import { SIP_PARSED_REMEMBERED_MAX } from '../../limits.ts';

export type Parameters = ReadonlyMap<string, string>;

interface SipUri {
  readonly scheme: 'sip' | 'sips' | 'tel';
  /** The user part, unescaped. `""` when absent. In a tel URI it is the number. */
  readonly user: string;
  /** The host, without the brackets of an IPv6 reference. `""` for tel. */
  readonly host: string;
  readonly port: number | undefined;
  /** The parameters. Names are in lower case; a parameter without a value has the value `""`. */
  readonly parameters: Parameters;
}

interface NameAddress {
  readonly display: string;
  /** The text between the brackets, as it came. */
  readonly uri: string;
  readonly parameters: Parameters;
}

const NONE: Parameters = new Map();

/**
 * Splits `;a=b;c` into names and values; quoted values lose their quotes. Undefined when a name is missing or a quote
 * is open.
 */
export function parseParameters(text: string): Parameters | undefined {
  if (text === '') return NONE;
  const found = new Map<string, string>();
  let at = 0;
  while (at < text.length) {
    if (text.charCodeAt(at) !== 0x3b) return undefined;
    at++;
    let end = at;
    let quoted = false;
    while (end < text.length) {
      const c = text.charCodeAt(end);
      if (quoted) {
        if (c === 0x5c) end++;
        else if (c === 0x22) quoted = false;
      } else if (c === 0x22) quoted = true;
      else if (c === 0x3b) break;
      end++;
    }
    if (quoted) return undefined;
    const part = text.slice(at, end);
    const equals = part.indexOf('=');
    const name = (equals < 0 ? part : part.slice(0, equals)).trim().toLowerCase();
    const value = equals < 0 ? '' : unquote(part.slice(equals + 1).trim());
    if (name === '') return undefined;
    if (!found.has(name)) found.set(name, value);
    at = end;
  }
  return found;
}

/** A quoted string without its quotes and escapes; other text as it is. */
export function unquote(text: string): string {
  if (text.length < 2 || text.charCodeAt(0) !== 0x22 || text.charCodeAt(text.length - 1) !== 0x22) return text;
  const inner = text.slice(1, -1);
  return inner.includes('\\') ? inner.replace(/\\(.)/g, '$1') : inner;
}

/** A quoted string with what must be escaped escaped. */
export const quote = (text: string): string => `"${text.replace(/[\\"]/g, '\\$&')}"`;

/** A user part without its escapes. Undefined where one is none, or they are no UTF-8. */
export function unescapeUser(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Host and optional port; IPv6 in brackets. Undefined when malformed. */
export function parseHostPort(text: string): { readonly host: string; readonly port: number | undefined } | undefined {
  let host = text;
  let rest = '';
  if (text.startsWith('[')) {
    const close = text.indexOf(']');
    if (close < 0) return undefined;
    host = text.slice(1, close);
    rest = text.slice(close + 1);
    if (!/^[0-9A-Fa-f:.]+$/.test(host) || !host.includes(':')) return undefined;
  } else {
    const colon = text.indexOf(':');
    if (colon >= 0) {
      host = text.slice(0, colon);
      rest = text.slice(colon);
    }
    if (!/^[A-Za-z0-9_.-]+$/.test(host)) return undefined;
  }
  if (rest === '') return { host, port: undefined };
  if (!rest.startsWith(':')) return undefined;
  const digits = rest.slice(1);
  if (!/^[0-9]{1,5}$/.test(digits)) return undefined;
  const port = Number(digits);
  return port > 0 && port < 65536 ? { host, port } : undefined;
}

/**
 * A host as sources of messages have it: an IPv6 address in its shortest form (RFC 5952), and one that stands for an
 * IPv4 address as that one. A URI may write it in many ways (RFC 5118 §4.5). Others stay as they are.
 */
export function plainHost(host: string): string {
  if (!host.includes(':') || !ipaddr.isValid(host)) return host;
  const address = ipaddr.process(host);
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString();
}

/** `host` or `[host]`, with `:port` when there is one. */
export function formatHostPort(host: string, port: number | undefined): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === undefined ? name : `${name}:${port}`;
}

/**
 * Parses a sip, sips or tel URI. Undefined for another scheme or a malformed one; URI headers (`?…`) are ignored. It is
 * asked of the same texts several times within a message and a call.
 */
export const parseUri = remembered(readUri, SIP_PARSED_REMEMBERED_MAX);

function readUri(text: string): SipUri | undefined {
  const colon = text.indexOf(':');
  if (colon < 3 || colon > 4) return undefined;
  const scheme = text.slice(0, colon).toLowerCase();
  if (scheme !== 'sip' && scheme !== 'sips' && scheme !== 'tel') return undefined;
  let rest = text.slice(colon + 1);
  if (/[\s<>"]/.test(rest)) return undefined;
  if (scheme === 'tel') {
    const semicolon = rest.indexOf(';');
    const parameters = semicolon < 0 ? NONE : parseParameters(rest.slice(semicolon));
    const user = semicolon < 0 ? rest : rest.slice(0, semicolon);
    return parameters === undefined || user === '' ? undefined : { scheme, user, host: '', port: undefined, parameters };
  }
  let user = '';
  const at = rest.lastIndexOf('@');
  if (at >= 0) {
    const info = rest.slice(0, at);
    const password = info.indexOf(':');
    const name = unescapeUser(password < 0 ? info : info.slice(0, password));
    if (name === undefined || name === '') return undefined;
    user = name;
    rest = rest.slice(at + 1);
  }
  const question = rest.indexOf('?');
  if (question >= 0) rest = rest.slice(0, question);
  const semicolon = rest.indexOf(';');
  const hostPort = parseHostPort(semicolon < 0 ? rest : rest.slice(0, semicolon));
  const parameters = semicolon < 0 ? NONE : parseParameters(rest.slice(semicolon));
  return hostPort === undefined || parameters === undefined ? undefined : { scheme, user, ...hostPort, parameters };
}

/**
 * A sip or sips URI as a Request-URI has it: without URI headers (RFC 3261 §19.1.1), and with what is compared without
 * case, its scheme and host (§19.1.4), in lower case. Undefined when malformed, and for a tel URI.
 */
export function requestUri(text: string): string | undefined {
  const parsed = parseUri(text);
  if (parsed === undefined || parsed.scheme === 'tel') return undefined;
  const at = text.lastIndexOf('@') + 1;
  const info = at === 0 ? '' : text.slice(text.indexOf(':') + 1, at);
  // What follows a second @ may be meant as a header, or as the host.
  if (info.indexOf('@') < info.length - 1) return undefined;
  const rest = at === 0 ? text.slice(text.indexOf(':') + 1) : text.slice(at);
  const [place = ''] = rest.split('?', 1);
  const semicolon = place.indexOf(';');
  const parameters = semicolon < 0 ? '' : place.slice(semicolon);
  return `${parsed.scheme}:${info}${formatHostPort(parsed.host.toLowerCase(), parsed.port)}${parameters}`;
}

/**
 * Parses `"Display" <uri>;param` and the bare `uri;param`, whose parameters belong to the header (RFC 3261 §20.10). It
 * is asked of From and To some five times a message.
 */
export const parseNameAddress = remembered(readNameAddress, SIP_PARSED_REMEMBERED_MAX);

function readNameAddress(value: string): NameAddress | undefined {
  let at = 0;
  while (at < value.length && value.charCodeAt(at) <= 0x20) at++;
  let display = '';
  let open = at;
  if (value.charCodeAt(at) === 0x22) {
    let end = at + 1;
    while (end < value.length && value.charCodeAt(end) !== 0x22) end += value.charCodeAt(end) === 0x5c ? 2 : 1;
    if (end >= value.length) return undefined;
    display = unquote(value.slice(at, end + 1));
    open = value.indexOf('<', end);
    if (open < 0 || value.slice(end + 1, open).trim() !== '') return undefined;
  } else {
    open = value.indexOf('<', at);
    // The bracket is in a quoted parameter, as of +sip.instance, of a bare URI.
    if (open > at && /=\s*"$/.test(value.slice(at, open))) open = -1;
    if (open > at) display = value.slice(at, open).trim();
  }
  if (open >= 0) {
    const close = value.indexOf('>', open);
    if (close < 0) return undefined;
    const parameters = parseParameters(value.slice(close + 1).trim());
    const uri = value.slice(open + 1, close).trim();
    return parameters === undefined || uri === '' ? undefined : { display, uri, parameters };
  }
  const semicolon = value.indexOf(';', at);
  const uri = (semicolon < 0 ? value.slice(at) : value.slice(at, semicolon)).trim();
  const parameters = semicolon < 0 ? NONE : parseParameters(value.slice(semicolon).trim());
  return parameters === undefined || uri === '' || uri.includes(',') ? undefined : { display, uri, parameters };
}

/** The tag of a From or To value; undefined when it has none or the value is malformed. */
export function tagOf(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const tag = parseNameAddress(value)?.parameters.get('tag');
  return tag === '' ? undefined : tag;
}

/**
 * The user part of a URI, with what RFC 3261 §25.1 does not allow there percent-escaped: any text. Half a surrogate
 * pair, which has no UTF-8, becomes U+FFFD.
 */
export const escapeUser = (user: string): string =>
  user.toWellFormed().replace(/[^A-Za-z0-9\-_.!~*'()&=+$,;?/]/gu, encodeURIComponent);

/**
 * Whether two URIs name the same user at the same host and port (RFC 3261 §19.1.4, parameters aside). False where one
 * is no URI.
 */
export function isSameAddress(one: string, other: string): boolean {
  const [a, b] = [parseUri(one), parseUri(other)];
  if (a === undefined || b === undefined) return false;
  return a.scheme === b.scheme && a.user === b.user && a.host.toLowerCase() === b.host.toLowerCase() && a.port === b.port;
}
