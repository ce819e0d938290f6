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

  test('places no call that is hung up while the browser asks for the microphone', async () => {
    const tab = await browser.newPage();
    const sent: string[] = [];
    await tab.routeWebSocket(/\/page$/, (route) => {
      route.send(JSON.stringify({ type: 'ready', number: '+15550001' }));
      route.onMessage((message) => void sent.push(String(message)));
    });
    await tab.addInitScript(() => {
      navigator.mediaDevices.getUserMedia = () =>
        new Promise((_, reject) => addEventListener('refuse', () => reject(new DOMException('', 'NotAllowedError'))));
    });
    await tab.goto(page);
    const button = (name: string) => tab.getByRole('button', { name, exact: true });
    const refuse = () => tab.evaluate(() => dispatchEvent(new Event('refuse')));
    await button('Call').click();
    await button('Hang up').click({ timeout: 5_000 });
    await button('Call').click({ timeout: 5_000 });
    await refuse();
    while (sent.length === 0) await refuse();
    await button('Hang up').click();
    while (sent.length < 2) await refuse();
    expect(sent).toEqual(['{"type":"call"}', '{"type":"hangup"}']);
    await tab.close();
  }, 20_000);

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

test('Ctrl-C gives its number back to the application that had it, and does not wait for calls that are up', async () => {
  const own = mkdtempSync(join(tmpdir(), 'sidetone-dev-'));
  const number = encodeURIComponent('+15550001');
  /** Runs a program until it prints `ready`, which has the platform's address, has `act` do something, and ends it. */
  const during = async (program: string, args: readonly string[], ready: RegExp, act: (url: string) => Promise<void>) => {
    const child = spawn(program, args, {
      env: environment({ DATA_DIR: own }),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    let printed = '';
    const url = await new Promise<string>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        printed += chunk.toString();
        const found = ready.exec(printed)?.[1];
        if (found !== undefined) resolve(found);
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      child.once('exit', (code) => reject(new Error(`${program} ended with ${code}: ${printed}`)));
    });
    await act(url).finally(() => process.kill(-(child.pid ?? 0), 'SIGINT')); // Ctrl-C is for all of a terminal's programs.
    const since = performance.now();
    await ended;
    return performance.now() - since;
  };
  const operator = async (url: string, method: string, path: string, body?: unknown) => {
    const authorization = `Bearer ${readFileSync(join(own, 'operator.token'), 'utf8').trim()}`;
    const headers = { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await fetch(`${url}/operator/v1${path}`, init);
    return response.status === 204 ? {} : await response.json();
  };
  const run = (act: (url: string) => Promise<void>) => during('node', [CLI, 'dev'], /API reference\s+(\S+)\/docs/, act);
  let mine = '';
  const numbers = async (url: string) => (await operator(url, 'GET', `/apps/${mine}`)).inbound_phone_numbers;
  await run(async (url) => {
    mine = (await operator(url, 'POST', '/apps', { name: 'mine' })).app_uuid;
    await operator(url, 'PUT', `/numbers/${number}`, { app_uuid: mine });
  });
  const stopMs = await run(async (url) => {
    expect(await numbers(url)).toEqual([]);
    const { apps } = await operator(url, 'GET', '/apps');
    const demo = apps.find(({ name }: { readonly name: string }) => name === 'demo').app_uuid;
    await operator(url, 'POST', `/apps/${demo}/dial`, { from: '+15550001', to: '+15550001' });
    while ((await operator(url, 'GET', '/sessions?state=answered')).sessions.length < 2);
  });
  // SHUTDOWN_GRACE_SEC is 30 where nobody says otherwise.
  expect(stopMs).toBeLessThan(20_000);
  const bun = join(import.meta.dir, '../../node_modules/.bin/bun');
  const main = join(import.meta.dir, '../../src/main.ts');
  await during(bun, ['--no-env-file', main], /"url":"([^"]+)"/, async (url) => {
    expect(await numbers(url)).toEqual(['+15550001']);
    // The demo is not there for its events any more.
    expect((await operator(url, 'GET', '/apps')).apps.map((app: { webhook_url: string }) => app.webhook_url)).toEqual([
      '',
      '',
      '',
    ]);
  });
  rmSync(own, { recursive: true, force: true });
}, 90_000);

test('says so where another program has stopped the platform, since nothing in its log would', async () => {
  const own = mkdtempSync(join(tmpdir(), 'sidetone-dev-'));
  const child = spawn('node', [CLI, 'dev'], { env: environment({ DATA_DIR: own }), stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  let printed = '';
  child.stderr.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  for await (const chunk of child.stdout) if (String(chunk).includes('Ctrl-C stops it')) break;
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').map(Number);
  const [platform = 0] = children.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('main.ts'));
  process.kill(platform, 'SIGTERM');
  expect([await ended, printed]).toEqual([1, expect.stringContaining('another program told it to stop')]);
  rmSync(own, { recursive: true, force: true });
}, 90_000);

test('its data lies where --data-dir says, whatever DATA_DIR is', async () => {
  const own = mkdtempSync(join(tmpdir(), 'sidetone-dev-'));
  const child = spawn('node', [CLI, 'dev', '--data-dir', own], { env: environment(), stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  for await (const chunk of child.stdout) if (String(chunk).includes('Ctrl-C stops it')) break;
  expect(existsSync(join(own, 'demo.json'))).toBe(true);
  child.kill('SIGINT');
  expect(await ended).toBe(0);
  rmSync(own, { recursive: true, force: true });
}, 60_000);

test('Ctrl-C while it starts, even pressed twice, ends it, and leaves no platform behind', async () => {
  for (const presses of [1, 2]) {
    const own = mkdtempSync(join(tmpdir(), 'sidetone-dev-'));
    const child = spawn('node', [CLI, 'dev'], { env: environment({ DATA_DIR: own }), stdio: 'ignore' });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const isPlatform = (pid: number) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('main.ts');
      } catch {
        return false; // It has ended meanwhile.
      }
    };
    let platform: number | undefined;
    while (platform === undefined) {
      const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').map(Number);
      platform = children.find(isPlatform);
    }
    for (let n = 0; n < presses; n++) child.kill('SIGINT');
    expect([await ended, isPlatform(platform), existsSync(join(own, 'postgres/postmaster.pid'))]).toEqual([0, false, false]);
    rmSync(own, { recursive: true, force: true });
  }
}, 90_000);

test('it refuses to run for others than this machine', () => {
  const { status, stderr } = spawnSync('node', [CLI, 'dev'], { env: environment({ HTTP_HOST: '0.0.0.0' }), encoding: 'utf8' });
  expect([status, stderr]).toEqual([1, expect.stringContaining('loopback only')]);
});
