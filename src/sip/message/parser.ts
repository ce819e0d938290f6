/**
 * Parses bytes into a message (RFC 3261 §7, §25). One pass finds the lines; values are slices of one string. A message
 * that cannot be read is dropped, or refused with the status of RFC 3261 §8.2 and RFC 4475 when enough was read to
 * answer it.
 */
import { SIP_BODY_MAX_BYTES, SIP_HEAD_MAX_BYTES, SIP_HEADER_MAX_FIELDS } from '../../limits.ts';
import { canonicalName, Headers, isToken, parseCSeq, parseDecimal, type SipMessage, type SipRequest } from './message.ts';
import { parseNameAddress } from './uri.ts';
import { parseVia } from './via.ts';

type Parsed =
  | { readonly ok: true; readonly message: SipMessage }
  /** The message cannot even be answered. */
  | { readonly ok: false; readonly why: string; readonly refuse: undefined }
  /** The request is answered with `refuse.status`. Its headers are those that were read. */
  | { readonly ok: false; readonly why: string; readonly refuse: { readonly status: number; readonly request: SipRequest } };

const decoder = new TextDecoder();
const VERSION = 'SIP/2.0';

const drop = (why: string): Parsed => ({ ok: false, why, refuse: undefined });

/** The index after the empty line that ends the head, or -1. */
export function headEnd(bytes: Uint8Array, from = 0): number {
  let at = bytes.indexOf(0x0d, from);
  while (at >= 0 && at + 3 < bytes.length) {
    if (bytes[at + 1] === 0x0a && bytes[at + 2] === 0x0d && bytes[at + 3] === 0x0a) return at + 4;
    at = bytes.indexOf(0x0d, at + 1);
  }
  return -1;
}

/**
 * Parses one whole message: a datagram, or what the stream framing cut out. Never throws. The body is a view of
 * `bytes`; bytes beyond Content-Length are discarded (§18.3).
 */
export function parseMessage(bytes: Uint8Array): Parsed {
  let start = 0;
  while (start + 1 < bytes.length && bytes[start] === 0x0d && bytes[start + 1] === 0x0a) start += 2;
  const end = headEnd(bytes, start);
  if (end < 0) return drop('no end of head');
  if (end - start > SIP_HEAD_MAX_BYTES) return drop('head too large');
  const head = decoder.decode(bytes.subarray(start, end - 2));
  const lineEnd = head.indexOf('\r\n');
  const startLine = head.slice(0, lineEnd);
  const headers = new Headers();
  const malformed = readHeaders(head, lineEnd + 2, headers);
  let body = bytes.subarray(end);
  let problem = malformed;

  const lengths = headers.fields('content-length');
  const length = lengths[0] === undefined ? undefined : parseDecimal(lengths[0], SIP_BODY_MAX_BYTES);
  if (lengths[0] !== undefined) {
    if (length === undefined || lengths.some((each) => each !== lengths[0])) problem ??= 'bad Content-Length';
    else if (length > body.length) problem ??= 'body shorter than Content-Length';
    else body = body.subarray(0, length);
  }
  if (body.length > SIP_BODY_MAX_BYTES) return drop('body too large');
  problem ??= checkHeaders(headers);
  // SIP-Version is compared without case (§7.1).
  return /^SIP\//i.test(startLine) ? response(startLine, headers, body, problem) : request(startLine, headers, body, problem);
}

