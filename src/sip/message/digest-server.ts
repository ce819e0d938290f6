/**
 * Digest access authentication as a server (RFC 3261 §22.4, RFC 7616, RFC 8760): SHA-256 and MD5, qop=auth. A nonce is
 * the time, a random part, and a code over both and the asking address, so that a challenge costs no memory; the nonces
 * of good answers are remembered while they live, so that no answer is good twice.
 */
import { SIP_NONCE_LIFE_MS, SIP_NONCES_MAX } from '../../limits.ts';
import { type Hash, parseAuthParameters } from './digest.ts';
import type { SipRequest } from './message.ts';
import { parseUri } from './uri.ts';

/** `H(username:realm:password)` for both hashes, in lower-case hexadecimal. The password itself is never kept. */
export interface DigestSecrets {
  readonly md5: string;
  readonly sha256: string;
}

/** The outcome of a check: `stale` means that the answer is right and its nonce too old, or used before. */
export type DigestVerdict = 'right' | 'stale' | 'wrong' | 'missing';

/**
 * User agents that fail at a second challenge, or at any that is not MD5: libre before 2.0, which is in baresip 1 and
 * in firmware made of it.
 */
const MD5_ONLY = /^(?:baresip v[01]\.|.*\blibre[ /]v?[01]\.)/;

const HASHES = { 'SHA-256': 'sha256', MD5: 'md5' } as const;
type HashName = keyof typeof HASHES;

/** The secrets of a user in a realm. */
export const digestSecrets = (hash: Hash, username: string, realm: string, password: string): DigestSecrets => ({
  md5: hash('MD5', `${username}:${realm}:${password}`),
  sha256: hash('SHA-256', `${username}:${realm}:${password}`),
});

export class DigestServer {
  readonly #realm: string;
  readonly #hash: Hash;
  readonly #code: (text: string) => string;
  readonly #token: () => string;
  readonly #order: readonly HashName[];
  /** The highest count of each nonce that was answered rightly, the one answered longest ago first. */
  readonly #used = new Map<string, number>();
  /** The latest time at which a nonce was issued that was given up: one of before may have been answered. */
  #forgottenTo = -Infinity;

  /**
   * `code` makes a message authentication code of a text, under a key of this process; `token` is random. Challenges
   * come in the order of `order`, the preferred one first (RFC 8760 §2.3).
   */
  constructor(
    realm: string,
    hash: Hash,
    code: (text: string) => string,
    token: () => string,
    order: readonly HashName[] = ['SHA-256', 'MD5'],
  ) {
    this.#order = order;
    this.#realm = realm;
    this.#hash = hash;
    this.#code = code;
    this.#token = token;
  }

  /** The challenges for an address. Time in milliseconds. `userAgent` is that of the request. */
  challenges(host: string, stale: boolean, now: number, userAgent = ''): readonly (readonly [string, string])[] {
    const at = Math.floor(now / 1000).toString(36);
    const random = this.#token().slice(0, 16);
    const nonce = `${at}.${random}.${this.#code(`${at}.${random} ${host}`)}`;
    const names = MD5_ONLY.test(userAgent) ? ['MD5'] : this.#order;
    return names.map((name) => [
      'www-authenticate',
      `Digest realm="${this.#realm}", nonce="${nonce}", algorithm=${name}, qop="auth"${stale ? ', stale=true' : ''}`,
    ]);
  }

