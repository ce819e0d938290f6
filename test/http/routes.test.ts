import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { isUuid, newUuid } from '../../src/id.ts';
import { problems } from '../../src/problem.ts';
import { openPlatform, type Platform } from './platform.ts';

let platform: Platform;
let mine: AppSecrets;
beforeAll(async () => {
  platform = await openPlatform();
  mine = await platform.testStore.store.apps.create({ name: 'mine' });
});
afterAll(() => platform.close());
const call = (method: string, path: string, body?: unknown) => platform.call(mine, method, path, body);
const lastCommand = () => platform.sessions.commands.at(-1);

describe('Sessions', () => {
  test('dial answers with the Session, the operation and a status', async () => {
    const full = {
      from: '+15550100',
      to: '+15550199',
      ring_timeout_sec: 600,
      trunk: 'main',
      display_name: 'Käse',
      max_duration_sec: 60,
      sip_headers: { 'X-Order': '1234' },
      client_state: '{"a":1}',
    };
    const reply = await call('POST', '/v1/sessions:dial', full);
    expect(reply.status).toBe(202);
    expect(Object.keys(reply.body).sort()).toEqual(['operation_uuid', 'session_uuid', 'status']);
    expect([isUuid(reply.body.session_uuid), isUuid(reply.body.operation_uuid), reply.body.status]).toEqual([
      true,
      true,
      'in_progress',
    ]);
  });

  test('the dial of the operator for an application that is not there is 404', async () => {
    const dial = { from: '+15550001', to: '+15550100' };
    const path = `/operator/v1/apps/app_${newUuid()}/dial`;
    expect(await platform.operator('POST', path, dial)).toMatchObject({
      status: 404,
      body: { message: 'Application not found' },
    });
  });

  test('one is shown with `status`, a list with `state`', async () => {
    const app = await platform.testStore.store.apps.create({ name: 'lists' });
    const uuid = platform.session(app, { state: 'answered' });
    platform.session(app, { state: 'ringing' });
    const one = await platform.call(app, 'GET', `/v1/sessions/${uuid}`);
    const common = {
      session_uuid: uuid,
      type: 'phone_in',
      created_at: '2026-01-01T00:00:00.000Z',
      caller_id: '+15550001',
      did: '+15550002',
    };
    expect(one.body).toEqual({ ...common, status: 'answered' });
    const list = await platform.call(app, 'GET', '/v1/sessions?state=answered&state=new');
    expect(list.body).toEqual({ sessions: [{ ...common, state: 'answered' }] });
    expect((await platform.call(app, 'GET', '/v1/sessions?limit=1')).body.sessions.length).toBe(1);
    expect((await platform.call(app, 'GET', '/v1/sessions?state=ended')).body).toEqual({ sessions: [] });
    const head = await platform.raw(`/v1/sessions/${uuid}`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${app.appUuid}:${app.apiKey}` },
    });
    expect([head.status, head.text]).toEqual([200, '']);
  });

  test.each([
    'state=gone',
    'limit=0',
    'limit=50001',
    'limit=ten',
    'limit=1&limit=2',
    'created_after=yesterday',
    'created_after=2026-01-01',
    'created_after=2026-02-30T00:00:00Z',
    'created_before=2025-02-29T00:00:00%2B02:00',
    'created_before=2026-13-01T00:00:00Z',
    'colour=red',
  ])('a list with %s is 400', async (query) => {
    const reply = await call('GET', `/v1/sessions?${query}`);
    expect([reply.status, reply.body.code]).toEqual([400, 'invalid_request']);
  });

  test('a list takes RFC 3339 times with any offset', async () => {
    for (const time of [
      '2026-01-01T00:00:00Z',
      '2026-01-01T00:00:00.123Z',
      '2026-01-01T02:00:00%2B02:00',
      '2026-01-01T02:00:00+02:00',
    ])
      expect((await call('GET', `/v1/sessions?created_after=${time}&created_before=${time}`)).status).toBe(200);
  });

  test('each command reaches the Session with its operation', async () => {
    const uuid = platform.session(mine);
    const orders: [string, string, unknown, object][] = [
      ['POST', '/answer', {}, { type: 'answer' }],
      ['POST', '/reject', { reason: 'busy' }, { type: 'reject', reason: 'busy' }],
      ['POST', '/cancel', undefined, { type: 'cancel' }],
      ['DELETE', '', undefined, { type: 'hangup' }],
      [
        'POST',
        '/playback/play',
        { type: 'files', urls: ['https://a/1.wav'] },
        { type: 'play', urls: ['https://a/1.wav'], loop: 1, volume: 100 },
      ],
      [
        'POST',
        '/playback/play',
        { type: 'files', urls: ['http://a/1', 'http://a/2'], loop: 0, volume: 200 },
        { type: 'play', urls: ['http://a/1', 'http://a/2'], loop: 0, volume: 200 },
      ],
      ['POST', '/playback/stop', {}, { type: 'stop_playback' }],
      ['DELETE', '/dtmf/collect', undefined, { type: 'cancel_collect' }],
    ];
    for (const [method, path, body, command] of orders) {
      const reply = await call(method, `/v1/sessions/${uuid}${path}`, body);
      expect([reply.status, Object.keys(reply.body).sort()]).toEqual([202, ['operation_uuid', 'status']]);
      expect(lastCommand()).toMatchObject({
        uuid,
        command,
        context: { appUuid: mine.appUuid, operationUuid: reply.body.operation_uuid },
      });
    }
  });

  test('dtmf/send and transfer fill in the contract’s defaults, in milliseconds', async () => {
    const sessionUuid = platform.session(mine);
    const uri = 'sip:bob@example.com';
    const orders: [path: string, body: object, command: object][] = [
      ['dtmf/send', { digits: '1wW#' }, { type: 'send_digits', digits: '1wW#', durationMs: 100, gapMs: 100 }],
      [
        'dtmf/send',
        { digits: 'A', duration_ms: 40, gap_ms: 1000 },
        { type: 'send_digits', digits: 'A', durationMs: 40, gapMs: 1000 },
      ],
      ['transfer', { to: '+15550111' }, { type: 'transfer', target: { number: '+15550111' }, timeoutMs: 30_000 }],
      ['transfer', { to: uri, timeout_sec: 5 }, { type: 'transfer', target: { uri }, timeoutMs: 5_000 }],
      [
        'transfer',
        { to_session_uuid: sessionUuid, timeout_sec: 120 },
        { type: 'transfer', target: { sessionUuid }, timeoutMs: 120_000 },
      ],
    ];
    for (const [path, body, command] of orders) {
      expect((await call('POST', `/v1/sessions/${platform.session(mine)}/${path}`, body)).status).toBe(202);
      expect(lastCommand()?.command).toEqual(Object(command));
    }
  });

  test('collect fills in the contract’s defaults and takes an empty list of terminators', async () => {
    const path = `/v1/sessions/${platform.session(mine)}/dtmf/collect`;
    await call('POST', path);
    expect(lastCommand()?.command).toEqual({
      type: 'collect',
      promptUrls: [],
      terms: {
        minDigits: 1,
        maxDigits: 128,
        validDigits: '0123456789*#',
        terminators: ['#'],
        firstDigitTimeoutMs: 5000,
        interDigitTimeoutMs: 5000,
        totalTimeoutMs: 60000,
        bargeIn: true,
      },
    });
    await call('POST', path, { terminators: [], prompt_files: ['http://a/p.wav'], max_digits: 4, barge_in: false });
    expect(lastCommand()?.command).toMatchObject({
      promptUrls: ['http://a/p.wav'],
      terms: { terminators: [], maxDigits: 4, bargeIn: false },
    });
    for (const body of [{ min_digits: 5, max_digits: 4 }, { max_digits: 129 }, { terminators: ['##'] }, { valid_digits: '' }])
      expect((await call('POST', `/v1/sessions/${platform.session(mine)}/dtmf/collect`, body)).status).toBe(400);
  });

  test('an acknowledgement of one that had ended passes as it is', async () => {
    const uuid = platform.session(mine);
    platform.sessions.next = problems.conflict('Session was already answered');
    expect((await call('POST', `/v1/sessions/${uuid}/cancel`)).body).toEqual({
      code: 'conflict',
      message: 'Session was already answered',
    });
  });
});

describe('the application', () => {
  test('reads and patches its own settings', async () => {
    expect(
      (await call('PATCH', '/api/v1/app', { webhook_url: 'https://a.example/h', blocked_webhook_events: ['session.*'] })).status,
    ).toBe(204);
    expect((await call('GET', '/api/v1/app')).body).toEqual({
      app_uuid: mine.appUuid,
      inbound_phone_numbers: [],
      outbound_caller_ids: [],
      webhook_url: 'https://a.example/h',
      webhook_status: { state: 'enabled', since: expect.any(String), last_error: '' },
      blocked_webhook_events: ['session.*'],
      room_limits: { max_rooms: 100, max_members_per_room: 250 },
    });
    expect((await call('PATCH', '/api/v1/app', { webhook_url: '' })).status).toBe(204);
    const unset = (await call('GET', '/api/v1/app')).body;
    expect([unset.webhook_url, unset.webhook_status.state]).toEqual(['', 'unset']);
    const refused = [
      { webhook_url: 'x' },
      { webhook_url: null },
      { webhook_url: `http://a/${'x'.repeat(2048)}` },
      { name: 'x' },
      { blocked_webhook_events: 'x' },
    ];
    for (const body of refused) expect((await call('PATCH', '/api/v1/app', body)).status).toBe(400);
  });
});

