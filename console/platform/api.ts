/** The operator API, asked with the session's cookie. */
import { byOwnClock, noteDate } from './clock.ts';
import type { Session } from './types.ts';

/** An answer that is a refusal, with the platform's own words. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, message: string, code = '') {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let csrf = '';
let watching: SessionWatch | undefined;

/** Who is told of the session that the cookie is. */
export interface SessionWatch {
  /** An answer says that the session is over. */
  over(): void;
  /** Another tab has logged in anew, maybe with the other role. */
  renewed(session: Session): void;
}

export function watchSession(watch: SessionWatch): void {
  watching = watch;
}

/** Asks the operator API. `path` begins after `/operator/v1`. Throws Refused. */
export async function ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return jsonOf(await askText(method, path, body, signal));
}

/** The same, where the answer is a text. */
export async function askText(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<string> {
  try {
    return await read(await sendAnew(method, `/operator/v1${path}`, body, signal));
  } catch (problem) {
    if (problem instanceof Refused && (problem.status === 401 || problem.code === NO_COOKIE)) watching?.over();
    throw problem;
  }
}

/** The code of a request without the cookie, which another tab has given back: the API then looks for a token. */
const NO_COOKIE = 'invalid_authorization_header';

/** Looks whether there is a session, and tells. Without an answer of the platform nobody knows. */
export async function lookForSession(): Promise<void> {
  try {
    const session = await currentSession();
    if (session === undefined) watching?.over();
    else watching?.renewed(session);
  } catch {}
}

const KEY = 'sidetone.session-until';

/** The session that the cookie is, or undefined where there is none. No script sees the cookie, so its end is noted. */
export async function currentSession(): Promise<Session | undefined> {
  if (!(Date.parse(localStorage.getItem(KEY) ?? '') > Date.now())) return undefined;
  const response = await send('GET', '/console/session');
  return response.status === 401 ? undefined : opened(jsonOf(await read(response)));
}

/** Opens a session by a token or by a one-time login. Throws Refused. */
export async function logIn(credentials: { readonly token: string } | { readonly login: string }): Promise<Session> {
  return opened(jsonOf(await read(await send('POST', '/console/session', credentials))));
}

/** Ends the session. Throws Refused, and then it goes on. */
export async function logOut(): Promise<void> {
  await read(await sendAnew('DELETE', '/console/session'));
  localStorage.removeItem(KEY);
}

function opened(session: Session): Session {
  csrf = session.csrf;
  // It is compared with our clock when the page is opened again, before anything was answered.
  localStorage.setItem(KEY, new Date(byOwnClock(Date.parse(session.expires_at))).toISOString());
  return session;
}

/**
 * Sends a request. Where another tab has logged in anew, the CSRF token of this page is out of date: the request was
 * refused, and is sent once more with the present one.
 */
async function sendAnew(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const sent = csrf;
  const response = await send(method, url, body, signal);
  if (method === 'GET' || response.status !== 403) return response;
  // Another request of this page may have asked for it meanwhile.
  const session = csrf === sent ? await currentSession() : undefined;
  if (csrf === sent) return response;
  if (session !== undefined) watching?.renewed(session);
  return await send(method, url, body, signal);
}

async function send(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers = new Headers();
  if (method !== 'GET') headers.set('x-csrf-token', csrf);
  if (body !== undefined) headers.set('content-type', 'application/json');
  const content = body === undefined ? null : JSON.stringify(body);
  const sentAt = Date.now();
  try {
    const response = await fetch(url, { method, headers, body: content, signal: signal ?? null, credentials: 'same-origin' });
    noteDate(response.headers, sentAt);
    return response;
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new Refused(0, 'The platform does not answer. It may be restarting.');
  }
}

const jsonOf = (text: string) => JSON.parse(text === '' ? '{}' : text);

async function read(response: Response): Promise<string> {
  const text = await response.text();
  if (response.ok) return text;
  const { code, message } = problemOf(text);
  const words = message ?? `The platform answered ${response.status}.`;
  throw new Refused(response.status, words.replace('See Retry-After header.', later(response)), code);
}

/** When to try again, in words for a person, who sees no header. */
function later({ headers }: Response): string {
  const seconds = Number(headers.get('retry-after') ?? 0);
  return seconds > 1 ? `Try again in ${seconds} seconds.` : 'Try again in a moment.';
}

/** The code and the message of a refusal, as far as it has them. */
function problemOf(text: string): { readonly code?: string; readonly message?: string } {
  try {
    const { code, message } = JSON.parse(text);
    return {
      ...(typeof code === 'string' ? { code } : {}),
      ...(typeof message === 'string' ? { message } : {}),
    };
  } catch {
    return {};
  }
}

/** A query string of the values that are not empty. */
export function queryOf(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined && value !== '') query.set(name, String(value));
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}
