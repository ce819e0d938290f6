/**
 * The capabilities of this user agent, and the header fields that tell them: Allow, Supported, Require. Also Reason.
 */
import type { Peer } from '../flow.ts';
import type { Headers } from './message.ts';

/** The methods that we answer (RFC 3261 §20.5). */
export const ALLOWED = 'INVITE, ACK, CANCEL, BYE, OPTIONS, PRACK, UPDATE, INFO, REFER, NOTIFY';
const ALLOWED_METHODS = new Set(ALLOWED.split(', '));
/** Methods that exist but are not for us. They are answered 405, unknown ones 501 (RFC 3261 §8.2.1, §21.5.2). */
const FOREIGN_METHODS = new Set(['REGISTER', 'SUBSCRIBE', 'MESSAGE', 'PUBLISH']);

/** The option tags that we understand (RFC 3261 §20.37). */
export const SUPPORTED = '100rel, timer';
const SUPPORTED_TAGS = new Set(SUPPORTED.split(', '));

/** The value of Supported towards a peer. */
export const supportedBy = (peer: Peer): string => (peer.profile?.sessionTimer === false ? '100rel' : SUPPORTED);

/** The status that refuses a method. Undefined for a method that we answer. */
export const methodRefusal = (method: string): 405 | 501 | undefined =>
  ALLOWED_METHODS.has(method) ? undefined : FOREIGN_METHODS.has(method) ? 405 : 501;

/** The option tags that the far end requires and we do not know (RFC 3261 §8.2.2.3). */
export const unsupportedTags = (headers: Headers, name: 'require' | 'proxy-require' = 'require'): string[] =>
  headers.has(name) ? headers.list(name).filter((tag) => !SUPPORTED_TAGS.has(tag.toLowerCase())) : [];

/** Whether an option tag stands in `require` or `supported`. */
export const hasTag = (headers: Headers, name: 'require' | 'supported', tag: string): boolean =>
  headers.has(name) && headers.list(name).some((each) => each.toLowerCase() === tag);

/** Whether the far end's Allow names the method. */
export const allows = (headers: Headers, method: string): boolean =>
  headers.has('allow') && headers.list('allow').includes(method);

/** The text of the first Reason header that has one (RFC 3326), without its quotes. */
function reasonText(headers: Headers): string | undefined {
  for (const value of headers.has('reason') ? headers.list('reason') : []) {
    const text = /;\s*text\s*=\s*(?:"((?:[^"\\]|\\.){1,256})"|([^;\s"]{1,256}))/i.exec(value);
    const found = text?.[1]?.replace(/\\(.)/g, '$1') ?? text?.[2];
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The Q.850 cause of a Reason header (RFC 3326), 1 to 127. */
function q850Cause(headers: Headers): number | undefined {
  if (!headers.has('reason')) return undefined;
  for (const value of headers.list('reason')) {
    const parts = value.split(';');
    if (parts[0]?.trim().toLowerCase() !== 'q.850') continue;
    for (const part of parts.slice(1)) {
      const cause = /^\s*cause\s*=\s*([0-9]{1,3})\s*$/i.exec(part)?.[1];
      if (cause !== undefined && Number(cause) > 0 && Number(cause) < 128) return Number(cause);
    }
  }
  return undefined;
}

/** The cause and the text of Reason, for the end of a call. */
export function causeOf(headers: Headers): { readonly q850: number | undefined; readonly reason?: string } {
  const reason = reasonText(headers);
  return { q850: q850Cause(headers), ...(reason === undefined ? {} : { reason }) };
}

/** The media type of the body in lower case, without parameters; `""` when there is none. */
export const contentType = (headers: Headers): string =>
  headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
