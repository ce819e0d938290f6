/**
 * The first day of the programs of docs/examples: what is missing is said in one line, and what befalls a receiver does
 * not end them. They run without a platform.
 */
import { afterEach, expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { refusedPort } from '../support/refused-port.ts';
import { ROOT } from './blocks.ts';

const FOLDER = join(ROOT, 'docs/examples');
/** Every program. What receives webhooks for them, and makes their sounds, is a part of them. */
const PARTS = ['platform.mjs', 'sound.mjs'];
const names = readdirSync(FOLDER).filter((name) => name.endsWith('.mjs') && !PARTS.includes(name));

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A URL at which connections are refused until the test is over. */
async function nobody(): Promise<string> {
  const { port, close } = await refusedPort();
  closers.push(close);
  return `http://127.0.0.1:${port}`;
}

/** Reads a stream until it has this text, and resolves with all of it; with what there was if it ends before. */
function reader(stream: ReadableStream<Uint8Array>): (text: string) => Promise<string> {
  const parts = stream.getReader();
  const decoder = new TextDecoder();
  let output = '';
  return async (text) => {
    for (;;) {
      if (output.includes(text)) return output;
      const { done, value } = await parts.read();
      if (done) return output;
      output += decoder.decode(value, { stream: true });
    }
  };
}

/** What all of them are told; each also has what its head says. */
const CREDENTIALS = { APP: 'app_1', KEY: 'sk_1', SECRET: `whsec_${Buffer.from('the secret').toString('base64')}` };
/** The settings that some of them cannot do without. */
const REST = {
  OPENAI_API_KEY: 'none',
  BUCKET: 'http://127.0.0.1:9/calls',
  AWS_ACCESS_KEY_ID: 'none',
  AWS_SECRET_ACCESS_KEY: 'none',
  FOLDER: '/nowhere',
  FROM: '+15550001',
  NUMBERS: '+15550100',
  COLLEAGUE: '+15550100',
  AGENT: 'sip:alice',
  AGENTS: 'sip:alice',
  PERSON: '+15550100',
};

/** Runs an example to its end, and resolves with what it said and its exit code. */
async function runToEnd(name: string, environment: Readonly<Record<string, string>>) {
  const child = Bun.spawn(['node', join(FOLDER, name)], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [printed, said] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { printed, said, code: await child.exited };
}

/** The settings that the command in the head of an example gives it. The address of Pipecat has a default. */
const settingsInHead = (name: string): readonly string[] => {
  const command = /^\/\/.*\bAPP=.* node .*$/m.exec(readFileSync(join(FOLDER, name), 'utf8'))?.[0] ?? '';
  return [...command.matchAll(/\b([A-Z_]+)=/g)].map(([, setting = '']) => setting).filter((each) => each !== 'PIPECAT_URL');
};

for (const name of names)
  test(`${name} says in one line which settings of its head are missing`, async () => {
    const wanted = settingsInHead(name);
    expect(wanted).toContain('APP');
    const { printed, said, code } = await runToEnd(name, {});
    expect({ printed, code }).toEqual({ printed: '', code: 1 });
    expect(said).toMatch(new RegExp(`^set ${wanted.join(', ')}: .*apps create.*\\n$`));
    // Settings that are there are not asked for.
    const rest = wanted.filter((each) => !Object.hasOwn(CREDENTIALS, each));
    if (rest.length > 0) expect((await runToEnd(name, CREDENTIALS)).said).toMatch(new RegExp(`^set ${rest.join(', ')}: .*\\n$`));
  }, 30_000);

for (const name of names.filter((each) => each !== 'fetch-recordings.mjs'))
  test(`${name} says in one line that its port is taken`, async () => {
    await using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
    const { printed, said, code } = await runToEnd(name, { ...CREDENTIALS, ...REST, PORT: String(other.port) });
    expect({ printed, code }).toEqual({ printed: '', code: 1 });
    expect(said).toBe(`listen EADDRINUSE: address already in use 127.0.0.1:${other.port}: set PORT to another one\n`);
  }, 30_000);

/** They call the platform by themselves, and are told nothing. */
const ASK = ['campaign.mjs', 'fetch-recordings.mjs'];

/** A delivery as the platform makes it, and whatever a stranger may change of it. */
function deliver(
  url: string,
  body: string,
  { secret = CREDENTIALS.SECRET, at = new Date(), sent = body, id = crypto.randomUUID() } = {},
) {
  return fetch(url, {
    method: 'POST',
    headers: {
      'webhook-id': `evt_${id}`,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': `v1,AAAA ${new Webhook(secret).sign(`evt_${id}`, at, body)}`,
    },
    body: sent,
    signal: AbortSignal.timeout(10_000),
  });
}

/** Starts an example without a platform. Resolves with the process, what reads its output, and its address. */
async function receiving(name: string, more: Readonly<Record<string, string>> = {}) {
  const environment = { ...CREDENTIALS, ...REST, PORT: '0', BUCKET: await nobody(), SIDETONE_URL: await nobody(), ...more };
  const child = Bun.spawn(['node', join(FOLDER, name)], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdout: 'pipe',
    stderr: 'inherit',
  });
  closers.push(() => child.kill());
  const prints = reader(child.stdout);
  return { child, prints, url: /http:\S+/.exec(await prints('/\n'))?.[0] ?? '' };
}

for (const name of names.filter((each) => !ASK.includes(each))) {
  test(`${name} survives a look from a browser, a body that is no event, and a platform that is away`, async () => {
    const { child, prints, url } = await receiving(name);
    for (const method of ['HEAD', 'GET']) expect((await fetch(url, { method })).status).toBe(405);
    expect([204, 500]).toContain((await deliver(url, 'no event')).status);
    expect(await prints('failed: ')).toContain('failed: ');
    const created = { event: 'session.created', session_uuid: 'a', caller_id: '', did: '' };
    expect([204, 500]).toContain((await deliver(url, JSON.stringify(created))).status);
    expect(await prints('ECONNREFUSED')).toContain('ECONNREFUSED');
    expect(child.exitCode).toBeNull();
  }, 30_000);

  test(`${name} takes events of the platform only, and a request that breaks off does not end it`, async () => {
    const { child, prints, url } = await receiving(name);
    const ended = JSON.stringify({ event: 'session.ended', session_uuid: 'a', client_state: 'ü☎' });
    const unsigned = { method: 'POST', body: ended };
    expect((await fetch(url, unsigned)).status).toBe(401);
    expect((await fetch(url, { ...unsigned, headers: { 'webhook-signature': `v1,${'ü'.repeat(44)}` } })).status).toBe(401);
    const other = `whsec_${Buffer.from('another').toString('base64')}`;
    expect((await deliver(url, ended, { secret: other })).status).toBe(401);
    expect((await deliver(url, ended, { sent: ended.replace('"a"', '"b"') })).status).toBe(401);
    expect((await deliver(url, ended, { at: new Date(Date.now() - 301_000) })).status).toBe(401);
    expect(await prints('refused: not signed with SECRET\n')).not.toContain('session.ended');
    const { port, hostname } = new URL(url);
    const { promise: isClosed, resolve: close } = Promise.withResolvers<void>();
    const half = await Bun.connect({ hostname, port: Number(port), socket: { data: () => {}, close: () => close() } });
    half.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{');
    half.end();
    await isClosed;
    expect((await deliver(url, ended)).status).toBe(204);
    expect(child.exitCode).toBeNull();
  }, 30_000);
}

test('An event that is delivered twice is handled once, and one whose handling failed is handled again', async () => {
  const twice = await receiving('conference.mjs');
  const created = JSON.stringify({ event: 'room.created', room_id: 'a' });
  const last = JSON.stringify({ event: 'room.deleted', room_id: 'a' });
  const id = crypto.randomUUID();
  for (const body of [created, created]) expect((await deliver(twice.url, body, { id })).status).toBe(204);
  expect((await deliver(twice.url, last)).status).toBe(204);
  expect((await twice.prints('room.deleted a\n')).match(/room.created/g)).toHaveLength(1);
  // The bucket of this one is away.
  const again = await receiving('recordings-to-s3.mjs');
  const answered = JSON.stringify({ event: 'session.answered', session_uuid: 'a' });
  for (const status of [500, 500]) expect((await deliver(again.url, answered, { id })).status).toBe(status);
}, 30_000);

test('What the platform refuses because it came too fast is sent again when it says so, and the caller has a Room', async () => {
  const asked: string[] = [];
  const { promise: joined, resolve: join } = Promise.withResolvers<unknown>();
  await using busy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url);
      asked.push(pathname);
      if (pathname.endsWith('/members')) join(await request.json());
      if (asked.length === 1) return Response.json({ message: 'too fast' }, { status: 429, headers: { 'retry-after': '1' } });
      return Response.json({ room_id: 'r' });
    },
  });
  const { prints, url } = await receiving('conference.mjs', { SIDETONE_URL: `http://127.0.0.1:${busy.port}` });
  await deliver(url, JSON.stringify({ event: 'session.answered', session_uuid: 'a' }));
  expect(await joined).toEqual({ session_uuid: 'a' });
  expect(asked).toEqual(['/api/v1/rooms', '/api/v1/rooms', '/api/v1/rooms/r/members']);
  expect(await prints('session.answered a\n')).not.toContain('too fast');
}, 30_000);

