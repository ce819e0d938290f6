/**
 * The sessions of the operator's console: a token, given once, becomes a cookie that is good for 12 hours. A cookie is
 * signed under the token that opened it, so a session needs no row, survives a restart, and ends when the token
 * changes. One that is closed before its time has a row until then, which every node sees.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ConsoleCookieStore } from '../../database/console-cookies.ts';
import { CONSOLE_LOGIN_MS, CONSOLE_LOGINS_MAX, CONSOLE_SESSION_MS } from '../../limits.ts';

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
const COOKIE = /^([or])\.([0-9a-z]{1,12})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/;

export class ConsoleSessions {
  readonly #keys: ReadonlyMap<Role, Uint8Array>;
  readonly #cookies: ConsoleCookieStore;
  readonly #now: () => number;
  /** Digests of one-time logins, with the time at which each ends. */
  readonly #logins = new Map<string, number>();

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

  /** Opens the operator's session for a one-time login, once. */
  openByLogin(login: string): ConsoleSession | undefined {
    const name = digest(login).toString('base64url');
    const until = this.#logins.get(name);
    this.#logins.delete(name);
    return until !== undefined && until > this.#now() ? this.#made('operator') : undefined;
  }

  /** A login that opens one session within five minutes. Of more than CONSOLE_LOGINS_MAX the oldest is forgotten. */
  newLogin(): { readonly login: string; readonly expiresAt: number } {
    const login = randomBytes(32).toString('base64url');
    const expiresAt = this.#now() + CONSOLE_LOGIN_MS;
    const oldest = this.#logins.keys().next();
    if (this.#logins.size >= CONSOLE_LOGINS_MAX && oldest.done !== true) this.#logins.delete(oldest.value);
    this.#logins.set(digest(login).toString('base64url'), expiresAt);
    return { login, expiresAt };
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
    // The texts are compared: four texts of 43 characters decode to the same 32 bytes, and the closing names one text.
    const signed = signature(key, 'session', `${mark}.${expires}.${nonce}`).toString('base64url');
    if (!timingSafeEqual(Buffer.from(mac), Buffer.from(signed))) return undefined;
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
const csrfOf = (key: Uint8Array, nonce: string): string => signature(key, 'csrf', nonce).toString('base64url');
