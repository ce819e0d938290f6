/** `sidetone dev` as a newcomer uses it: one command, a page, a button, sound. */
import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { test } from '../support/real-time.ts';
import { chromiumInstalled, launchChromium, watch } from './chromium.ts';

const CLI = join(import.meta.dir, '../../bin/sidetone');
const dataDir = mkdtempSync(join(tmpdir(), 'sidetone-dev-'));
const environment = (more: Record<string, string> = {}) => ({
  PATH: process.env.PATH ?? '',
  HTTP_PORT: '0',
  SIP_LISTEN: 'udp:127.0.0.1:0',
  MEDIA_WORKERS: '1',
  SHUTDOWN_GRACE_SEC: '0',
  DATA_DIR: dataDir,
  ...more,
});

let dev: ChildProcess;
let page = '';
let output = '';

beforeAll(async () => {
  const child = spawn('node', [CLI, 'dev'], { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
  dev = child;
  page = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      output += chunk.toString();
      const found = /Your first call\s+(\S+)/.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('exit', (code) => reject(new Error(`dev ended with ${code}: ${output}`)));
  });
}, 60_000);
test('tells the credentials of the application `default`, which the first start makes and tells once', () => {
  expect(output).toMatch(/A first application, "default", was made[\s\S]*sk_\S+[\s\S]*whsec_\S+[\s\S]*Your first call/);
});

afterAll(async () => {
  const ended = new Promise<number | null>((resolve) => dev.once('exit', resolve));
  dev.kill('SIGINT');
  expect(await ended).toBe(0);
  // It stops the platform, and the platform its database.
  expect(existsSync(join(dataDir, 'postgres/postmaster.pid'))).toBe(false);
  rmSync(dataDir, { recursive: true, force: true });
}, 30_000);

describe.skipIf(!chromiumInstalled)('the first call in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  }, 30_000);
  afterAll(() => browser?.close());

  test('rings, plays a melody, says back what is said, and is recorded; the page shows each event', async () => {
    const tab = await browser.newPage();
    const seen = watch(tab, page);
    await tab.goto(page);
    await tab.getByRole('status').filter({ hasText: 'Ready' }).waitFor();
    const five = tab.getByRole('button', { name: '5', exact: true });
    expect(await five.isDisabled()).toBe(true);
    await tab.getByRole('button', { name: 'Call' }).click();
    await tab.getByRole('status').filter({ hasText: 'Connected' }).waitFor();
    const heard = async () => {
      while (Number(await tab.locator('#heard').getAttribute('value')) <= 0.05);
    };
    await heard();
    const events = tab.locator('#events');
    await events.getByText('playback.ended').waitFor();
    // The fake microphone beeps: what is heard now is the echo of it.
    await events.getByText('websocket.connected').nth(1).waitFor();
    await heard();
    await five.click();
    await events.getByText('digit=5').waitFor();
    await tab.getByRole('button', { name: 'Hang up' }).click();
    const recording = tab.getByRole('link', { name: 'Listen to the recording' });
    await recording.waitFor();
    const href = (await recording.getAttribute('href')) ?? '';
    const wav = Buffer.from(await (await fetch(href)).arrayBuffer());
    expect(wav.subarray(0, 4).toString()).toBe('RIFF');
    expect(wav.subarray(44).some((octet) => octet !== 0)).toBe(true);
    await tab.getByRole('status').filter({ hasText: 'The call is over' }).waitFor();
    expect(await five.isDisabled()).toBe(true);
    for (const name of ['session.created', 'session.answered', 'playback.started', 'session.ended'])
      expect(await events.getByText(name).count()).toBeGreaterThan(0);
    expect(seen).toEqual({ errors: [], foreign: [] });
    await tab.close();
  }, 60_000);

  test('says that the demo has stopped, and leaves nothing to hang up', async () => {
    const tab = await browser.newPage();
    await tab.routeWebSocket(/\/page$/, (route) => {
      route.send(JSON.stringify({ type: 'ready', number: '+15550001' }));
      route.onMessage(() => void route.close());
    });
    await tab.goto(page);
    await tab.getByRole('button', { name: 'Call' }).click();
    await tab.getByRole('status').filter({ hasText: 'The demo has stopped' }).waitFor();
    expect(await tab.getByRole('button', { name: 'Call', exact: true }).isDisabled()).toBe(true);
    await tab.close();
  }, 60_000);

  test('hangs up when its page is closed', async () => {
    const tab = await browser.newPage();
    await tab.goto(page);
    await tab.getByRole('button', { name: 'Call' }).click();
    await tab.getByRole('status').filter({ hasText: 'Connected' }).waitFor();
    await tab.close();
    const other = await browser.newPage();
    await other.goto(page);
    const [, url = ''] = /API reference\s+(\S+)\/docs/.exec(output) ?? [];
    const token = readFileSync(join(dataDir, 'operator.token'), 'utf8').trim();
    for (;;) {
      const answer = await fetch(`${url}/operator/v1/sessions?state=live`, { headers: { authorization: `Bearer ${token}` } });
      if ((await answer.json()).sessions.length === 0) break;
    }
    await other.close();
  }, 60_000);
});

test('a page of another origin may not place calls', async () => {
  const upgrade = await fetch(`${page}page`, {
    headers: {
      connection: 'upgrade',
      upgrade: 'websocket',
      origin: 'http://elsewhere.example',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    },
  });
  expect(upgrade.status).toBe(403);
});

test('an event that is not signed is refused', async () => {
  expect((await fetch(`${page}hook`, { method: 'POST', body: '{"event":"session.created"}' })).status).toBe(401);
});

test('it refuses to run for others than this machine', () => {
  const { status, stderr } = spawnSync('node', [CLI, 'dev'], { env: environment({ HTTP_HOST: '0.0.0.0' }), encoding: 'utf8' });
  expect([status, stderr]).toEqual([1, expect.stringContaining('loopback only')]);
});
