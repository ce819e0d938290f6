/**
 * The console under `/console`: its files, which `bin/prepare.mjs` bundles into `build/console`, and its sessions. The
 * page itself has no data; all of it comes from the operator API, which takes the session's cookie.
 *
 *   POST /console/session {token} or {login} → 200 {role, csrf, expires_at} · GET the same · DELETE → 204
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { timestamp } from '../../clock.ts';
import { installed } from '../../installation.ts';
import { CONSOLE_LOGIN_BODY_MAX_BYTES } from '../../limits.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { newTraceparent } from '../../tracing/tracing.ts';
import { isJsonType } from '../admission/media-type.ts';
import { boundedBody } from '../bounded-body.ts';
import type { HttpPeer } from '../pipelining.ts';
import { JSON_HEADERS, problemResponse } from '../response.ts';
import { inBody, shape } from '../shape/shape.ts';
import { type, typesLoaded } from '../shape/type.ts';
import { WrongTokens } from '../wrong-tokens.ts';
import { type ConsoleSession, type ConsoleSessions, setCookie } from './console-sessions.ts';

/** Everything below this is the console's. */
export const CONSOLE_PATHS = ['/console', '/console/*'] as const;

const FILES = installed('build/console');
const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};
const PAGE = 'index.html';
/** Stands in the page for the nonce of an answer (console/index.html). */
const NONCE_MARK = 'nonce-of-the-answer';
/**
 * The page loads nothing from elsewhere, and no script that is not a file of ours. Its waveforms bring a `<style>` of
 * their own, which has the nonce of the answer.
 */
