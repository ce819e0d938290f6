/** The console's sessions: a token becomes a cookie, which stands for it at the operator API. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { ConsoleDoor } from '../../src/http/console/console-door.ts';
import { ConsoleSessions } from '../../src/http/console/console-sessions.ts';
import { OPERATOR_TOKEN } from '../support/http-deps.ts';
import { openPlatform, type Platform } from './platform.ts';

const READ_TOKEN = 'reading-token-of-the-tests';
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/;
let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform({
    operatorReadToken: READ_TOKEN,
    publicUrl: 'https://voice.example.com',
    peer: () => ({ address: '192.0.2.9', port: 1 }),
  });
});
afterAll(() => platform.close());

const logIn = (body: unknown, headers: Record<string, string> = {}) => {
  const text = JSON.stringify(body);
  return platform.raw('/console/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': String(text.length), ...headers },
    body: text,
  });
};
/** The sessions of another process on the same database. */
const sessionsOf = () =>
  new ConsoleSessions({
    operatorToken: OPERATOR_TOKEN,
    operatorReadToken: READ_TOKEN,
    cookies: platform.testStore.store.consoleCookies,
    now: () => platform.now(),
  });
const cookieOf = ({ headers }: { readonly headers: Headers }): string => headers.get('set-cookie')?.split(';')[0] ?? '';

