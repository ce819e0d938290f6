import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { isUuid, newUuid } from '../../src/id.ts';
import { problems } from '../../src/problem.ts';
import { openPlatform, type Platform, type Reply } from './platform.ts';

let platform: Platform;
let mine: AppSecrets;
let other: AppSecrets;
beforeAll(async () => {
  platform = await openPlatform();
  mine = await platform.testStore.store.apps.create({ name: 'mine' });
  other = await platform.testStore.store.apps.create({ name: 'other' });
});
afterAll(() => platform.close());

const call = (...args: Parameters<Platform['call']> extends [AppSecrets, ...infer Rest] ? Rest : never) =>
  platform.call(mine, ...args);
const dial = { from: '+15550100', to: '+15550199', ring_timeout_sec: 30 };

/** The format of every expected error. */
function refused(reply: Reply, status: number, code: string, message?: string | RegExp) {
  expect({ status: reply.status, code: reply.body?.code }).toEqual({ status, code });
  expect(Object.keys(reply.body).sort()).toEqual(['code', 'message']);
  expect(reply.headers.get('traceparent')).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  if (message !== undefined) expect(reply.body.message).toMatch(message);
}

describe('a path and its methods', () => {
  test('an unknown path is 404 in the error format, before authentication', async () => {
    for (const path of ['/', '/v1/nothing', '/v1/sessions/', '/v1/sessions:undial', '/api/v1/sessions'])
      refused(await platform.raw(path), 404, 'not_found', /^No route matches this path$/);
  });
  test('another method on a known path is 405 and says what is allowed', async () => {
    const wrong = await platform.raw('/v1/sessions', { method: 'DELETE' });
    refused(wrong, 405, 'invalid_request');
    expect(wrong.headers.get('allow')).toBe('GET, HEAD');
    const one = await platform.raw(`/v1/sessions/${newUuid()}`, { method: 'POST' });
    expect(one.headers.get('allow')).toBe('DELETE, GET, HEAD');
    expect((await platform.raw('/healthz', { method: 'POST' })).status).toBe(405);
    expect((await platform.raw('/v1/sessions:dial', { method: 'GET' })).headers.get('allow')).toBe('POST');
  });
});

describe('the size of a body', () => {
  const big = (bytes: number) => JSON.stringify({ reason: 'x'.repeat(bytes) });
  test('over 64 KiB on a session command is 413, before authentication', async () => {
    const reply = await platform.raw(`/v1/sessions/${newUuid()}/reject`, { method: 'POST', body: big(64 * 1024) });
    refused(reply, 413, 'payload_too_large');
  });
  test('over 1 MiB elsewhere is 413, and less is not', async () => {
    refused(await platform.raw('/v1/sessions:dial', { method: 'POST', body: big(1024 * 1024) }), 413, 'payload_too_large');
    refused(
      await platform.raw('/v1/sessions:dial', { method: 'POST', body: big(100 * 1024) }),
      400,
      'invalid_authorization_header',
    );
  });
  test('is found out also when it is not declared, without reading on', async () => {
    let sent = 0;
    const endless = new ReadableStream({
      pull(controller) {
        sent += 16 * 1024;
        controller.enqueue(new Uint8Array(16 * 1024));
      },
    });
    const reply = await platform.raw(`/v1/sessions/${newUuid()}/answer`, { method: 'POST', body: endless });
    refused(reply, 413, 'payload_too_large');
    expect(sent).toBeLessThan(512 * 1024);
  });
});