const policy = (nonce: string): string =>
  `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; connect-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
const FILE_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  vary: 'accept-encoding',
};

export interface ConsoleDoorOptions {
  readonly sessions: ConsoleSessions;
  /** Whether the platform is reached by https, so that the cookie is never sent without. */
  readonly isSecure: boolean;
  readonly peer: ((request: Request) => HttpPeer | undefined) | undefined;
  now(): number;
  /** The folder of its files; that of the build unless told. */
  readonly files?: string;
}

const credentials = shape(() =>
  type({ '+': 'reject', token: '1 <= string <= 512' }).or({ '+': 'reject', login: '1 <= string <= 512' }),
);

export class ConsoleDoor {
  readonly #options: ConsoleDoorOptions;
  readonly #wrong = new WrongTokens();
  /** Readers share a Blob, where each would have a copy of bytes until it has taken them. */
  readonly #files = new Map<string, { readonly plain: Blob; readonly gzip: Blob; readonly type: string }>();

  constructor(options: ConsoleDoorOptions) {
    this.#options = options;
  }

  async answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/console/session') return await this.#session(request);
    if (request.method !== 'GET' && request.method !== 'HEAD') return refused(problems.methodNotAllowed('GET, HEAD'));
    return await this.#file(pathname, takesGzip(request.headers.get('accept-encoding')));
  }

  async #session(request: Request): Promise<Response> {
    const { sessions, isSecure } = this.#options;
    const known = await sessions.find(request.headers.get('cookie'));
    switch (request.method) {
      case 'GET':
        return known === undefined ? refused(problems.invalidOperatorToken()) : told(known);
      case 'POST':
        return await this.#logIn(request);
      case 'DELETE': {
        if (known !== undefined && request.headers.get('x-csrf-token') !== known.csrf)
          return refused(problems.forbidden('X-CSRF-Token: must be the one of the session'));
        if (known !== undefined) await sessions.close(known);
        return new Response(null, {
          status: 204,
          headers: { 'set-cookie': setCookie(undefined, isSecure), traceparent: newTraceparent() },
        });
      }
      default:
        return refused(problems.methodNotAllowed('DELETE, GET, POST'));
    }
  }

  async #logIn(request: Request): Promise<Response> {
    const { sessions, isSecure, peer, now } = this.#options;
    const raw = await boundedBody(request, CONSOLE_LOGIN_BODY_MAX_BYTES);
    if (isProblem(raw)) return refused(raw);
    // A form of another site can send no JSON, and SameSite keeps its cookies away.
    if (!isJsonType(request.headers.get('content-type') ?? '')) return refused(problems.unsupportedMediaType());
    const body = parsed(raw);
    await typesLoaded();
    const checked = inBody(credentials, body, 400);
    if ('problem' in checked) return refused(checked.problem);
    const opened =
      'token' in checked.value ? sessions.open(checked.value.token) : await sessions.openByLogin(checked.value.login);
    if (opened === undefined) {
      const address = peer?.(request)?.address;
      const waitSec = address === undefined ? undefined : this.#wrong.count(address, now());
      return refused(waitSec === undefined ? problems.invalidOperatorToken() : problems.rateLimited(waitSec));
    }
    return told(opened, { 'set-cookie': setCookie(opened, isSecure) });
  }

  /** A bundled file, or the page itself for every path of its own routing. */
  async #file(pathname: string, zipped: boolean): Promise<Response> {
    const asked = pathname.replace(/^\/console\/?/, '');
    const isAsset = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.(js|css|svg)$/.test(asked);
    const file = this.#read(isAsset ? asked : PAGE);
    if (file === undefined) return isAsset ? refused(problems.noRoute()) : notBuilt();
    const headers = { ...FILE_HEADERS, traceparent: newTraceparent(), 'content-type': file.type };
    if (!isAsset) return withNonce(await file.plain.text(), { ...headers, 'cache-control': 'no-cache' });
    return new Response(zipped ? file.gzip : file.plain, {
      headers: {
        ...headers,
        'cache-control': 'public, max-age=31536000, immutable',
        ...(zipped ? { 'content-encoding': 'gzip' } : {}),
      },
    });
  }

  /** Files are read and compressed once: there are a few, and a new build is a new start. */
  #read(name: string) {
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    const path = join(this.#options.files ?? FILES, name);
    if (!existsSync(path) || !statSync(path).isFile()) return undefined;
    const plain = readFileSync(path);
    const file = {
      plain: new Blob([plain]),
      gzip: new Blob([gzipSync(plain)]),
      type: TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
    };
    this.#files.set(name, file);
    return file;
  }
}

/** Whether an `Accept-Encoding` takes gzip (RFC 9110 §12.5.3): by its name, with a weight that is not 0. */
function takesGzip(field: string | null): boolean {
  const named = (field ?? '')
    .toLowerCase()
    .split(',')
    .find((each) => /^\s*(x-)?gzip\s*(;|$)/.test(each));
  return named !== undefined && !/;\s*q\s*=\s*0(\.0*)?\s*(;|$)/.test(named);
}

function parsed(raw: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(raw));
  } catch {
    return undefined;
  }
}

const refused = (problem: Problem): Response => problemResponse(problem, newTraceparent());

/** The page with a nonce of its own (CSP 3 §7.1): 128 random bits an answer. */
function withNonce(page: string, headers: Readonly<Record<string, string>>): Response {
  const nonce = randomBytes(16).toString('base64url');
  return new Response(page.replace(NONCE_MARK, nonce), { headers: { ...headers, 'content-security-policy': policy(nonce) } });
}

function notBuilt(): Response {
  const headers = { ...FILE_HEADERS, traceparent: newTraceparent(), 'content-type': 'text/plain; charset=utf-8' };
  return new Response('The console is not built: run npm run build, then start again.\n', { status: 503, headers });
}

const told = ({ role, csrf, expiresAt }: ConsoleSession, more: Readonly<Record<string, string>> = {}): Response =>
  new Response(JSON.stringify({ role, csrf, expires_at: timestamp(expiresAt) }), {
    headers: { ...JSON_HEADERS, traceparent: newTraceparent(), ...more },
  });