test('conference.mjs makes another Room when one could not be made, and when the last caller of one is gone', async () => {
  const asked: string[] = [];
  let told = () => {};
  const first = Promise.withResolvers<void>();
  // The first Room breaks off, and the second one is made only after the third.
  const platform = createServer(async ({ url: path = '', socket }, response) => {
    asked.push(path);
    told();
    const rooms = asked.filter((each) => each === '/api/v1/rooms').length;
    if (path === '/api/v1/rooms' && rooms === 1) return socket.destroy();
    if (path === '/api/v1/rooms' && rooms === 2) await first.promise;
    if (path === '/api/v1/rooms' && rooms === 3) first.resolve();
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ room_id: `r${rooms}` }));
  });
  closers.push(() => void platform.close());
  await new Promise<void>((resolve) => platform.listen(0, '127.0.0.1', resolve));
  const address = platform.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const isAsked = async (path: string, times = 1) => {
    while (asked.filter((each) => each === path).length < times)
      await new Promise<void>((resolve) => {
        told = resolve;
      });
  };
  const { prints, url } = await receiving('conference.mjs', { SIDETONE_URL: `http://127.0.0.1:${port}` });
  const happens = (event: string, session_uuid: string) => deliver(url, JSON.stringify({ event, session_uuid }));
  for (const session of ['a', 'b', 'c']) await happens('session.created', session);
  await happens('session.answered', 'a');
  await prints('failed:');
  await happens('session.answered', 'b');
  await isAsked('/api/v1/rooms', 2);
  for (const session of ['a', 'b', 'c']) await happens('session.ended', session);
  await happens('session.created', 'd');
  await happens('session.answered', 'd');
  await isAsked('/api/v1/rooms', 3);
  await isAsked('/api/v1/rooms/r3/members');
}, 30_000);