describe('authentication', () => {
  const get = (authorization?: string) =>
    platform.raw('/v1/sessions', authorization === undefined ? {} : { headers: { authorization } });
  test('missing or malformed is 400', async () => {
    const malformed = [
      undefined,
      '',
      'Bearer',
      'Basic abc',
      `Bearer ${mine.apiKey}`,
      `Bearer ${mine.appUuid}`,
      `Bearer ${mine.appUuid}x`,
      'Bearer app_1:key',
      // A field that is sent twice arrives as one.
      `Bearer ${mine.appUuid}:${mine.apiKey}, Bearer ${mine.appUuid}:${mine.apiKey}`,
      `Bearer ${mine.appUuid}: ${mine.apiKey}`,
    ];
    for (const each of [...malformed, `Bearer ${mine.appUuid.toUpperCase()}:${mine.apiKey}`])
      refused(await get(each), 400, 'invalid_authorization_header');
  });
  test('without a key is 401 Missing API key; with a wrong one, or of nobody, 401 Invalid API key', async () => {
    refused(await get(`Bearer ${mine.appUuid}:`), 401, 'unauthorized', /^Missing API key$/);
    refused(await get(`Bearer ${mine.appUuid}:${other.apiKey}`), 401, 'unauthorized', /^Invalid API key$/);
    refused(await get(`Bearer app_${newUuid()}:${mine.apiKey}`), 401, 'unauthorized', /^Invalid API key$/);
    // RFC 9110 §11.6.1.
    expect((await get(`Bearer ${mine.appUuid}:`)).headers.get('www-authenticate')).toBe('Bearer');
  });
  test('takes any active key, and a revoked one no longer from the same moment', async () => {
    const made = await platform.testStore.store.credentials.addKey(mine.appUuid);
    if (typeof made === 'string') throw new Error(made);
    expect((await get(`Bearer ${mine.appUuid}:${made.apiKey}`)).status).toBe(200);
    await platform.testStore.store.credentials.removeKey(mine.appUuid, made.keyId);
    refused(await get(`Bearer ${mine.appUuid}:${made.apiKey}`), 401, 'unauthorized');
    expect((await call('GET', '/v1/sessions')).status).toBe(200);
  });
  test('comes before everything about the body', async () => {
    const bad = { method: 'POST', body: '{', headers: { 'content-type': 'text/plain', 'operation-id': 'x' } };
    refused(await platform.raw('/v1/sessions:dial', bad), 400, 'invalid_authorization_header');
  });
});

