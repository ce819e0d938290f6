/**
 * Digest access authentication as a client (RFC 3261 §22, RFC 7616, RFC 8760): MD5, SHA-256 and SHA-512-256, their
 * -sess forms, qop=auth, and auth-int where nothing else is offered. Hashing is given from outside; the nonce count
 * lives here.
 */
import { isToken, type SipResponse } from './message.ts';
import { quote, unquote } from './uri.ts';

type HashName = 'MD5' | 'SHA-256' | 'SHA-512-256';

/** The hash of bytes, or of the UTF-8 form of a text, in lower-case hexadecimal. */
export type Hash = (name: HashName, of: string | Uint8Array) => string;

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

export interface Challenge {
  /** 401 asks in WWW-Authenticate, 407 in Proxy-Authenticate (§22.2, §22.3). */
  readonly header: 'authorization' | 'proxy-authorization';
  readonly realm: string;
  readonly nonce: string;
  readonly opaque: string | undefined;
  readonly hash: HashName;
  readonly session: boolean;
  /** The algorithm as it came, which the answer repeats. */
  readonly algorithm: string | undefined;
  /** The quality of protection that we answer with. Undefined where none is offered, as in RFC 2069. */
  readonly qop: 'auth' | 'auth-int' | undefined;
  readonly stale: boolean;
}

const STRENGTH: Readonly<Record<HashName, number>> = { MD5: 1, 'SHA-256': 2, 'SHA-512-256': 3 };

/** `name=value` pairs of an auth header after its scheme; undefined when malformed. */
export function parseAuthParameters(text: string): ReadonlyMap<string, string> | undefined {
  const found = new Map<string, string>();
  let at = 0;
  while (at < text.length) {
    while (at < text.length && (text[at] === ',' || text.charCodeAt(at) <= 0x20)) at++;
    if (at >= text.length) break;
    const equals = text.indexOf('=', at);
    if (equals < 0) return undefined;
    const name = text.slice(at, equals).trim().toLowerCase();
    if (!isToken(name)) return undefined;
    at = equals + 1;
    while (text.charCodeAt(at) === 0x20) at++;
    let end = at;
    if (text.charCodeAt(at) === 0x22) {
      end++;
      while (end < text.length && text.charCodeAt(end) !== 0x22) end += text.charCodeAt(end) === 0x5c ? 2 : 1;
      if (end >= text.length) return undefined;
      end++;
    } else while (end < text.length && text[end] !== ',') end++;
    if (!found.has(name)) found.set(name, unquote(text.slice(at, end).trim()));
    at = end;
  }
  return found;
}

function parseChallenge(value: string, header: Challenge['header']): Challenge | undefined {
  const space = value.search(/\s/);
  if (space < 0 || value.slice(0, space).toLowerCase() !== 'digest') return undefined;
  const parameters = parseAuthParameters(value.slice(space));
  const realm = parameters?.get('realm');
  const nonce = parameters?.get('nonce');
  if (parameters === undefined || realm === undefined || nonce === undefined) return undefined;
  const algorithm = parameters.get('algorithm');
  const named = (algorithm ?? 'MD5').toUpperCase();
  const session = named.endsWith('-SESS');
  const hash = session ? named.slice(0, -5) : named;
  if (hash !== 'MD5' && hash !== 'SHA-256' && hash !== 'SHA-512-256') return undefined;
  const offered = parameters.get('qop');
  const offers = offered?.split(',').map((each) => each.trim().toLowerCase()) ?? [];
  // A proxy on the way may change the body, so its integrity is proved only to a server that insists.
  const qop = offers.includes('auth') ? 'auth' : offers.includes('auth-int') ? 'auth-int' : undefined;
  if (offered !== undefined && qop === undefined) return undefined;
  return {
    header,
    realm,
    nonce,
    opaque: parameters.get('opaque'),
    hash,
    session,
    algorithm,
    qop,
    stale: parameters.get('stale')?.toLowerCase() === 'true',
  };
}

/** The strongest challenge of a 401 or 407 that we can answer (RFC 8760 §2.4), one for each realm. */
export function challengesOf(response: SipResponse): readonly Challenge[] {
  const [asking, header] =
    response.status === 401
      ? (['www-authenticate', 'authorization'] as const)
      : (['proxy-authenticate', 'proxy-authorization'] as const);
  const best = new Map<string, Challenge>();
  // `list` would not do, as a comma separates parameters as well as challenges here (§20.7).
  for (const value of response.headers.fields(asking)) {
    const challenge = parseChallenge(value, header);
    if (challenge === undefined) continue;
    const rival = best.get(challenge.realm);
    if (rival === undefined || STRENGTH[challenge.hash] > STRENGTH[rival.hash]) best.set(challenge.realm, challenge);
  }
  return [...best.values()];
}

interface DigestInput {
  readonly method: string;
  readonly uri: string;
  readonly nonceCount: number;
  readonly cnonce: string;
  readonly body: Uint8Array;
}

/** The `response` value of RFC 7616 §3.4.1. */
export function digestResponse(hash: Hash, challenge: Challenge, credentials: Credentials, input: DigestInput): string {
  const h = (text: string) => hash(challenge.hash, text);
  const { realm, nonce } = challenge;
  const secret = h(`${credentials.username}:${realm}:${credentials.password}`);
  const a1 = challenge.session ? h(`${secret}:${nonce}:${input.cnonce}`) : secret;
  const proved = challenge.qop === 'auth-int' ? `:${hash(challenge.hash, input.body)}` : '';
  const a2 = h(`${input.method}:${input.uri}${proved}`);
  if (challenge.qop === undefined) return h(`${a1}:${nonce}:${a2}`);
  return h(`${a1}:${nonce}:${hex8(input.nonceCount)}:${input.cnonce}:${challenge.qop}:${a2}`);
}

/** The value of Authorization or Proxy-Authorization. */
export function authorization(hash: Hash, challenge: Challenge, credentials: Credentials, input: DigestInput): string {
  let value = `Digest username=${quote(credentials.username)}, realm=${quote(challenge.realm)}, nonce=${quote(challenge.nonce)}, uri=${quote(input.uri)}`;
  value += `, response="${digestResponse(hash, challenge, credentials, input)}"`;
  if (challenge.algorithm !== undefined) value += `, algorithm=${challenge.algorithm}`;
  if (challenge.qop !== undefined) value += `, cnonce="${input.cnonce}", qop=${challenge.qop}, nc=${hex8(input.nonceCount)}`;
  else if (challenge.session) value += `, cnonce="${input.cnonce}"`;
  if (challenge.opaque !== undefined) value += `, opaque=${quote(challenge.opaque)}`;
  return value;
}

const hex8 = (count: number): string => count.toString(16).padStart(8, '0');
