/** The text of a SIP message as it may be kept: without credentials, keys and what a person keyed in. */

/** How much of a message is kept: start line and header fields, the body too, or nothing. */
export type TraceLevel = 'headers' | 'full' | 'off';

const SECRET_FIELDS = [
  'authorization',
  'proxy-authorization',
  'authentication-info',
  'proxy-authentication-info',
  // It proves that a call comes from this process itself (carrier/trunk/loopback.ts).
  'x-sidetone-loopback',
];
/** Lines of a session description that hold keys and passwords (RFC 4568, RFC 8839). */
const SECRET_LINES = /^(a=(?:crypto|ice-pwd|key-mgmt)|k=).*$/gm;
/** A URI, or several where only commas are between them. */
const URIS = /\bsips?:[^\s<>"]+/gi;
/** The requests whose bodies are not kept, by their start line or, as of the answers to them, by their CSeq. */
const SECRET_BODIES = { line: /^(?:INFO|MESSAGE) /, cseq: /\s(?:INFO|MESSAGE)$/ };

/** The parts of a message that place it in a call, without parsing it as a whole. */
export interface MessageFacts {
  readonly firstLine: string;
  readonly isRequest: boolean;
  /** The text, decoded as the parser decodes it. */
  readonly callId: string;
  readonly fromTag: string;
  /** Number and method. */
  readonly cseq: string;
}

/**
 * A message as the parser reads it: without the line ends before it (RFC 3261 §7.5), and with each header field on one
 * line (§7.3.1). What follows reads it so.
 */
export function plainText(text: string): string {
  const message = text.startsWith('\r\n') ? text.replace(/^(?:\r\n)+/, '') : text;
  const end = message.indexOf('\r\n\r\n');
  const head = end < 0 ? message : message.slice(0, end);
  return /\r\n[ \t]/.test(head) ? head.replace(/\r\n[ \t]+/g, ' ') + message.slice(head.length) : message;
}

/**
 * The text without the passwords of its URIs (RFC 3261 §19.1.1). One is between the second colon and the last `@`, as
 * the parser reads it.
 */
export const withoutPasswords = (head: string): string =>
  head.replace(URIS, (uri) => {
    const colon = uri.indexOf(':', uri.indexOf(':') + 1);
    const at = uri.lastIndexOf('@');
    return colon < 0 || at < colon ? uri : `${uri.slice(0, colon)}:(not kept)${uri.slice(at)}`;
  });

/**
 * Reads the facts of a message, or undefined when it has no Call-ID. `text` has one character for each byte. The facts
 * are such as may be kept.
 */
export function messageFacts(text: string): MessageFacts | undefined {
  const end = text.indexOf('\r\n');
  const callId = field(text, CALL_ID);
  if (end < 0 || callId === '') return undefined;
  return {
    firstLine: withoutPasswords(text.slice(0, end)),
    isRequest: !/^SIP\//i.test(text),
    callId: decoded(callId),
    fromTag: /;\s*tag\s*=\s*([^;,\s]+)/i.exec(field(text, FROM))?.[1] ?? '',
    cseq: field(text, CSEQ),
  };
}

const CALL_ID = /\r\n(?:call-id|i)[ \t]*:[ \t]*([^\r\n]*)/i;
const FROM = /\r\n(?:from|f)[ \t]*:[ \t]*([^\r\n]*)/i;
const CSEQ = /\r\ncseq[ \t]*:[ \t]*([^\r\n]*)/i;

const field = (text: string, pattern: RegExp): string => pattern.exec(text)?.[1]?.trim() ?? '';

/** The text of octets in UTF-8, which are given as a character each (RFC 3261 §25.1). */
const decoded = (octets: string): string =>
  /[\x80-\xff]/.test(octets) ? new TextDecoder().decode(Uint8Array.from(octets, (octet) => octet.charCodeAt(0))) : octets;

/**
 * Makes what gives the text of a message that may be kept, at most `maxChars` long, from its text and its CSeq.
 * `hidden` are names of header fields, in any case, whose values are not kept. The body of an INFO or MESSAGE is never
 * kept, because it may hold digits or a person's words.
 */
export function redactor(level: TraceLevel, hidden: readonly string[], maxChars: number): (text: string, cseq: string) => string {
  if (level === 'off') return () => '';
  const secret = fieldsOf([...SECRET_FIELDS, ...hidden]);
  return (text, cseq) => {
    const split = text.indexOf('\r\n\r\n');
    const head = split < 0 ? text : text.slice(0, split + 2);
    const body = split < 0 ? '' : text.slice(split + 4);
    const kept = withoutPasswords(head.replace(secret, '$1: (not kept)'));
    if (level === 'headers' || body === '') return kept.slice(0, maxChars);
    const isSecret = SECRET_BODIES.line.test(text) || SECRET_BODIES.cseq.test(cseq);
    const shown = isSecret ? '(not kept)' : body.replace(SECRET_LINES, '$1 (not kept)');
    return `${kept}\r\n${shown}`.slice(0, maxChars);
  };
}

/** Matches the header fields of these names, each with the lines that continue it. */
function fieldsOf(names: readonly string[]): RegExp {
  const any = names.map((name) => name.replace(/[^\w]/g, '\\$&')).join('|');
  return new RegExp(`^(${any})[ \\t]*:[^\\r\\n]*(?:\\r\\n[ \\t][^\\r\\n]*)*`, 'gim');
}