describe('the form of a request', () => {
  test('another media type is 415; none, a blank one and parameters are accepted', async () => {
    for (const type of ['text/plain', 'application/jsonp', 'application/json garbage', 'multipart/form-data'])
      refused(await call('POST', '/v1/sessions:dial', '{', { 'content-type': type }), 415, 'invalid_request');
    for (const type of ['', ' ', 'application/json; charset=utf-8', 'Application/JSON'])
      expect((await call('POST', '/v1/sessions:dial', dial, { 'content-type': type })).status).toBe(202);
  });
  test('a compressed body is 415, and the message does not call it bad JSON', async () => {
    const coded = (coding: string) => call('POST', '/v1/sessions:dial', dial, { 'content-encoding': coding });
    for (const coding of ['gzip', 'br', 'gzip, identity'])
      refused(await coded(coding), 415, 'invalid_request', /^Content-Encoding: must be absent/);
    for (const coding of ['identity', 'Identity', '']) expect((await coded(coding)).status).toBe(202);
  });
  test('bad JSON is 400, before a bad Operation-Id', async () => {
    for (const body of ['{', '', 'nonsense', '[['.repeat(20_000)])
      refused(await call('POST', '/v1/sessions:dial', body, { 'operation-id': 'x' }), 400, 'invalid_request', /JSON/);
  });
  test('a malformed Operation-Id is 400, before the shape; a good one comes back', async () => {
    for (const id of ['x', newUuid().toUpperCase(), '00000000-0000-1000-8000-000000000000'])
      refused(await call('POST', '/v1/sessions:dial', {}, { 'operation-id': id }), 400, 'invalid_request', /^Operation-Id/);
    const id = newUuid();
    expect((await call('POST', '/v1/sessions:dial', dial, { 'operation-id': id })).body.operation_uuid).toBe(id);
    expect(isUuid((await call('POST', '/v1/sessions:dial', dial)).body.operation_uuid)).toBe(true);
  });
  test.each([
    [{}, 'from'],
    [{ ...dial, from: '15550100' }, 'from'],
    [{ ...dial, to: '+0123' }, 'to'],
    [{ ...dial, to: '+12345678901234567' }, 'to'],
    [{ ...dial, ring_timeout_sec: 0 }, 'ring_timeout_sec'],
    [{ ...dial, ring_timeout_sec: 601 }, 'ring_timeout_sec'],
    [{ ...dial, ring_timeout_sec: 1.5 }, 'ring_timeout_sec'],
    [{ ...dial, ring_timeout_sec: '4111111111111111' }, 'ring_timeout_sec'],
    [{ ...dial, max_duration_sec: 59 }, 'max_duration_sec'],
    [{ ...dial, client_state: 'x'.repeat(1025) }, 'client_state'],
    [{ ...dial, client_state: 'a\0b' }, 'client_state'],
    [{ ...dial, client_state: '\ud800' }, 'client_state'],
    [{ ...dial, display_name: 'a\r\nX: y' }, 'display_name'],
    [{ ...dial, sip_headers: { 'X-A': 'a\r\nVia: b' } }, 'sip_headers.X-A'],
    [{ ...dial, sip_headers: { Via: 'a' } }, 'sip_headers.Via'],
    [{ ...dial, sip_headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`X-${n}`, ''])) }, 'sip_headers'],
    [{ ...dial, colour: 'red' }, 'colour'],
    [JSON.stringify(dial).replace('{', '{"__proto__":1,'), '__proto__'],
    ['[]', 'body'],
    ['null', 'body'],
  ])('a dial of the wrong shape is 422 with the one path that fails (%#)', async (body, path) => {
    const reply = await call('POST', '/v1/sessions:dial', body);
    refused(reply, 422, 'invalid_request');
    expect(reply.body.message.startsWith(`${path}: `)).toBe(true);
    expect(reply.text).not.toMatch(/4111|was /);
  });
  test('a wrong shape elsewhere is 400', async () => {
    const path = `/v1/sessions/${platform.session(mine)}`;
    const cases: [string, unknown, RegExp][] = [
      ['reject', {}, /^reason: is required$/],
      ['reject', { reason: 'sulk' }, /^reason: must be/],
      ['answer', { now: true }, /^now: is not a known field here$/],
      ['playback/play', {}, /^type: /],
      ['playback/play', { type: 'files' }, /^urls: is required$/],
      ['playback/play', { type: 'files', urls: [] }, /^urls: /],
      ['playback/play', { type: 'files', urls: ['http://a/1.wav', 'ftp://a/2.wav'] }, /^urls\[1\]: must be an http or https URL/],
      ['playback/play', { type: 'files', urls: [`http://a/${'x'.repeat(2048)}`] }, /^urls\[0\]: /],
      ['playback/play', { type: 'files', urls: new Array(101).fill('http://a/') }, /^urls: /],
      ['playback/play', { type: 'files', urls: ['http://a/'], volume: 201 }, /^volume: /],
      ['playback/play', { type: 'stream', url: 'http://a/', media_format: {} }, /^media_format: is not a known field here$/],
      ['playback/play', { type: 'push', media_format: { encoding: 'mulaw', sample_rate: 16000 } }, /^media_format/],
    ];
    for (const [command, body, message] of cases)
      refused(await call('POST', `${path}/${command}`, body), 400, 'invalid_request', message);
  });
  test('no body counts as {} where a command has no fields', async () => {
    const uuid = platform.session(mine);
    for (const body of [undefined, '', '{}']) expect((await call('POST', `/v1/sessions/${uuid}/answer`, body)).status).toBe(202);
  });
});