function readHeaders(head: string, from: number, headers: Headers): string | undefined {
  let problem: string | undefined;
  let at = from;
  while (at < head.length) {
    let stop = head.indexOf('\r\n', at);
    if (stop < 0) stop = head.length;
    let line = head.slice(at, stop);
    at = stop + 2;
    if (/[\r\n]/.test(line) || (line.includes('\0') && hasBareNul(line))) {
      problem ??= 'control character in a header field';
      // The refusal copies some fields, and is well-formed itself.
      line = line.replaceAll(/[\r\n\0]/g, ' ');
    }
    const first = line.charCodeAt(0);
    if (first === 0x20 || first === 0x09) {
      // Folding (§7.3.1): one space in place of the break.
      const last = headers.values.length - 1;
      const before = headers.values[last];
      if (before === undefined) problem ??= 'folding before any header';
      else headers.values[last] = joined(before, line.trim());
      continue;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? '' : line.slice(0, colon).trimEnd();
    if (!isToken(name)) {
      problem ??= 'malformed header field';
      continue;
    }
    const value = line.slice(colon + 1).trim();
    if (headers.names.length >= SIP_HEADER_MAX_FIELDS) return 'too many header fields';
    const canonical = canonicalName(name);
    if (canonical !== name && canonical.startsWith('x-')) headers.spell(canonical, name);
    headers.add(canonical, value);
  }
  return problem;
}

/**
 * A value and the line that continues it. Nothing is copied here, where a field may have thousands of such lines: the
 * engine puts the pieces together once, when the value is read.
 */
const joined = (before: string, more: string): string => (before === '' ? more : more === '' ? before : `${before} ${more}`);

/** Whether a NUL stands outside a quoted pair, the only place where the grammar allows one (RFC 3261 §25.1). */
function hasBareNul(line: string): boolean {
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const c = line.charCodeAt(i);
    if (c === 0) return true;
    if (c === 0x22) quoted = !quoted;
    else if (c === 0x5c && quoted) i++;
  }
  return false;
}

const ONCE = ['from', 'to', 'call-id', 'cseq', 'max-forwards', 'content-type'];

function checkHeaders(headers: Headers): string | undefined {
  for (const name of ONCE) if (headers.count(name) > 1) return `more than one ${name}`;
  const via = headers.get('via');
  if (via === undefined || parseVia(via) === undefined) return 'bad Via';
  const callId = headers.get('call-id');
  if (callId === undefined || callId === '' || /\s/.test(callId)) return 'bad Call-ID';
  const from = headers.get('from');
  const to = headers.get('to');
  if (from === undefined || parseNameAddress(from) === undefined) return 'bad From';
  if (to === undefined || parseNameAddress(to) === undefined) return 'bad To';
  if (parseCSeq(headers.get('cseq')) === undefined) return 'bad CSeq';
  const hops = headers.get('max-forwards');
  if (hops !== undefined && parseDecimal(hops, 255) === undefined) return 'bad Max-Forwards';
  return undefined;
}

function request(startLine: string, headers: Headers, body: Uint8Array, malformed: string | undefined): Parsed {
  const trimmed = startLine.trimEnd();
  const space = trimmed.indexOf(' ');
  const last = trimmed.lastIndexOf(' ');
  const method = startLine.slice(0, Math.max(0, space));
  if (!isToken(method) || last <= space) return drop('not SIP');
  const uri = trimmed.slice(space + 1, last);
  const version = trimmed.slice(last + 1);
  const message: SipRequest = { kind: 'request', method, uri, headers, body };
  if (!/^SIP\/[0-9]+\.[0-9]+$/i.test(version)) return drop('not SIP');
  const refuse = (status: number, why: string): Parsed =>
    method === 'ACK' || !headers.has('via') ? drop(why) : { ok: false, why, refuse: { status, request: message } };
  if (version.toUpperCase() !== VERSION) return refuse(505, 'version');
  if (malformed !== undefined) return refuse(400, malformed);
  if (trimmed !== startLine) return refuse(400, 'white space after the start line');
  if (uri === '' || /[\s<>"]/.test(uri)) return refuse(400, 'malformed Request-URI');
  if (parseCSeq(headers.get('cseq'))?.method !== method) return refuse(400, 'CSeq of another method');
  return { ok: true, message };
}

function response(startLine: string, headers: Headers, body: Uint8Array, malformed: string | undefined): Parsed {
  const parts = /^SIP\/2\.0 ([1-6][0-9]{2})(?: (.*))?$/i.exec(startLine);
  const status = parts?.[1];
  if (status === undefined) return drop('malformed status line');
  if (malformed !== undefined) return drop(malformed);
  return { ok: true, message: { kind: 'response', status: Number(status), reason: parts?.[2] ?? '', headers, body } };
}