test('fetch-recordings.mjs ends with the reason when the platform is away, so that cron tells of it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sidetone-fetched-'));
  try {
    const child = Bun.spawn(['node', join(FOLDER, 'fetch-recordings.mjs')], {
      env: {
        PATH: process.env.PATH ?? '',
        ...CREDENTIALS,
        FOLDER: folder,
        SIDETONE_URL: await nobody(),
      },
      stdout: 'pipe',
      stderr: 'inherit',
    });
    expect(await reader(child.stdout)('ECONNREFUSED')).toContain('failed: fetch failed connect ECONNREFUSED');
    expect(await child.exited).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 30_000);

test('fetch-recordings.mjs ends with the reason when its folder cannot be made', async () => {
  const { printed, said, code } = await runToEnd('fetch-recordings.mjs', { ...CREDENTIALS, FOLDER: '/dev/null/calls' });
  expect({ said, code }).toEqual({ said: '', code: 1 });
  expect(printed).toMatch(/^failed: ENOTDIR: .*\n$/);
}, 30_000);

test('campaign.mjs calls a number that is on the list twice once, and tells what became of it', async () => {
  const dialled = Promise.withResolvers<void>();
  const keys = new Set<string | null>();
  await using platform = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ url, headers }) {
      if (!url.endsWith(':dial')) return Response.json({});
      const key = headers.get('idempotency-key');
      const repeated: Record<string, string> = keys.has(key) ? { 'idempotent-replayed': 'true' } : {};
      keys.add(key);
      dialled.resolve();
      return Response.json({ session_uuid: 'a' }, { headers: repeated });
    },
  });
  const more = { NUMBERS: '+15550100,+15550100', SIDETONE_URL: `http://127.0.0.1:${platform.port}` };
  const { prints, url } = await receiving('campaign.mjs', more);
  await dialled.promise;
  const ended = { event: 'session.ended', session_uuid: 'a', client_state: '+15550100', answered: true };
  await deliver(url, JSON.stringify(ended));
  const results = (await prints('the list is done')).match(/^result .*$/gm);
  expect(results).toEqual(['result +15550100 answered by somebody']);
}, 30_000);

test('campaign.mjs ends with the reason when the platform is away, because nobody is called then', async () => {
  const child = Bun.spawn(['node', join(FOLDER, 'campaign.mjs')], {
    env: { PATH: process.env.PATH ?? '', PORT: '0', ...CREDENTIALS, ...REST, SIDETONE_URL: await nobody() },
    stdout: 'pipe',
    stderr: 'inherit',
  });
  expect(await reader(child.stdout)('ECONNREFUSED')).toContain('the list was not finished: fetch failed connect ECONNREFUSED');
  expect(await child.exited).toBe(1);
}, 30_000);
