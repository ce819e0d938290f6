/** The HTTP port while the platform starts, and the URLs that name it. */
import { afterEach, expect, test } from 'bun:test';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { RtpRange } from '../support/rtp-range.ts';
import { freePort } from '../support/sipp.ts';

let platform: Platform | undefined;
afterEach(async () => {
  await platform?.stop();
  platform = undefined;
}, 30_000);

const servers = async (url: string) => ((await (await fetch(`${url}/openapi.json`)).json()) as { servers: unknown }).servers;

test('who asks before all is up waits for it; URLs name the port that was bound, or PUBLIC_URL', async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const starting = Platform.start({ HTTP_PORT: String(port), PUBLIC_URL: 'https://voice.example.com' });
  let first: Response | undefined;
  for (const until = performance.now() + 50_000; first === undefined && performance.now() < until; )
    first = await fetch(`${url}/readyz`).catch(() => Bun.sleep(20).then(() => undefined));
  expect([first?.status, await first?.json()]).toEqual([200, { status: 'ready', database: true, media: true, sip: true }]);
  platform = await starting;
  expect(await servers(url)).toEqual([{ url: 'https://voice.example.com' }]);
  await platform.stop();
  platform = await Platform.start();
  expect(await servers(platform.url)).toEqual([{ url: platform.url }]);
}, 60_000);

test('Ctrl-C under npm, of which the program is told twice, stops it with its database', async () => {
  const platform = await Platform.start();
  try {
    const ended = platform.ended();
    platform.signal('SIGINT');
    while (!platform.output.includes('"draining"')) await new Promise((resolve) => setImmediate(resolve));
    platform.signal('SIGINT');
    expect(await ended).toBe(0);
    expect(existsSync(join(platform.dataDir, 'postgres/postmaster.pid'))).toBe(false);
  } finally {
    await platform.stop();
  }
}, 60_000);

test('Ctrl-C again, later than npm passes it on, ends it at once, and its database by itself', async () => {
  const receiver = new Receiver();
  platform = await Platform.start({ SHUTDOWN_GRACE_SEC: '60' });
  try {
    const app = await platform.application(receiver.url, '+15550003');
    await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
    platform.answerEveryCall(app, receiver);
    const call = { from: '+15550003', to: '+15550003', trunk: 'loop' };
    await platform.operator('POST', `/apps/${app.appUuid}/dial`, call);
    await receiver.until(() => receiver.count('session.answered') === 2, 'a call that a drain waits for');
    const lock = join(platform.dataDir, 'postgres/postmaster.pid');
    let code: number | null | undefined;
    void platform.ended().then((ended) => {
      code = ended;
    });
    for (; code === undefined; await Bun.sleep(50)) platform.signal('SIGINT');
    expect(code).toBe(130);
    for (const until = performance.now() + 10_000; existsSync(lock) && performance.now() < until; ) await Bun.sleep(20);
    expect(existsSync(lock)).toBe(false);
  } finally {
    await receiver.stop();
  }
}, 60_000);

test('a proxy that the environment names gets no webhook, and SIGHUP without a certificate ends nothing', async () => {
  const receiver = new Receiver();
  const diverted: string[] = [];
  const proxy = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      diverted.push(request.url);
      return new Response();
    },
  });
  try {
    const address = `http://127.0.0.1:${proxy.port}`;
    platform = await Platform.start({ HTTP_PROXY: address, http_proxy: address, HTTPS_PROXY: address, https_proxy: address });
    const app = await platform.application(receiver.url, '+15550002');
    process.kill(platform.pid, 'SIGHUP');
    const sample = { event: 'session.created' };
    expect((await platform.operator('POST', `/apps/${app.appUuid}/events`, sample)).status).toBe(202);
    await receiver.until(() => receiver.count('session.created') === 1, 'the webhook');
    expect(diverted).toEqual([]);
  } finally {
    await receiver.stop();
    await proxy.stop(true);
  }
}, 60_000);

const hasScript = spawnSync('script', ['--version'], { stdio: 'ignore' }).error === undefined;

test.skipIf(!hasScript)(
  'a terminal that is closed stops the platform that runs in it, and its database',
  async () => {
    const root = join(import.meta.dir, '../..');
    const dataDir = mkdtempSync(join(tmpdir(), 'sidetone-terminal-'));
    const port = await freePort();
    const range = await RtpRange.take();
    const program = `${join(root, 'node_modules/.bin/bun')} --no-env-file src/main.ts`;
    const env = {
      PATH: process.env.PATH,
      DATA_DIR: dataDir,
      HTTP_PORT: String(port),
      SIP_LISTEN: 'udp:127.0.0.1:0',
      RTP_PORTS: range.ports,
      MEDIA_WORKERS: '1',
    };
    const terminal = spawn('script', ['-qec', program, '/dev/null'], { cwd: root, env, stdio: 'ignore' });
    const answers = () =>
      fetch(`http://127.0.0.1:${port}/readyz`).then(
        ({ status }) => status,
        () => 0,
      );
    try {
      for (const until = performance.now() + 40_000; (await answers()) !== 200 && performance.now() < until; )
        await Bun.sleep(50);
      expect(await answers()).toBe(200);
      terminal.kill('SIGKILL');
      const lock = join(dataDir, 'postgres', 'postmaster.pid');
      for (const until = performance.now() + 20_000; (await answers()) !== 0 && performance.now() < until; ) await Bun.sleep(50);
      for (const until = performance.now() + 10_000; existsSync(lock) && performance.now() < until; ) await Bun.sleep(50);
      expect([await answers(), existsSync(lock)]).toEqual([0, false]);
    } finally {
      terminal.kill('SIGKILL');
      range.free();
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
  90_000,
);