describe('idempotency', () => {
  test('sends the first answer again for the same request, whatever the order of its fields', async () => {
    const key = { 'idempotency-key': newUuid() };
    const first = await call('POST', '/v1/sessions:dial', dial, key);
    const again = await call('POST', '/v1/sessions:dial', `{ "ring_timeout_sec":30, "to":"+15550199","from":"+15550100" }`, key);
    expect(again.body).toEqual(first.body);
    expect([first.status, again.status]).toEqual([202, 202]);
    expect([first.headers.get('idempotent-replayed'), again.headers.get('idempotent-replayed')]).toEqual([null, 'true']);
  });
  test('is 422 for another request under the same key, and another application may use the key', async () => {
    const key = { 'idempotency-key': newUuid() };
    await call('POST', '/v1/sessions:dial', dial, key);
    refused(
      await call('POST', '/v1/sessions:dial', { ...dial, ring_timeout_sec: 31 }, key),
      422,
      'invalid_request',
      /Idempotency-Key/,
    );
    const theirs = await platform.call(other, 'POST', '/v1/sessions:dial', dial, key);
    expect([theirs.status, theirs.headers.get('idempotent-replayed')]).toEqual([202, null]);
  });
  test('of many at once lets one through and tells the others that it is in progress, or its answer', async () => {
    const key = { 'idempotency-key': newUuid() };
    const replies = await Promise.all(Array.from({ length: 20 }, () => call('POST', '/v1/sessions:dial', dial, key)));
    const fresh = replies.filter((each) => each.status === 202 && each.headers.get('idempotent-replayed') === null);
    expect(fresh.length).toBe(1);
    for (const each of replies)
      if (each.status !== 202) {
        refused(each, 409, 'conflict', /^Request already in progress/);
        expect(each.headers.get('retry-after')).toBe('1');
      } else expect(each.body).toEqual(fresh[0]?.body);
  });
  test('keeps a 422 of the shape and a 403 of policy, and no other refusal', async () => {
    const kept = async (body: unknown, status: number) => {
      const key = { 'idempotency-key': newUuid() };
      const [first, again] = [
        await call('POST', '/v1/sessions:dial', body, key),
        await call('POST', '/v1/sessions:dial', body, key),
      ];
      expect([first.status, again.status]).toEqual([status, status]);
      expect(again.body).toEqual(first.body);
      return again.headers.get('idempotent-replayed');
    };
    expect(await kept({ ...dial, to: 'x' }, 422)).toBe('true');
    expect(await kept({ ...dial, from: '+15550111' }, 403)).toBe('true');
    // A cap on what there is at once is a state's: it passes by itself.
    const passing = { 'idempotency-key': newUuid() };
    platform.sessions.next = problems.tooManyRooms();
    expect((await call('POST', '/v1/sessions:dial', dial, passing)).status).toBe(403);
    expect((await call('POST', '/v1/sessions:dial', dial, passing)).status).toBe(202);
    const uuid = platform.session(mine);
    const key = { 'idempotency-key': newUuid() };
    for (const problem of [
      problems.conflict('Not now'),
      problems.unavailable('Away', 1),
      new StoreUnavailable('away'),
      new Error('bug'),
    ]) {
      platform.sessions.next = problem;
      expect((await call('POST', `/v1/sessions/${uuid}/answer`, {}, key)).status).toBeGreaterThanOrEqual(409);
    }
    expect((await call('POST', `/v1/sessions/${newUuid()}/answer`, {}, { 'idempotency-key': 'k' })).status).toBe(404);
    expect((await call('POST', `/v1/sessions/${uuid}/answer`, {}, key)).status).toBe(202);
  });
  test('keeps a hundred refusals of an application at once and ten a second, and judges further ones again', async () => {
    const crowd = await platform.testStore.store.apps.create({ name: 'crowd' });
    const keys = Array.from({ length: 130 }, () => newUuid());
    const ask = (key: string) =>
      platform.call(crowd, 'POST', '/v1/sessions:dial', { ...dial, to: 'x' }, { 'idempotency-key': key });
    const replays = async (of: readonly string[]) => {
      const replies = await Promise.all(of.map(ask));
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([422]));
      return replies.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length;
    };
    const now = Date.now();
    platform.now = () => now;
    try {
      expect(await replays(keys)).toBe(0);
      expect(await replays(keys)).toBe(100);
      platform.now = () => now + 1_000;
      expect(await replays(keys)).toBe(100);
      expect(await replays(keys)).toBe(110);
    } finally {
      platform.now = Date.now;
    }
  });
  test('stays in flight after a 503 that may have been stored all the same, so that no retry has a second effect', async () => {
    const key = { 'idempotency-key': newUuid() };
    const done = platform.sessions.commands.length;
    platform.sessions.next = { ...problems.unavailable('Away', 1), isInDoubt: true };
    const answer = `/v1/sessions/${platform.session(mine)}/answer`;
    expect((await call('POST', answer, {}, key)).status).toBe(503);
    refused(await call('POST', answer, {}, key), 409, 'conflict', /^Request already in progress/);
    expect(platform.sessions.commands.length).toBe(done + 1);
  });
  test('replays after the Session is gone, and takes DELETE and PATCH too', async () => {
    const uuid = platform.session(mine);
    const key = { 'idempotency-key': newUuid() };
    const first = await call('DELETE', `/v1/sessions/${uuid}`, undefined, key);
    platform.sessions.live.delete(uuid);
    const again = await call('DELETE', `/v1/sessions/${uuid}`, undefined, key);
    expect([again.status, again.body]).toEqual([202, first.body]);
    expect((await call('DELETE', `/v1/sessions/${uuid}`)).status).toBe(404);
    const patch = { 'idempotency-key': newUuid() };
    expect((await call('PATCH', '/api/v1/app', { webhook_url: '' }, patch)).status).toBe(204);
    const replayed = await call('PATCH', '/api/v1/app', { webhook_url: '' }, patch);
    expect([replayed.status, replayed.headers.get('idempotent-replayed'), replayed.text]).toEqual([204, 'true', '']);
  });
  test('compares lists as they are ordered, and fields of a body as they are named', async () => {
    const path = `/v1/sessions/${platform.session(mine)}/dtmf/collect`;
    const key = { 'idempotency-key': newUuid() };
    expect((await call('POST', path, { terminators: ['#', '*'], max_digits: 4 }, key)).status).toBe(202);
    const again = await call('POST', path, `{"max_digits": 4, "terminators": [ "#","*" ] }`, key);
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true']);
    for (const body of [
      { terminators: ['*', '#'], max_digits: 4 },
      { terminators: ['#'], max_digits: 4 },
      { terminators: ['#', '*'], min_digits: 4 },
      { terminators: ['#', '*'] },
    ])
      refused(await call('POST', path, body, key), 422, 'invalid_request', /Idempotency-Key/);
  });
  test('is none of a request that changes nothing', async () => {
    const key = { 'idempotency-key': newUuid() };
    const replies = [await call('GET', '/api/v1/app', undefined, key), await call('GET', '/v1/sessions', undefined, key)];
    expect(replies.map((each) => [each.status, each.headers.get('idempotent-replayed')])).toEqual([
      [200, null],
      [200, null],
    ]);
    expect((await call('GET', '/api/v1/app', undefined, { 'idempotency-key': 'x'.repeat(300) })).status).toBe(200);
  });
  test('takes a key of one to 255 characters, with blanks between them', async () => {
    for (const key of ['k', 'two words', 'x'.repeat(255)]) {
      const first = await call('POST', '/v1/sessions:dial', dial, { 'idempotency-key': key });
      const again = await call('POST', '/v1/sessions:dial', dial, { 'idempotency-key': key });
      expect([key, first.status, again.status, again.headers.get('idempotent-replayed')]).toEqual([key, 202, 202, 'true']);
    }
  });
  test('refuses a key that could not be kept', async () => {
    for (const key of ['é', 'x'.repeat(256)])
      refused(
        await call('POST', '/v1/sessions:dial', dial, { 'idempotency-key': key }),
        400,
        'invalid_request',
        /^Idempotency-Key/,
      );
  });
});