describe('a session of the console', () => {
  test('is opened by the operator token, with a cookie that no script and no other site gets', async () => {
    const opened = await logIn({ token: OPERATOR_TOKEN });
    expect(opened).toMatchObject({ status: 200, body: { role: 'operator' } });
    const cookie = opened.headers.get('set-cookie') ?? '';
    for (const part of ['HttpOnly', 'SameSite=Strict', 'Secure', 'Path=/', 'Max-Age=43200']) expect(cookie).toContain(part);
    expect(cookie).not.toContain(OPERATOR_TOKEN);
    expect(await platform.raw('/console/session', { headers: { cookie: cookieOf(opened) } })).toMatchObject({
      status: 200,
      body: { role: 'operator', csrf: opened.body.csrf },
    });
  });

  test('is opened by JSON in any case of its media type, and by nothing else', async () => {
    const statusOf = async (type: string) => (await logIn({ token: OPERATOR_TOKEN }, { 'content-type': type })).status;
    for (const type of ['Application/JSON', 'application/json; charset=utf-8'])
      expect([type, await statusOf(type)]).toEqual([type, 200]);
    for (const type of ['application/jsonp', 'text/plain', '']) expect([type, await statusOf(type)]).toEqual([type, 415]);
  });

  test('is refused to a body of another shape, in words about the body', async () => {
    for (const body of [{}, { token: 'a', login: 'b' }])
      expect((await logIn(body)).body).toMatchObject({
        code: 'invalid_request',
        message: expect.stringMatching(/^(body|token|login): /),
      });
  });

  test('stands for the token at the operator API; what changes something needs its CSRF token', async () => {
    const opened = await logIn({ token: OPERATOR_TOKEN });
    const cookie = cookieOf(opened);
    expect((await platform.raw('/operator/v1/apps', { headers: { cookie } })).status).toBe(200);
    const create = (headers: Record<string, string>) =>
      platform.raw('/operator/v1/apps', {
        method: 'POST',
        headers: { cookie, 'content-type': 'application/json', ...headers },
        body: '{"name":"by the console"}',
      });
    expect((await create({})).status).toBe(403);
    expect((await create({ 'x-csrf-token': 'wrong' })).status).toBe(403);
    expect((await create({ 'x-csrf-token': opened.body.csrf })).status).toBe(201);
  });

  test('does not stand for a token that is given beside it: the token decides, and a wrong one is no reader', async () => {
    const cookie = cookieOf(await logIn({ token: OPERATOR_TOKEN }));
    const ask = (token: string, method = 'GET') =>
      platform.raw('/operator/v1/apps', { method, headers: { cookie, authorization: `Bearer ${token}` } });
    expect((await ask('wrong')).status).toBe(401);
    expect((await ask(READ_TOKEN)).status).toBe(200);
    expect((await ask(READ_TOKEN, 'POST')).status).toBe(403);
  });

  test('of the reading token changes nothing, with the CSRF token either', async () => {
    const opened = await logIn({ token: READ_TOKEN });
    expect(opened.body.role).toBe('reader');
    const headers = { cookie: cookieOf(opened), 'x-csrf-token': opened.body.csrf, 'content-type': 'application/json' };
    expect((await platform.raw('/operator/v1/apps', { headers })).status).toBe(200);
    expect((await platform.raw('/operator/v1/apps', { method: 'POST', headers, body: '{"name":"no"}' })).status).toBe(403);
    expect((await platform.raw('/operator/v1/console-logins', { method: 'POST', headers })).status).toBe(403);
  });

  test('is none of an application: its API takes no cookie', async () => {
    const cookie = cookieOf(await logIn({ token: OPERATOR_TOKEN }));
    expect((await platform.raw('/api/v1/app', { headers: { cookie } })).status).toBe(400);
  });

  test('ends when it is closed, and a cookie that was altered is none', async () => {
    const opened = await logIn({ token: OPERATOR_TOKEN });
    const cookie = cookieOf(opened);
    const altered = cookie.replace(/\.(.)/, (_, first) => `.${first === 'a' ? 'b' : 'a'}`);
    expect((await platform.raw('/operator/v1/apps', { headers: { cookie: altered } })).status).not.toBe(200);
    expect((await platform.raw('/console/session', { method: 'DELETE', headers: { cookie } })).status).toBe(403);
    const closed = await platform.raw('/console/session', {
      method: 'DELETE',
      headers: { cookie, 'x-csrf-token': opened.body.csrf },
    });
    expect([closed.status, closed.headers.get('set-cookie')]).toEqual([204, expect.stringContaining('Max-Age=0')]);
    expect((await platform.raw('/console/session', { headers: { cookie } })).status).toBe(401);
  });

  test('that was logged out is over after a restart and at every other node', async () => {
    const session = sessionsOf().open(OPERATOR_TOKEN);
    const header = `sidetone_console=${session?.cookie}`;
    if (session === undefined || (await sessionsOf().find(header)) === undefined) throw new Error('no session was opened');
    await sessionsOf().close(session);
    await sessionsOf().close(session);
    expect(await sessionsOf().find(header)).toBeUndefined();
    expect((await platform.raw('/operator/v1/apps', { headers: { cookie: header } })).status).toBe(401);
  });

  test('that was logged out is over in every spelling of its cookie', async () => {
    const session = sessionsOf().open(OPERATOR_TOKEN);
    if (session === undefined) throw new Error('no session was opened');
    await sessionsOf().close(session);
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    // The last of 43 digits has two bits that no byte has: these four spell the same signature.
    const last = digits.indexOf(session.cookie.at(-1) ?? '');
    for (const bits of [0, 1, 2, 3]) {
      const cookie = `sidetone_console=${session.cookie.slice(0, -1)}${digits[last ^ bits]}`;
      expect((await platform.raw('/operator/v1/apps', { headers: { cookie } })).status).toBe(401);
    }
  });

  test('that is logged out ends what it follows: the event stream breaks off within five seconds', async () => {
    const { body: opened, headers } = await logIn({ token: OPERATOR_TOKEN });
    const cookie = headers.get('set-cookie')?.split(';')[0] ?? '';
    const app = (await platform.operator('POST', '/operator/v1/apps', { name: 'followed', webhook_url: 'https://192.0.2.1/' }))
      .body;
    const url = 'http://127.0.0.1/operator/v1/events/stream';
    const stream = await platform.app.fetch(new Request(url, { headers: { cookie } }));
    const reader = stream.body?.getReader();
    const read = async () => new TextDecoder().decode((await reader?.read())?.value);
    /** What comes next, but for what is said where nothing happens. */
    const readOn = async (): Promise<string> => {
      const text = await read();
      return text === ': nothing new\n\n' ? await readOn() : text;
    };
    const { now } = platform;
    const afterSixSeconds = async (times: number) => {
      platform.now = () => now() + times * 6_000;
      const path = `/operator/v1/apps/${app.app_uuid}/events`;
      expect((await platform.operator('POST', path, { event: 'session.created' })).status).toBe(202);
    };
    expect(await read()).toContain(': events');
    await afterSixSeconds(1);
    expect(await readOn()).toContain('event: session.created');
    const closing = { method: 'DELETE', headers: { cookie, 'x-csrf-token': opened.csrf } };
    expect((await platform.raw('/console/session', closing)).status).toBe(204);
    await afterSixSeconds(2);
    await expect(readOn()).rejects.toThrow();
    platform.now = now;
  });

  test('is not opened by a form, by a wrong body, or by guessing: ten wrong tokens, then 429, and the right one passes', async () => {
    expect((await logIn({ token: OPERATOR_TOKEN }, { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await logIn({ token: OPERATOR_TOKEN, more: 1 })).status).toBe(400);
    expect((await logIn({})).status).toBe(400);
    expect((await logIn({ token: 'x'.repeat(5_000) })).status).toBe(413);
    // A body in chunks tells no length.
    const inChunks = async (token: string) => {
      const body = JSON.stringify({ token });
      return platform.raw('/console/session', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    };
    expect((await inChunks('x'.repeat(5_000))).status).toBe(413);
    expect((await inChunks(OPERATOR_TOKEN)).status).toBe(200);
    const guesses = [];
    for (let n = 0; n < 12; n++) guesses.push((await logIn({ token: `guess ${n}` })).status);
    expect(guesses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
    expect((await logIn({ token: OPERATOR_TOKEN })).status).toBe(200);
  });

  test('is opened once by a login that the operator made', async () => {
    const made = await platform.operator('POST', '/operator/v1/console-logins');
    expect(made).toMatchObject({ status: 201, body: { url: `https://voice.example.com/console#login=${made.body.login}` } });
    expect(await logIn({ login: made.body.login })).toMatchObject({ status: 200, body: { role: 'operator' } });
    expect((await logIn({ login: made.body.login })).status).not.toBe(200);
  });
});

test('a page of the console may load and be framed by nothing foreign', async () => {
  const page = await platform.raw('/console');
  const policy = page.headers.get('content-security-policy') ?? '';
  for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"])
    expect(policy).toContain(rule);
  expect(policy).not.toContain('unsafe');
  // A style within the page has the nonce of its answer, which nobody can know before.
  const nonceOf = ({ text }: { readonly text: string }) => /<meta name="style-nonce" content="([\w-]{22})"/.exec(text)?.[1];
  expect(policy).toContain(`style-src 'self' 'nonce-${nonceOf(page)}'`);
  expect(nonceOf(await platform.raw('/console'))).not.toBe(nonceOf(page));
  expect((await platform.raw('/console/no-such-file.js')).status).toBe(404);
  expect((await platform.raw('/console', { method: 'POST' })).status).toBe(405);
});

test('a file of the console is packed for who takes that, and as it is for who refuses it by a weight of 0', async () => {
  const script = /src="([^"]+\.js)"/.exec((await platform.raw('/console')).text)?.[1] ?? '';
  const codingFor = async (accepted: string) =>
    (await platform.raw(script, { headers: { 'accept-encoding': accepted } })).headers.get('content-encoding');
  for (const accepted of ['gzip', 'br, GZIP;q=0.5', 'gzip; q=0.001', 'deflate, x-gzip'])
    expect([accepted, await codingFor(accepted)]).toEqual([accepted, 'gzip']);
  for (const accepted of ['gzip;q=0', 'br, gzip ; q=0.000', 'identity', 'gzipped', ''])
    expect([accepted, await codingFor(accepted)]).toEqual([accepted, null]);
});

test('every answer of the console has a trace: pages, assets, problems, and what says that it is not built', async () => {
  const page = await platform.raw('/console');
  const assets = [...page.text.matchAll(/(?:src|href)="([^"]+\.(?:js|css|svg))"/g)].map(([, path = '']) => path);
  const asked = ['/console', '/console/calls', '/console/no-such-file.js', '/console/session', ...assets];
  for (const path of asked) {
    const { headers } = await platform.raw(path);
    expect([path, headers.get('traceparent')]).toEqual([path, expect.stringMatching(TRACEPARENT)]);
  }
  const unbuilt = new ConsoleDoor({
    sessions: sessionsOf(),
    isSecure: false,
    peer: undefined,
    now: () => 0,
    files: '/nonexistent',
  });
  const { status, headers } = await unbuilt.answer(new Request('http://127.0.0.1/console'));
  expect([status, headers.get('traceparent')]).toEqual([503, expect.stringMatching(TRACEPARENT)]);
});

describe('console sessions', () => {
  const at = (now: { value: number }, operatorToken = 'one-operator-token') =>
    new ConsoleSessions({
      operatorToken,
      operatorReadToken: undefined,
      cookies: platform.testStore.store.consoleCookies,
      now: () => now.value,
    });
  const header = (session: { readonly cookie: string } | undefined) => `a=b; sidetone_console=${session?.cookie}`;

  test('last twelve hours, also over a restart, and end with their token', async () => {
    const now = { value: 1_800_000_000_000 };
    const session = at(now).open('one-operator-token');
    expect(await at(now).find(header(session))).toMatchObject({ role: 'operator' });
    expect(await at(now, 'another-operator-token').find(header(session))).toBeUndefined();
    now.value += 12 * 3600 * 1000 + 1;
    expect(await at(now).find(header(session))).toBeUndefined();
  });

  test('are opened by a login of any node within five minutes, also over a restart, and by each login once', async () => {
    const now = { value: 1_800_000_000_000 };
    const { login } = at(now).newLogin();
    now.value += 5 * 60 * 1000 - 1;
    expect(await at(now, 'another-operator-token').openByLogin(login)).toBeUndefined();
    const opened = await Promise.all([1, 2, 3].map(() => at(now).openByLogin(login)));
    expect(opened.flatMap((session) => session?.role ?? [])).toEqual(['operator']);
    expect(await at(now).openByLogin(login)).toBeUndefined();
    const late = at(now).newLogin().login;
    now.value += 5 * 60 * 1000;
    expect(await at(now).openByLogin(late)).toBeUndefined();
    for (const none of ['', 'login', `${at(now).newLogin().login.slice(0, -1)}_`, `1${at(now).newLogin().login}`])
      expect(await at(now).openByLogin(none)).toBeUndefined();
  });
});
