/** The application of `sidetone dev`, without a platform: whom it takes events from. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { ROOT } from './blocks.ts';

const SECRET = `whsec_${Buffer.from('the secret').toString('base64')}`;
const platform = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ rooms: [] }) });
const OPTIONS = {
  platform: `http://127.0.0.1:${platform.port}`,
  credentials: { appUuid: 'app_1', apiKey: 'sk_1', webhookSecret: SECRET },
  number: '+15550001',
  port: 0,
};
// It runs on Node, as it does for a user.
const program = `const { startDemo } = await import(process.argv[1]);
console.log((await startDemo(JSON.parse(process.argv[2]))).url);`;
const node = ['--input-type=module', '-e', program, join(ROOT, 'bin/dev/demo.mjs'), JSON.stringify(OPTIONS)];
const child = spawn('node', node, { stdio: ['ignore', 'pipe', 'inherit'] });
let url = '';
beforeAll(async () => {
  for await (const line of child.stdout) {
    url = String(line).trim();
    break;
  }
}, 20_000);
afterAll(async () => {
  child.kill();
  await platform.stop(true);
});

test('An event is taken also where its letters are parted: a body is read in pieces of 64 KiB', async () => {
  // Two of three such bodies have a letter of three bytes across the end of a piece.
  for (const before of ['', 'a', 'aa']) {
    const body = JSON.stringify({ event: 'room.created', client_state: before + '☎'.repeat(50_000) });
    const now = new Date();
    const headers = {
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(SECRET).sign('evt_1', now, body),
    };
    expect((await fetch(`${url}hook`, { method: 'POST', headers, body })).status).toBe(204);
  }
});

test('An event that was not signed, and one of more than a megabyte, are refused', async () => {
  expect((await fetch(`${url}hook`, { method: 'POST', body: '{}' })).status).toBe(401);
  expect((await fetch(`${url}hook`, { method: 'POST', body: 'a'.repeat(1024 * 1024 + 1) })).status).toBe(413);
});
