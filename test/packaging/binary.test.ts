/**
 * `npm run binary`: the one file, started where nothing of the repository is, with a PostgreSQL of its own, places a
 * call.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTestStore, type TestStore } from '../database/open.ts';
import { keysWav } from '../support/keypad.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const ROOT = join(import.meta.dir, '../..');
const NUMBER = '+15550065';

let folder = '';
let file = '';
let database: TestStore;
let platform: Platform;
let app: Credentials;
const receiver = new Receiver();
const files = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: () => new Response(keysWav('7'), { headers: { 'content-type': 'audio/wav' } }),
});

beforeAll(async () => {
  // The place of another machine: the file alone, under another name.
  folder = mkdtempSync(join(tmpdir(), 'sidetone-binary-'));
  file = join(folder, 'a-voice-platform');
  execFileSync(process.execPath, [join(ROOT, 'bin/binary.mjs'), file], { stdio: ['ignore', 'ignore', 'pipe'] });
  database = await openTestStore();
  platform = await Platform.start({ DATABASE_URL: database.url }, file);
  app = await platform.application(receiver.url, NUMBER);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  platform.answerEveryCall(app, receiver);
}, 90_000);
afterAll(async () => {
  await platform?.stop();
  await database?.close();
  await receiver.stop();
  await files.stop(true);
  rmSync(folder, { recursive: true, force: true });
}, 20_000);

test('the one file places a call, plays to it, records it, and hangs up', async () => {
  const dial = { from: NUMBER, to: NUMBER, ring_timeout_sec: 10 };
  const session = String((await platform.api(app, 'POST', '/v1/sessions:dial', dial)).body.session_uuid);
  await receiver.event('session.answered', session);
  await platform.api(app, 'POST', `/v1/sessions/${session}/recordings`, { direction: 'both', channels: 'mono' });
  const url = `http://127.0.0.1:${files.port}/key.wav`;
  await platform.api(app, 'POST', `/v1/sessions/${session}/playback/play`, { type: 'files', urls: [url] });
  expect((await receiver.event('dtmf.received')).body.digit).toBe('7');
  await receiver.event('recording.became_available', session);
  await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
  const { pull_url: pull } = (await receiver.event('recording.ended', session)).body;
  const recording = await fetch(String(pull));
  expect(Buffer.from(await recording.arrayBuffer()).toString('latin1', 0, 4)).toBe('RIFF');
  await receiver.event('session.ended', session);
}, 40_000);

test('the one file carries the console, the documentation, the reference and the MP3 decoder', async () => {
  const pages = [
    '/console',
    '/docs',
    '/docs/api',
    '/docs/api.md',
    '/docs/how-to/use-an-assistant',
    '/docs/swagger-ui-bundle.js',
    '/llms.txt',
  ];
  for (const page of pages) {
    const response = await fetch(platform.url + page);
    expect([page, response.status, (await response.text()).length > 500]).toEqual([page, 200, true]);
  }
  const script = /src="(\/console\/[^"]+\.js)"/.exec(await (await fetch(`${platform.url}/console`)).text())?.[1];
  expect((await fetch(platform.url + script)).status).toBe(200);
  // A library that is loaded with its first use.
  const mcp = await fetch(`${platform.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${app.appUuid}:${app.apiKey}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
  expect((await mcp.json()).result.tools.length).toBe(3);
  const mp3 = Bun.file(join(ROOT, 'test/media/fixture/tone-22k-mono.mp3'));
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(mp3) });
  const dial = { from: NUMBER, to: NUMBER, ring_timeout_sec: 10 };
  const session = String((await platform.api(app, 'POST', '/v1/sessions:dial', dial)).body.session_uuid);
  await receiver.event('session.answered', session);
  const play = { type: 'files', urls: [`http://127.0.0.1:${server.port}/tone.mp3`] };
  await platform.api(app, 'POST', `/v1/sessions/${session}/playback/play`, play);
  expect((await receiver.event('playback.ended', session)).body.reason).toBe('completed');
  await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
  await receiver.event('session.ended', session);
}, 40_000);

test('without DATABASE_URL the one file says what it wants, in one line', () => {
  const { status, stderr } = spawnSync(file, {
    cwd: folder,
    env: { DATA_DIR: join(folder, 'data'), HTTP_PORT: '0' },
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^sidetone: no embedded PostgreSQL .*: set DATABASE_URL\n$/)]);
});