describe('outside authentication', () => {
  test('health and readiness say what is up', async () => {
    expect((await platform.raw('/healthz')).body).toEqual({ status: 'ok' });
    expect((await platform.raw('/readyz')).body).toEqual({ status: 'ready', database: true, media: true, sip: true });
  });
  test('metrics count requests by route, not by path', async () => {
    await call('GET', `/v1/sessions/${platform.session(mine)}`);
    const { text, headers } = await platform.raw('/metrics');
    expect(headers.get('content-type')).toStartWith('text/plain');
    expect(text).toMatch(/sidetone_http_requests_total\{method="GET",route="\/v1\/sessions\/:uuid",status="200"\} [1-9]/);
    expect(text).not.toContain(mine.appUuid);
  });
  test('the OpenAPI document has every route, with its shapes', async () => {
    const { body } = await platform.raw('/openapi.json');
    expect(body.openapi).toBe('3.1.0');
    const paths = Object.keys(body.paths);
    for (const path of ['/v1/sessions:dial', '/v1/sessions/{uuid}/playback/play', '/api/v1/app', '/operator/v1/trunks/{name}'])
      expect(paths).toContain(path);
    const { schema } = body.paths['/v1/sessions:dial'].post.requestBody.content['application/json'];
    expect(schema).toEqual({ $ref: '#/components/schemas/DialRequest' });
    const dial = body.components.schemas.DialRequest;
    expect(dial.required.sort()).toEqual(['from', 'ring_timeout_sec', 'to']);
    expect(dial.additionalProperties).toBe(false);
    expect(JSON.stringify(body.paths)).not.toContain('"success"');
  });
  test('the OpenAPI document has every event that docs/webhooks.md has, with its fields and an example', async () => {
    const { body } = await platform.raw('/openapi.json');
    const page = readFileSync(new URL('../../docs/webhooks.md', import.meta.url), 'utf8');
    const rows = page.split('\n').filter((line) => /^\| `[a-z]+\.[a-z_.]+`/.test(line));
    const documented = rows.flatMap((line) => (line.split('|')[1] ?? '').match(/[a-z]+\.[a-z_.]+/g) ?? []);
    expect(documented.length).toBeGreaterThan(35);
    expect(Object.keys(body.webhooks).sort()).toEqual([...new Set(documented)].sort());
    const { schema, example } = body.webhooks['session.machine_detection.completed'].post.requestBody.content['application/json'];
    expect(schema).toEqual({ $ref: '#/components/schemas/SessionMachineDetectionCompletedEvent' });
    expect(body.components.schemas.SessionMachineDetectionCompletedEvent.properties).toMatchObject({
      event: { const: example.event },
      result: { enum: ['human', 'machine', 'unknown'] },
      after_ms: { type: 'integer' },
    });
    expect(example).toMatchObject({ event: 'session.machine_detection.completed', result: 'machine' });
  });
  test('docs/webhooks.md marks those fields of an event as optional that the OpenAPI document has so', async () => {
    const { body } = await platform.raw('/openapi.json');
    const page = readFileSync(new URL('../../docs/webhooks.md', import.meta.url), 'utf8');
    const wrong: string[] = [];
    for (const [table] of page.matchAll(/^\| Event \| Fields \|.*\n(\|.*\n)+/gm))
      for (const [, names = '', fields = ''] of table.split('\n').map((row) => row.split('|')))
        for (const [name] of names.matchAll(/[a-z]+\.[a-z_.]+/g)) {
          const { $ref } = body.webhooks[name].post.requestBody.content['application/json'].schema;
          const schema = body.components.schemas[$ref.split('/').at(-1)];
          const kinds: { required: string[]; properties: object }[] = schema.anyOf ?? [schema];
          for (const [, field = '', mark = ''] of fields.replace(/\([^)]*\)/g, '').matchAll(/`([a-z_0-9]+)(\??)`/g)) {
            const having = kinds.filter(({ properties }) => field in properties);
            const isAlways = having.every(({ required }) => required.includes(field));
            // What one kind of an event always has, and another kind never, may have the mark or words.
            const isRight = mark === '' ? isAlways : !isAlways || having.length < kinds.length;
            if (having.length > 0 && !isRight) wrong.push(`${name}: ${field}${mark}`);
          }
        }
    expect(wrong).toEqual([]);
  });
  test('the documentation is there for reading, as Markdown, and as a list for programs; its links lead to pages', async () => {
    const index = await platform.raw('/docs');
    expect([index.status, index.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(index.text).toContain('<a href="/docs/webhooks">Webhooks</a>');
    const [first, second] = [...index.text.matchAll(/<li><a href="([^"]+)"/g)].map(([, href]) => href);
    expect([first, second]).toEqual(['/docs/getting-started', '/docs/first-call']);
    expect((await platform.raw('/docs/')).text).toBe(index.text);
    expect((await platform.raw('/docs/decisions')).text).toBe((await platform.raw('/docs/decisions/README')).text);
    const list = await platform.raw('/llms.txt');
    const pages = [...list.text.matchAll(/\((\/docs\/[^)]+\.md)\)/g)].map(([, path = '']) => path);
    expect(pages.length).toBeGreaterThan(15);
    const targets = new Set<string>();
    for (const path of pages) {
      const markdown = await platform.raw(path);
      expect([path, markdown.status, markdown.headers.get('content-type')]).toEqual([path, 200, 'text/markdown; charset=utf-8']);
      const page = await platform.raw(path.slice(0, -3));
      expect(page.headers.get('content-security-policy')).toStartWith("default-src 'none'");
      expect(page.headers.get('content-security-policy')).not.toContain('unsafe');
      expect(page.text).not.toContain('<script');
      // Without an icon a browser asks for /favicon.ico, and writes the 404 to its console.
      expect(page.text).toContain('<link rel="icon"');
      for (const [, target = ''] of page.text.matchAll(/href="(\/docs[^"#]*)/g)) targets.add(target);
    }
    for (const target of targets) expect([target, (await platform.raw(target)).status]).toEqual([target, 200]);
  });

  test('the reference page loads nothing from elsewhere', async () => {
    const page = await platform.raw('/docs/reference');
    expect(page.headers.get('content-security-policy')).toStartWith("default-src 'none'");
    expect(page.headers.get('content-security-policy')).not.toContain('unsafe');
    expect(page.text).not.toMatch(/https?:\/\//);
    expect(page.text).toContain('<a href="/docs">Documentation</a>');
    expect(page.text).toContain('<link rel="icon"');
    expect((await platform.raw('/docs/start.js')).text).toContain('prefers-color-scheme: dark');
    const script = await platform.raw('/docs/swagger-ui-bundle.js');
    expect([script.status, script.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
    expect(script.text.length).toBeGreaterThan(100_000);
  });
});
