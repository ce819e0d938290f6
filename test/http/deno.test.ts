import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import type { SessionRow } from '../../src/database/journal/journal.ts';
import { newUuid } from '../../src/id.ts';
import { openTestStore, type TestStore } from '../database/open.ts';
import { recordOf, sessionRow } from '../database/rows.ts';
import { OPERATOR_TOKEN } from '../support/http-deps.ts';
import { OpenApiCheck } from '../support/openapi-check.ts';
import { eventOf } from '../webhook/emit.ts';

const ROOT = join(import.meta.dir, '../..');
const DENO = join(ROOT, 'node_modules/.bin/deno');
const missing = !existsSync(DENO);
if (missing) console.log('skipped: the npm package deno is not installed');

describe.skipIf(missing)('src/http with the store, under Deno', () => {
  let testStore: TestStore;
  let app: AppSecrets;
  let deno: Bun.Subprocess<'pipe', 'pipe', 'inherit'>;
  let base = '';
  let left: SessionRow;

  beforeAll(async () => {
    testStore = await openTestStore();
    app = await testStore.store.apps.create({ name: 'on Deno', webhookUrl: 'http://127.0.0.1:9/' });
    // What another process has: a call that goes on, and an event that waits for its delivery.
    left = sessionRow({ appUuid: app.appUuid, state: 'answered', answered: true });
    await testStore.store.journal.commit({ session: left, events: [eventOf(app.appUuid, left.sessionUuid, 1)] });
    deno = Bun.spawn(
      [DENO, 'run', '--allow-all', '--no-check', '--node-modules-dir=manual', 'test/http/on-deno.ts', testStore.url],
      {
        cwd: ROOT,
        stdin: 'pipe',
        stdout: 'pipe',
        stderr: 'inherit',
        env: { PATH: process.env.PATH ?? '', HOME: testStore.dataDir, DENO_NO_UPDATE_CHECK: '1' },
      },
    );
    const { value } = await deno.stdout.getReader().read();
    base = `http://127.0.0.1:${new TextDecoder().decode(value).trim()}`;
  }, 60_000);
  afterAll(async () => {
    await deno.stdin.end();
    await deno.exited;
    await testStore.close();
  });

  const call = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    fetch(`${base}${path}`, {
      method,
      headers: { authorization: `Bearer ${app.appUuid}:${app.apiKey}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

  test('answers the reads and writes of the API against the same PostgreSQL', async () => {
    const row = sessionRow({ appUuid: app.appUuid, state: 'ringing' });
    await testStore.store.journal.commit({ session: row, events: [] });
    const found = await call('GET', `/v1/sessions/${row.sessionUuid}`);
    expect([found.status, await found.json()]).toEqual([
      200,
      expect.objectContaining({ session_uuid: row.sessionUuid, status: 'ringing' }),
    ]);
    const key = { 'idempotency-key': 'once' };
    const url = 'https://hooks.example.com/';
    const patches = [
      await call('PATCH', '/api/v1/app', { webhook_url: url }, key),
      await call('PATCH', '/api/v1/app', { webhook_url: url }, key),
    ];
    expect(patches.map((each) => [each.status, each.headers.get('idempotent-replayed')])).toEqual([
      [204, null],
      [204, 'true'],
    ]);
    expect((await testStore.store.apps.get(app.appUuid))?.webhookUrl).toBe(url);
  });

  test('refuses as it does under Bun', async () => {
    const dial = await call('POST', '/v1/sessions:dial', { from: 'x' });
    expect([dial.status, await dial.json()]).toEqual([
      422,
      { code: 'invalid_request', message: 'from: must be an E.164 number with leading +' },
    ]);
    expect((await fetch(`${base}/v1/sessions`)).status).toBe(400);
    expect((await fetch(`${base}/v1/sessions`, { method: 'PUT' })).headers.get('allow')).toBe('GET, HEAD');
    expect((await fetch(`${base}/readyz`)).status).toBe(200);
    expect((await (await fetch(`${base}/openapi.json`)).json()).openapi).toBe('3.1.0');
  });

  const operator = (method: string, path: string, body?: object) =>
    call(method, `/operator/v1${path}`, body, { authorization: `Bearer ${OPERATOR_TOKEN}` });

  test('serves the operator API: applications, keys, numbers, trunks, events, calls', async () => {
    const made = await operator('POST', '/apps', { name: 'made on Deno' });
    const { app_uuid: appUuid, api_key: apiKey } = await made.json();
    const steps: [method: string, path: string, status: number, body?: object][] = [
      ['GET', '/apps', 200],
      ['GET', `/apps/${appUuid}`, 200],
      ['PATCH', `/apps/${appUuid}`, 204, { room_limits: { max_rooms: 3 } }],
      ['POST', `/apps/${appUuid}/api-keys`, 201, {}],
      ['POST', `/apps/${appUuid}/webhook-secrets`, 201, {}],
      ['PUT', '/numbers/+15550088', 204, { app_uuid: appUuid }],
      ['PUT', `/apps/${appUuid}/caller-ids/+15550088`, 204, {}],
      ['PUT', `/apps/${appUuid}/payment-terminals/1234567`, 204, {}],
      ['PUT', '/trunks/deno', 204, { uri: 'sip:192.0.2.1', inbound_cidrs: ['192.0.2.1/32'], username: 'u', password: 'p' }],
      ['GET', '/trunks', 200],
      ['GET', '/trunks/deno', 200],
      ['GET', '/refusals', 200],
      ['POST', `/apps/${appUuid}/events`, 202, { event: 'session.created' }],
      ['GET', `/events?app_uuid=${appUuid}`, 200],
      ['GET', `/sessions?app_uuid=${app.appUuid}`, 200],
      ['GET', `/sessions/${left.sessionUuid}/timeline`, 200],
      ['GET', `/sessions/${left.sessionUuid}/sip.txt`, 200],
      ['GET', `/sessions/${left.sessionUuid}/sip.pcap`, 200],
      ['DELETE', `/sessions/${left.sessionUuid}`, 409],
      ['GET', '/rooms', 200],
      ['GET', '/messages', 200],
      ['POST', '/console-logins', 201, {}],
      ['DELETE', '/trunks/deno', 204],
      ['DELETE', `/apps/${appUuid}/payment-terminals/1234567`, 204],
      ['DELETE', `/apps/${appUuid}/caller-ids/+15550088`, 204],
      ['DELETE', '/numbers/+15550088', 204],
    ];
    const statuses = [];
    for (const [method, path, , body] of steps) statuses.push((await operator(method, path, body)).status);
    expect(statuses).toEqual(steps.map(([, , status]) => status));
    // What was made on Deno works there, and is what the other process reads.
    const own = await call('GET', '/api/v1/app', undefined, { authorization: `Bearer ${appUuid}:${apiKey}` });
    expect((await own.json()).room_limits.max_rooms).toBe(3);
    expect((await testStore.store.apps.get(appUuid))?.roomLimits.maxRooms).toBe(3);
  }, 30_000);

  test('sends and lists messages, and serves the console, the documentation, the metrics and MCP', async () => {
    expect((await call('POST', '/v1/messages', { from: '+15550001', to: '+15550002', text: 'x' })).status).toBe(403);
    await testStore.store.callerIds.allow(app.appUuid, '+15550001');
    const sent = await call('POST', '/v1/messages', { from: '+15550001', to: '+15550002', text: 'from Deno' });
    const { message_uuid: messageUuid } = await sent.json();
    expect((await (await call('GET', `/v1/messages/${messageUuid}`)).json()).text).toBe('from Deno');
    expect((await (await call('GET', '/v1/messages')).json()).messages.length).toBe(1);
    for (const path of ['/console', '/docs', '/docs/api', '/docs/api.md', '/docs/reference', '/llms.txt', '/metrics', '/healthz'])
      expect([path, (await fetch(base + path)).status]).toEqual([path, 200]);
    const login = await fetch(`${base}/console/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: OPERATOR_TOKEN }),
    });
    expect(login.status).toBe(200);
    const mcp = await call(
      'POST',
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_calls' } },
      {
        accept: 'application/json, text/event-stream',
      },
    );
    expect(JSON.stringify(await mcp.json())).toContain(left.sessionUuid);
  }, 30_000);

  test('answers every operation of its document with a status and a body that the document has', async () => {
    const document = await (await fetch(`${base}/openapi.json`)).json();
    const check = new OpenApiCheck(document);
    const wrong: string[] = [];
    for (const [template, operations] of Object.entries<Record<string, { security: Record<string, unknown>[] }>>(
      document.paths,
    )) {
      const path = template.replaceAll(/\{[a-z0-9_]+\}/g, newUuid());
      for (const [method, { security }] of Object.entries(operations)) {
        // An endless stream is read elsewhere.
        if (template.endsWith('/stream')) continue;
        const isOperator = security.some((each) => 'operator' in each);
        const authorization = isOperator ? `Bearer ${OPERATOR_TOKEN}` : `Bearer ${app.appUuid}:${app.apiKey}`;
        const verb = method.toUpperCase();
        const response = await call(verb, path, verb === 'GET' || verb === 'DELETE' ? undefined : {}, { authorization });
        const found = check.fault(verb, path, response, await response.text());
        if (found !== undefined || response.status === 500) wrong.push(found ?? `${verb} ${path}: 500`);
      }
    }
    expect(wrong).toEqual([]);
    expect(check.seen.size).toBeGreaterThan(70);
  }, 30_000);

  test('as a second process it takes over no call, and delivers no event', async () => {
    expect(await testStore.store.sessions.get(left.appUuid, left.sessionUuid)).toEqual(recordOf(left));
    const [event] = await testStore.store.events.list({
      appUuid: app.appUuid,
      sessionUuid: left.sessionUuid,
      status: undefined,
      after: 0,
      limit: 10,
    });
    expect([event?.status, event?.attempts]).toEqual(['pending', []]);
    // The other process commits on, as the one that it is.
    expect(await testStore.store.journal.commit({ session: { ...left, callerId: '+15550003' }, events: [] })).toBe(true);
  });
});