describe('ownership and rate', () => {
  test('of another application, of none, or no uuid at all is 404 Session not found', async () => {
    const theirs = platform.session(other);
    for (const uuid of [theirs, newUuid(), 'nonsense']) {
      refused(await call('GET', `/v1/sessions/${uuid}`), 404, 'not_found', /^Session not found$/);
      refused(await call('POST', `/v1/sessions/${uuid}/answer`), 404, 'not_found', /^Session not found$/);
      refused(await call('DELETE', `/v1/sessions/${uuid}`), 404, 'not_found', /^Session not found$/);
    }
  });
  test('an empty bucket is 429 with whole seconds; refusals and replays cost nothing', async () => {
    const held = platform.now();
    const running = platform.now;
    platform.now = () => held;
    const uuid = platform.session(mine);
    const path = `/v1/sessions/${uuid}/playback/play`;
    const play = { type: 'files', urls: ['http://a/'] };
    for (let n = 0; n < 30; n += 1) {
      platform.sessions.next = problems.conflict('Not now');
      expect((await call('POST', path, play)).status).toBe(409);
      expect((await call('POST', path, { type: 'files' })).status).toBe(400);
    }
    const key = { 'idempotency-key': newUuid() };
    for (let n = 0; n < 8; n += 1) {
      expect((await call('POST', path, play, n === 0 ? key : {})).status).toBe(202);
      expect((await call('POST', path, play, key)).headers.get('idempotent-replayed')).toBe('true');
    }
    const empty = await call('POST', path, play);
    refused(empty, 429, 'rate_limited', /^Command rate limit exceeded\. See Retry-After header\.$/);
    expect(empty.headers.get('retry-after')).toBe('1');
    expect((await call('POST', `/v1/sessions/${uuid}/playback/stop`)).status).toBe(202);
    expect((await call('POST', `/v1/sessions/${platform.session(mine)}/playback/play`, play)).status).toBe(202);
    platform.now = () => held + 250;
    expect((await call('POST', path, play)).status).toBe(202);
    expect((await call('POST', path, play)).status).toBe(429);
    platform.now = running;
  });
});