  /**
   * Checks the Authorization of a request from `host` against the secrets of the user that it must be from. The first
   * answer to a challenge of ours decides, so that a request with hundreds of them guesses one password.
   */
  check(request: SipRequest, username: string, secrets: DigestSecrets, host: string, now: number): DigestVerdict {
    const answers = this.#answers(request);
    if (answers.length === 0) return 'missing';
    for (const answer of answers) {
      if (answer.get('username') !== username || !isForSameUser(answer.get('uri') ?? '', request.uri)) continue;
      const name = (answer.get('algorithm') ?? 'MD5').toUpperCase();
      if (name !== 'MD5' && name !== 'SHA-256') continue;
      const nonce = answer.get('nonce') ?? '';
      const issuedAt = this.#issuedAt(nonce, host);
      if (issuedAt === undefined) continue;
      if (!this.#isRight(answer, name, secrets[HASHES[name]], request)) return 'wrong';
      return now - issuedAt > SIP_NONCE_LIFE_MS || !this.#isFresh(nonce, answer) ? 'stale' : 'right';
    }
    // An answer to a challenge of another process is no guess: it is asked anew.
    return answers.some((answer) => this.#issuedAt(answer.get('nonce') ?? '', host) !== undefined) ? 'wrong' : 'stale';
  }

  /** The parameters of each Authorization for our realm. */
  #answers(request: SipRequest): readonly ReadonlyMap<string, string>[] {
    return request.headers.fields('authorization').flatMap((value) => {
      const rest = /^digest\s+(.*)$/is.exec(value)?.[1];
      const parameters = rest === undefined ? undefined : parseAuthParameters(rest);
      return parameters?.get('realm') === this.#realm ? [parameters] : [];
    });
  }

  /** When a nonce was issued to an address, in milliseconds. Undefined when it is none of ours for it. */
  #issuedAt(nonce: string, host: string): number | undefined {
    const [at = '', random = '', code] = nonce.split('.');
    if (!/^[0-9a-z]{1,10}$/.test(at) || code !== this.#code(`${at}.${random} ${host}`)) return undefined;
    return timeOf(nonce);
  }

  /** The `response` of RFC 7616 §3.4.1; without qop that of RFC 2069, for old devices. */
  #isRight(answer: ReadonlyMap<string, string>, name: HashName, secret: string, request: SipRequest): boolean {
    const h = (text: string) => this.#hash(name, text);
    const nonce = answer.get('nonce') ?? '';
    const a2 = h(`${request.method}:${answer.get('uri') ?? ''}`);
    const qop = answer.get('qop');
    if (qop !== undefined && qop.toLowerCase() !== 'auth') return false;
    const middle = qop === undefined ? nonce : `${nonce}:${answer.get('nc') ?? ''}:${answer.get('cnonce') ?? ''}:auth`;
    return h(`${secret}:${middle}:${a2}`) === answer.get('response')?.toLowerCase();
  }

  /**
   * Whether the count is higher than any before it under this nonce. Without qop a nonce is good once: the response
   * covers no count then, so that anybody may have added one.
   */
  #isFresh(nonce: string, answer: ReadonlyMap<string, string>): boolean {
    const text = (answer.has('qop') ? answer.get('nc') : undefined) ?? '1';
    const count = /^[0-9a-f]{1,8}$/i.test(text) ? Number.parseInt(text, 16) : 0;
    const before = this.#used.get(nonce) ?? (timeOf(nonce) > this.#forgottenTo ? 0 : Infinity);
    if (count <= before) return false;
    this.#used.delete(nonce);
    this.#used.set(nonce, count);
    const [oldest] = this.#used.keys();
    if (this.#used.size > SIP_NONCES_MAX && oldest !== undefined) {
      this.#used.delete(oldest);
      this.#forgottenTo = Math.max(this.#forgottenTo, timeOf(oldest));
    }
    return true;
  }
}

/** When a nonce of ours was issued, in milliseconds. */
const timeOf = (nonce: string): number => Number.parseInt(nonce, 36) * 1000;

/**
 * Whether the `uri` of an answer may stand for the Request-URI. A proxy may have put our address in the place of the
 * domain that the device knows, which is no failure (RFC 3261 §22.4, item 5), and no other number in the place of the
 * dialled one.
 */
function isForSameUser(uri: string, requestUri: string): boolean {
  if (uri === requestUri) return true;
  const [asked, came] = [parseUri(uri), parseUri(requestUri)];
  return asked !== undefined && came !== undefined && asked.user === came.user;
}
