/** The operator API, asked with the session's cookie. */
import type { Session } from './types.ts';

/** An answer that is a refusal, with the platform's own words. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

let csrf = '';
let onLoggedOut: () => void = () => {};

/** `loggedOut` is called when an answer says that the session is over. */
export function watchSession(loggedOut: () => void): void {
  onLoggedOut = loggedOut;
}

/** Asks the operator API. `path` begins after `/operator/v1`. Throws Refused. */
export async function ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await send(method, `/operator/v1${path}`, body, signal);
  if (response.status === 401) onLoggedOut();
  return await read<T>(response);
}

const KEY = 'sidetone.session-until';

/** The session that the cookie is, or undefined where there is none. No script sees the cookie, so its end is noted. */
export async function currentSession(): Promise<Session | undefined> {
  if (!(Date.parse(localStorage.getItem(KEY) ?? '') > Date.now())) return undefined;
  const response = await send('GET', '/console/session');
  return response.status === 401 ? undefined : opened(await read<Session>(response));
}

/** Opens a session by a token or by a one-time login. Throws Refused. */
export async function logIn(credentials: { readonly token: string } | { readonly login: string }): Promise<Session> {
  return opened(await read<Session>(await send('POST', '/console/session', credentials)));
}

export async function logOut(): Promise<void> {
  await read(await send('DELETE', '/console/session'));
  localStorage.removeItem(KEY);
}

function opened(session: Session): Session {
  csrf = session.csrf;
  localStorage.setItem(KEY, session.expires_at);
  return session;
}

async function send(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers = new Headers();
  if (method !== 'GET') headers.set('x-csrf-token', csrf);
  if (body !== undefined) headers.set('content-type', 'application/json');
  const content = body === undefined ? null : JSON.stringify(body);
  try {
    return await fetch(url, { method, headers, body: content, signal: signal ?? null, credentials: 'same-origin' });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new Refused(0, 'The platform does not answer. It may be restarting.');
  }
}

async function read<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (response.ok) return JSON.parse(text === '' ? '{}' : text);
  throw new Refused(response.status, messageOf(text) ?? `The platform answered ${response.status}.`);
}

function messageOf(text: string): string | undefined {
  try {
    const { message } = JSON.parse(text);
    return typeof message === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}

/** A query string of the values that are not empty. */
export function queryOf(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined && value !== '') query.set(name, String(value));
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}
