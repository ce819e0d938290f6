/** The Via header field (RFC 3261 §20.42), with rport and received (RFC 3581). */
import { remembered } from '../../bounds/remembered.ts';
import { DEVICE_PATHS_MAX, SIP_PARSED_REMEMBERED_MAX } from '../../limits.ts';
import { formatHostPort, type Parameters, parseHostPort, parseParameters } from './uri.ts';

export type TransportName = 'udp' | 'tcp' | 'tls';

export interface Via {
  /** The transport as it came, in lower case. */
  readonly transport: string;
  readonly host: string;
  readonly port: number | undefined;
  /** `""` when absent. */
  readonly branch: string;
  readonly parameters: Parameters;
}

/** The cookie that makes a branch globally unique (RFC 3261 §8.1.1.7). */
export const MAGIC_COOKIE = 'z9hG4bK';

/** The first Via of a Via value. Undefined when malformed. It is asked for three times a message. */
export const parseVia = remembered(readVia, SIP_PARSED_REMEMBERED_MAX);

function readVia(value: string): Via | undefined {
  const comma = value.indexOf(',');
  const first = comma < 0 || value.includes('"') ? value : value.slice(0, comma);
  const semicolon = first.indexOf(';');
  const head = (semicolon < 0 ? first : first.slice(0, semicolon)).trim();
  const parts = /^SIP[ \t]*\/[ \t]*2\.0[ \t]*\/[ \t]*([A-Za-z0-9-]{1,16})[ \t]+([^ \t].*)$/i.exec(head);
  const transport = parts?.[1];
  const sentBy = parts?.[2];
  if (transport === undefined || sentBy === undefined) return undefined;
  const hostPort = parseHostPort(withoutBlanks(sentBy));
  const parameters = parseParameters(semicolon < 0 ? '' : first.slice(semicolon).trim());
  if (hostPort === undefined || parameters === undefined) return undefined;
  return { transport: transport.toLowerCase(), ...hostPort, branch: parameters.get('branch') ?? '', parameters };
}

/**
 * A sent-by without the blanks around the colon of its port (RFC 3261 §25.1, COLON). It is cut by hand: a pattern that
 * looks for blanks before a colon begins anew at each blank, and anybody may send 30,000 of them.
 */
function withoutBlanks(sentBy: string): string {
  const colon = sentBy.lastIndexOf(':');
  if (colon < 0) return sentBy;
  const port = sentBy.slice(colon + 1).trimStart();
  return /^[0-9]+$/.test(port) ? `${sentBy.slice(0, colon).trimEnd()}:${port}` : sentBy;
}

/** The hosts that the proxies before us saw a request come from, by `received` of each Via below the first. */
export const seenByProxies = (vias: readonly string[]): readonly string[] =>
  vias.slice(1, 1 + DEVICE_PATHS_MAX).flatMap((via) => parseVia(via)?.parameters.get('received') ?? []);

/**
 * The address and port that the far end saw our request come from, by the Via of its response (RFC 3581). `""` where it
 * does not tell.
 */
export function seenBy(via: string | undefined): string {
  const parameters = via === undefined ? undefined : parseVia(via)?.parameters;
  const port = parameters?.get('rport') ?? '';
  return port === '' ? '' : `${parameters?.get('received') ?? ''}:${port}`;
}

/**
 * The sent-by of a Via that is otherwise malformed, or of another protocol version: enough to answer its request with
 * 400 or 505 (RFC 4475 §3.1.2.1, §3.1.2.16). A well-formed Via is parsed whole. Undefined when not even the host can be
 * read.
 */
export function parseViaLeniently(value: string): Via | undefined {
  const strict = parseVia(value);
  if (strict !== undefined) return strict;
  const parts = /^SIP[ \t]*\/[ \t]*[0-9.]+[ \t]*\/[ \t]*([A-Za-z0-9-]{1,16})[ \t]+([^ \t;,]+)(.*)$/is.exec(value.trim());
  const hostPort = parts?.[2] === undefined ? undefined : parseHostPort(parts[2]);
  if (hostPort === undefined) return undefined;
  const rest = parts?.[3] ?? '';
  const branch = /;[ \t]*branch[ \t]*=[ \t]*([^;,\s]+)/i.exec(rest)?.[1] ?? '';
  const parameters = new Map(/;[ \t]*rport[ \t]*(?=[;,=]|$)/i.test(rest) ? [['rport', '']] : []);
  return { transport: (parts?.[1] ?? '').toLowerCase(), ...hostPort, branch, parameters };
}

/** Our Via. `rport` asks the far end to answer to where the request came from (RFC 3581 §3). */
export const formatVia = (transport: TransportName, host: string, port: number, branch: string): string =>
  `SIP/2.0/${transport.toUpperCase()} ${formatHostPort(host, port)};branch=${branch};rport`;

/**
 * The top Via as a server stores it: with `received` and a filled `rport` where the source differs or the client asked
 * (RFC 3261 §18.2.1, RFC 3581 §4).
 */
export function stampVia(value: string, via: Via, source: { readonly host: string; readonly port: number }): string {
  const asked = via.parameters.has('rport');
  if (!asked && via.host === source.host) return value;
  const comma = value.includes('"') ? -1 : value.indexOf(',');
  const first = comma < 0 ? value : value.slice(0, comma);
  const rest = comma < 0 ? '' : value.slice(comma);
  const bare = first.replace(/;[ \t]*(rport|received)[ \t]*(=[^;]*)?(?=;|$)/gi, '').trimEnd();
  // The zone of a link-local address means nothing to anybody else, and is none of the grammar.
  const [host] = source.host.split('%', 1);
  return `${bare};received=${host}${asked ? `;rport=${source.port}` : ''}${rest}`;
}
