import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { AppSecrets } from '../../src/database/apps.ts';
import { openTestStore, type TestStore } from '../database/open.ts';
import { sessionRow } from '../database/rows.ts';

const ROOT = join(import.meta.dir, '../..');
const DENO = join(ROOT, 'node_modules/.bin/deno');
const missing = !existsSync(DENO);
if (missing) console.log('skipped: the npm package deno is not installed');

describe.skipIf(missing)('src/http with the store, under Deno', () => {
  let testStore: TestStore;
  let app: AppSecrets;
  let deno: Bun.Subprocess<'pipe', 'pipe', 'inherit'>;
  let base = '';

  beforeAll(async () => {
    testStore = await openTestStore();
    app = await testStore.store.apps.create({ name: 'on Deno' });
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
});