describe('what goes wrong inside', () => {
  test('a bug is 500 with a support id, and says nothing more', async () => {
    platform.sessions.next = new Error('secret detail');
    const reply = await call('POST', `/v1/sessions/${platform.session(mine)}/answer`);
    expect(reply.status).toBe(500);
    expect(reply.body).toEqual({ code: 'internal_error', message: 'Internal error', support_id: expect.any(String) });
    expect(reply.text).not.toContain('secret');
  });
  test('a database that is away is 503 with Retry-After', async () => {
    platform.sessions.next = new StoreUnavailable('away');
    const reply = await call('POST', `/v1/sessions/${platform.session(mine)}/answer`);
    refused(reply, 503, 'unavailable', /Retry-After header\.$/);
    expect(reply.headers.get('retry-after')).toBe('1');
  });
  test('a 502 has its detail, and a 529 its Retry-After', async () => {
    platform.sessions.next = problems.source({ reason: 'not_found', source_index: 1, retryable: false, upstream_status: 404 }, 2);
    const source = await call('POST', `/v1/sessions/${platform.session(mine)}/playback/play`, {
      type: 'files',
      urls: ['http://a/'],
    });
    expect([source.status, source.body.code, source.body.detail]).toEqual([
      502,
      'playback_source_error',
      { reason: 'not_found', source_index: 1, retryable: false, upstream_status: 404 },
    ]);
    platform.sessions.next = problems.noCapacity(5);
    const full = await call('POST', '/v1/sessions:dial', dial);
    refused(full, 529, 'unavailable', /See Retry-After header\.$/);
    expect(full.headers.get('retry-after')).toBe('5');
  });
  test('the trace is the server’s own, a new one for each request', async () => {
    const incoming = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const uuid = platform.session(mine);
    const reply = await call('POST', `/v1/sessions/${uuid}/answer`, {}, { traceparent: incoming });
    expect(reply.headers.get('traceparent')).not.toContain('4bf92f3577b34da6a3ce929d0e0e4736');
    expect(platform.sessions.commands.at(-1)?.context.traceparent).toBe(reply.headers.get('traceparent') ?? '');
    expect((await call('GET', '/v1/sessions', undefined, { traceparent: 'garbage' })).status).toBe(200);
  });
});
