/**
 * Bodies of several parts (RFC 2046 §5.1, RFC 5621): the session description is taken out of `multipart/mixed` and its
 * kin. Parts that we do not know are ignored, unless they say that they must be handled (`handling=required`, RFC 3204
 * §6).
 */
import { SIP_BODY_PARTS_MAX } from '../../limits.ts';
import { contentType } from './capability.ts';
import { canonicalName, Headers, NO_BODY, type SipMessage, type SipRequest } from './message.ts';
import { parseParameters } from './uri.ts';

/** Nested multiparts, such as an alternative inside a mixed, are followed this deep. */
const DEPTH_MAX = 3;

/** The requests whose body is a session description, if anything. */
const DESCRIBING: ReadonlySet<string> = new Set(['INVITE', 'ACK', 'PRACK', 'UPDATE']);

interface Part {
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/**
 * The message with its session description as the whole body. A multipart without one leaves an empty body, and so does
 * a response with a body of another type. A request that is no multipart, that is malformed, or that has an unknown
 * part which must be handled, stays as it is: its Content-Type then refuses it with 415.
 */
export function withSessionDescription<M extends SipMessage>(message: M): M {
  if (message.body.length === 0) return message;
  const type = contentType(message.headers);
  const isMultipart = type.startsWith('multipart/');
  // A body that need not be understood is no reason to refuse an offer or answer (RFC 3261 §20.11).
  const mayBeIgnored = message.kind === 'request' && DESCRIBING.has(message.method) && isOptional(message.headers);
  // A response cannot be refused: what it has of another type, as the ISUP of SIP-I (Q.1912.5), is no answer.
  const isOther = message.kind === 'response' && type !== '' && !isMultipart;
  const isIgnored = type !== 'application/sdp' && (mayBeIgnored || isOther);
  const found = isMultipart ? descriptionIn(message, message.kind === 'request', DEPTH_MAX) : undefined;
  if (found !== undefined) return described(message, found);
  return isIgnored ? described(message, NO_BODY) : message;
}

/**
 * What we would read in place of the body of an INVITE or UPDATE (RFC 3261 §8.2.3), as a header field. Undefined where
 * we can read it.
 */
export function readableInstead({ method, headers, body }: SipRequest): readonly [name: string, value: string] | undefined {
  if ((method !== 'INVITE' && method !== 'UPDATE') || body.length === 0) return undefined;
  if (contentType(headers) !== 'application/sdp') return ['accept', 'application/sdp'];
  const encoding = headers.get('content-encoding') ?? 'identity';
  return encoding.toLowerCase() === 'identity' ? undefined : ['accept-encoding', 'identity'];
}

/** The message with a session description, or nothing, as its body. */
function described<M extends SipMessage>(message: M, found: Uint8Array): M {
  const headers = new Headers();
  for (const [i, name] of message.headers.names.entries())
    if (!name.startsWith('content-')) headers.add(name, message.headers.values[i] ?? '');
  if (found.length > 0) headers.add('content-type', 'application/sdp');
  return { ...message, headers, body: found };
}

/** The session description in a multipart. Empty when there is none, undefined when the multipart must be refused. */
function descriptionIn(part: Part, strict: boolean, depth: number): Uint8Array | undefined {
  const parts = depth > 0 ? partsOf(part) : undefined;
  if (parts === undefined) return undefined;
  let found: Uint8Array = NO_BODY;
  for (const each of parts) {
    const type = contentType(each.headers);
    const { disposition, handling } = dispositionOf(each.headers);
    if (type === 'application/sdp' && disposition === 'session') {
      if (found.length === 0) found = each.body;
    } else if (type.startsWith('multipart/')) {
      const inner = descriptionIn(each, strict, depth - 1);
      if (inner !== undefined && found.length === 0) found = inner;
      else if (inner === undefined && handling === 'required' && strict) return undefined;
    } else if (handling === 'required' && strict) return undefined;
  }
  return found;
}

/** Whether a body need not be understood. */
export const isOptional = (headers: Headers): boolean => dispositionOf(headers).handling === 'optional';

/**
 * Content-Disposition (RFC 3261 §20.11). Its handling counts only when it is written: many carriers add parts without
 * saying a word.
 */
function dispositionOf(headers: Headers): { readonly disposition: string; readonly handling: string | undefined } {
  const value = headers.get('content-disposition') ?? '';
  const semicolon = value.indexOf(';');
  const name = (semicolon < 0 ? value : value.slice(0, semicolon)).trim().toLowerCase();
  const handling = semicolon < 0 ? undefined : parseParameters(value.slice(semicolon).trim())?.get('handling');
  return { disposition: name === '' ? 'session' : name, handling: handling?.toLowerCase() };
}

const decoder = new TextDecoder('latin1');
const encoder = new TextEncoder();

/** The parts between the boundaries. Undefined when there is no boundary, or more parts than we read. */
function partsOf(whole: Part): readonly Part[] | undefined {
  const type = whole.headers.get('content-type') ?? '';
  const boundary = parseParameters(type.slice(type.indexOf(';')).replace(/;\s+/g, ';').trim())?.get('boundary');
  if (boundary === undefined || boundary === '' || boundary.length > 70) return undefined;
  // Latin-1 keeps one character for each byte, so that places in the text are places in the bytes.
  const text = `\r\n${decoder.decode(whole.body)}`;
  const mark = `\r\n--${decoder.decode(encoder.encode(boundary))}`;
  const parts: Part[] = [];
  let at = text.indexOf(mark);
  while (at >= 0) {
    const from = at + mark.length;
    if (text.startsWith('--', from)) return parts;
    const lineEnd = text.indexOf('\r\n', from);
    const next = text.indexOf(mark, from);
    if (lineEnd < 0 || next < 0 || text.slice(from, lineEnd).trim() !== '' || parts.length >= SIP_BODY_PARTS_MAX)
      return undefined;
    parts.push(partOf(text, lineEnd, next, whole.body));
    at = next;
  }
  return undefined;
}

/**
 * The part between `from`, the end of its boundary line, and `to`. `bytes` begins two characters after the text does.
 */
function partOf(text: string, from: number, to: number, bytes: Uint8Array): Part {
  const empty = text.indexOf('\r\n\r\n', from);
  const headEnd = empty < 0 || empty > to ? to : empty;
  const headers = new Headers();
  const head = text.slice(from + 2, Math.max(from + 2, headEnd)).replace(/\r\n[ \t]+/g, ' ');
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) headers.add(canonicalName(line.slice(0, colon).trim()), line.slice(colon + 1).trim());
  }
  const start = empty < 0 || empty + 4 > to ? to : empty + 4;
  return { headers, body: bytes.slice(start - 2, to - 2) };
}
