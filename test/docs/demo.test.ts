/** The application of `sidetone dev`, without a platform: whom it takes events from, and what it ends. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { WebSocket } from 'ws';
import { ROOT } from './blocks.ts';

const SECRET = `whsec_${Buffer.from('the secret').toString('base64')}`;
/** A platform that makes Rooms only when it is told to. `left` is what it made, and nobody deleted. */
class SlowPlatform {
  readonly left = new Set<string>();
  readonly asked = Promise.withResolvers<void>();
  readonly released = Promise.withResolvers<void>();
  readonly emptied = Promise.withResolvers<void>();

  async answer(method: string, path: string): Promise<Response> {
    if (method === 'DELETE') {
      this.left.delete(path.split('/').at(-1) ?? '');
      if (this.left.size === 0) this.emptied.resolve();
      return new Response(null, { status: 204 });
    }
    if (path.endsWith('/members')) return Response.json({ message: 'Session not found' }, { status: 404 });
    if (path.startsWith('/v1/sessions:')) return Response.json({ session_uuid: this.#made(path.slice('/v1/'.length)) });
    if (method === 'GET' || path !== '/api/v1/rooms') return Response.json({ rooms: [] });
    this.asked.resolve();
    await this.released.promise;
    return Response.json({ room_id: this.#made('room') });
  }

  #made(name: string): string {
    this.left.add(name);
    return name;
  }
}

let slow = new SlowPlatform();
const platform = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: ({ method, url: asked }) => slow.answer(method, new URL(asked).pathname),
});
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
    expect(await delivered({ event: 'room.created', client_state: before + '☎'.repeat(50_000) })).toBe(204);
  }
});

test('Where the platform cannot be asked, nothing is left that would keep the program up', async () => {
  const gone = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.error() });
  const away = { ...OPTIONS, platform: `http://127.0.0.1:${gone.port}` };
  await gone.stop(true);
  const failing = `const { startDemo } = await import(process.argv[1]);
await startDemo(JSON.parse(process.argv[2])).catch(({ message }) => console.log(message));`;
  const args = ['--input-type=module', '-e', failing, join(ROOT, 'bin/dev/demo.mjs'), JSON.stringify(away)];
  const alone = Bun.spawn(['node', ...args], { stdio: ['ignore', 'pipe', 'inherit'], timeout: 15_000 });
  expect([await new Response(alone.stdout).text(), await alone.exited]).toEqual(['fetch failed\n', 0]);
}, 20_000);

/** Delivers a signed event. Resolves with the status of the answer. */
async function delivered(event: object): Promise<number> {
  const body = JSON.stringify(event);
  const now = new Date();
  const headers = {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(SECRET).sign('evt_1', now, body),
  };
  return (await fetch(`${url}hook`, { method: 'POST', headers, body })).status;
}

/** Opens the page's connection. `told` resolves with the next message of that type. */
async function opened() {
  const socket = new WebSocket(`${url.replace('http', 'ws')}page`, { headers: { origin: url.replace(/\/$/, '') } });
  const told = (type: string) =>
    new Promise<void>((resolve) =>
      socket.addEventListener('message', ({ data }) => {
        if (JSON.parse(String(data)).type === type) resolve();
      }),
    );
  await told('ready');
  return { socket, told };
}

test('A page that hangs up before its call is dialled, or is closed, leaves neither a call nor a Room', async () => {
  for (const isClosed of [false, true]) {
    slow = new SlowPlatform();
    const { socket, told } = await opened();
    socket.send(JSON.stringify({ type: 'call' }));
    await slow.asked.promise;
    if (isClosed) socket.close();
    else {
      const complained = told('error');
      socket.send(JSON.stringify({ type: 'hangup' }));
      // What comes after it, and is no message, is answered at once: the hang-up has been read.
      socket.send('!');
      await complained;
    }
    slow.released.resolve();
    await slow.emptied.promise;
    expect([...slow.left]).toEqual([]);
    socket.close();
  }
}, 10_000);

test('A caller who hangs up before the Room of the echo is made leaves no Room', async () => {
  slow = new SlowPlatform();
  for (const event of ['session.created', 'playback.ended']) await delivered({ event, session_uuid: 'call' });
  await slow.asked.promise;
  await delivered({ event: 'session.ended', session_uuid: 'call' });
  slow.released.resolve();
  await slow.emptied.promise;
  expect([...slow.left]).toEqual([]);
}, 10_000);

test('An event that was not signed, and one of more than a megabyte, are refused', async () => {
  expect((await fetch(`${url}hook`, { method: 'POST', body: '{}' })).status).toBe(401);
  expect((await fetch(`${url}hook`, { method: 'POST', body: 'a'.repeat(1024 * 1024 + 1) })).status).toBe(413);
});
