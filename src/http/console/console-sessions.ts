/**
 * The sessions of the operator's console: a token, given once, becomes a cookie that is good for 12 hours. A cookie is
 * signed under the token that opened it, so a session needs no row, survives a restart, and ends when the token
 * changes. One that is closed before its time has a row until then, which every node sees. A one-time login is signed
 * likewise, and has a row once it was used.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ConsoleCookieStore } from '../../database/console-cookies.ts';
import { CONSOLE_LOGIN_MS, CONSOLE_SESSION_MS } from '../../limits.ts';

/** `operator` may do everything, `reader` may only read. */
type Role = 'operator' | 'reader';

export interface ConsoleSession {
  readonly role: Role;
  /** What a request that changes something has to carry in `X-CSRF-Token`. */
  readonly csrf: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** The value of the cookie. */
  readonly cookie: string;
}

export interface ConsoleSessionsOptions {
  readonly operatorToken: string;
  readonly operatorReadToken: string | undefined;
  readonly cookies: ConsoleCookieStore;
  now(): number;
}

const ROLES: Readonly<Record<Role, string>> = { operator: 'o', reader: 'r' };
/** The second at which it ends, in base 36, a nonce and a signature, with nothing between them. */
const LOGIN = /^([0-9a-z]{1,12})([A-Za-z0-9_-]{22})([A-Za-z0-9_-]{43})$/;
const COOKIE = /^([or])\.([0-9a-z]{1,12})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/;

export class ConsoleSessions {
  readonly #keys: ReadonlyMap<Role, Uint8Array>;
  readonly #cookies: ConsoleCookieStore;
  readonly #now: () => number;

  constructor({ operatorToken, operatorReadToken, cookies, now }: ConsoleSessionsOptions) {
    this.#keys = new Map<Role, Uint8Array>([
      ['operator', digest(operatorToken)],
      ...(operatorReadToken === undefined ? [] : ([['reader', digest(operatorReadToken)]] as const)),
    ]);
    this.#cookies = cookies;
    this.#now = now;
  }

  /** Opens a session for whoever has one of the two tokens. Undefined for any other token. */
  open(token: string): ConsoleSession | undefined {
    const given = digest(token);
    for (const [role, key] of this.#keys) if (timingSafeEqual(given, key)) return this.#made(role);
    return undefined;
  }

  /** Opens the operator's session for a one-time login, once. Rejects when the database does not answer. */
  async openByLogin(login: string): Promise<ConsoleSession | undefined> {
    const [, expires = '', nonce = '', mac = ''] = LOGIN.exec(login) ?? [];
    const key = this.#keys.get('operator');
    if (key === undefined || !isSigned(key, 'login', expires + nonce, mac)) return undefined;
    const expiresAt = Number.parseInt(expires, 36) * 1000;
    return expiresAt > this.#now() && (await this.#cookies.revoke(login, expiresAt)) ? this.#made('operator') : undefined;
  }

  /** A login that opens one session within five minutes, at any node. */
  newLogin(): { readonly login: string; readonly expiresAt: number } {
    const seconds = Math.floor((this.#now() + CONSOLE_LOGIN_MS) / 1000);
    const prefix = `${seconds.toString(36)}${randomBytes(16).toString('base64url')}`;
    const key = this.#keys.get('operator');
    if (key === undefined) throw new Error('there is no operator token');
    return { login: `${prefix}${signature(key, 'login', prefix).toString('base64url')}`, expiresAt: seconds * 1000 };
  }

  /**
   * The session that a `Cookie` field names, or undefined when there is none that is valid now. Rejects when the
   * database does not answer. A cookie that we never signed costs no query.
   */
  async find(header: string | null): Promise<ConsoleSession | undefined> {
    const session = this.#signed(header);
    return session === undefined || (await this.#cookies.isRevoked(session.cookie)) ? undefined : session;
  }

  /** Ends a session before its time, at every node. Rejects when the database does not answer. */
  async close({ cookie, expiresAt }: ConsoleSession): Promise<void> {
    await this.#cookies.revoke(cookie, expiresAt);
  }

  /** The session of a cookie that a token of ours has signed and whose time is not over. */
  #signed(header: string | null): ConsoleSession | undefined {
    const cookie = header
      ?.split(';')
      .find(isSessionCookie)
      ?.trim()
      .slice(COOKIE_NAME.length + 1);
    const [, mark, expires = '', nonce = '', mac = ''] = COOKIE.exec(cookie ?? '') ?? [];
    const role: Role = mark === ROLES.operator ? 'operator' : 'reader';
    const key = this.#keys.get(role);
    if (cookie === undefined || mark === undefined || key === undefined) return undefined;
    const expiresAt = Number.parseInt(expires, 36) * 1000;
    if (!isSigned(key, 'session', `${mark}.${expires}.${nonce}`, mac)) return undefined;
    return expiresAt > this.#now() ? { role, csrf: csrfOf(key, nonce), expiresAt, cookie } : undefined;
  }

  #made(role: Role): ConsoleSession | undefined {
    const key = this.#keys.get(role);
    if (key === undefined) return undefined;
    const seconds = Math.floor((this.#now() + CONSOLE_SESSION_MS) / 1000);
    const nonce = randomBytes(16).toString('base64url');
    const prefix = `${ROLES[role]}.${seconds.toString(36)}.${nonce}`;
    const cookie = `${prefix}.${signature(key, 'session', prefix).toString('base64url')}`;
    return { role, csrf: csrfOf(key, nonce), expiresAt: seconds * 1000, cookie };
  }
}

const COOKIE_NAME = 'sidetone_console';

/** Tells whether a `Cookie` field names a session of the console, one that is over included. */
export const hasSessionCookie = (header: string): boolean => header.split(';').some(isSessionCookie);

const isSessionCookie = (pair: string): boolean => pair.trim().startsWith(`${COOKIE_NAME}=`);

/** The `Set-Cookie` of a session, or of its end. Pages of other sites never send it, and no script reads it. */
export function setCookie(session: ConsoleSession | undefined, isSecure: boolean): string {
  const age = session === undefined ? 0 : Math.floor(CONSOLE_SESSION_MS / 1000);
  return `${COOKIE_NAME}=${session?.cookie ?? ''}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
}

const digest = (text: string): Buffer => createHash('sha256').update(text, 'utf8').digest();
const signature = (key: Uint8Array, purpose: string, text: string): Buffer =>
  createHmac('sha256', key).update(`console ${purpose} ${text}`, 'utf8').digest();
/** The texts are compared: four texts of 43 characters decode to the same 32 bytes, and a row names one text. */
function isSigned(key: Uint8Array, purpose: string, text: string, mac: string): boolean {
  const given = Buffer.from(mac);
  const signed = Buffer.from(signature(key, purpose, text).toString('base64url'));
  return given.length === signed.length && timingSafeEqual(given, signed);
}
const csrfOf = (key: Uint8Array, nonce: string): string => signature(key, 'csrf', nonce).toString('base64url');
