/** The SDKs against the running platform: TypeScript on Bun and on Node, Python as it is installed. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Hono } from 'hono';
import { pythonApi } from '../../sdk/python-api.ts';
import { pythonTypes } from '../../sdk/python-types.ts';
import {
  honoWebhook,
  Sidetone,
  SidetoneError,
  verifyWebhook,
  type WebhookEvent,
  WebhookVerificationError,
  webhookHandler,
} from '../../sdk/typescript/src/index.ts';
import { typescriptApi } from '../../sdk/typescript-api.ts';
import { keysWav } from '../support/keypad.ts';
import { type Credentials, Platform } from '../support/platform.ts';

const ROOT = join(import.meta.dir, '../..');
const NUMBER = '+15550081';

let platform: Platform;
let app: Credentials;
const events: WebhookEvent[] = [];
const waiting: (() => void)[] = [];
let receive: (request: Request) => Promise<Response> = async () => new Response(null, { status: 503 });
const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => receive(request) });

/** The first event of a name, of one Session or, without it, of any. */
async function event(name: WebhookEvent['event'], sessionUuid?: string): Promise<WebhookEvent> {
  const isOf = (each: WebhookEvent) => sessionUuid === undefined || ('session_uuid' in each && each.session_uuid === sessionUuid);
  for (;;) {
    const found = events.find((each) => each.event === name && isOf(each));
    if (found !== undefined) return found;
    await new Promise<void>((resolve) => waiting.push(resolve));
  }
}

beforeAll(async () => {
  platform = await Platform.start();
  app = await platform.application(`http://127.0.0.1:${server.port}/`, NUMBER);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  receive = webhookHandler(app.webhookSecret, (each) => {
    events.push(each);
    for (const wake of waiting.splice(0)) wake();
  });
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await server.stop(true);
});

test('the types tell what a field takes: its bounds, and text where it is a map of texts', () => {
  const types = readFileSync(join(ROOT, 'sdk/typescript/src/api.ts'), 'utf8');
  expect(types).toContain('/** 1 to 600. */\n  readonly ring_timeout_sec: number;');
  expect(types).toContain('readonly sip_headers?: Readonly<Record<string, string>>;');
});

test('the types tell what a field counts as where it is left out', () => {
  const types = readFileSync(join(ROOT, 'sdk/typescript/src/api.ts'), 'utf8');
  for (const line of [
    '/** 1 to 600000; 5000 when left out. */\n  readonly first_digit_timeout_ms?: number;',
    '/** 1 to 128; 1 when left out. */\n  readonly min_digits?: number;',
    '/** At most 16; one of 0-9, *, #, A-D; ["#"] when left out. */\n  readonly terminators?: readonly (string)[];',
    '/** 60 to 86400; 14400 when left out. */\n  readonly max_duration_sec?: number;',
    '/** 1000 to 30000; 5000 when left out. */\n    readonly timeout_ms?: number;',
    '/** 20 to 3600000; 500 when left out. */\n    readonly silence_duration_ms?: number;',
  ])
    expect(types).toContain(line);
  expect(types.match(/0 to 200; 100 when left out/g)).toHaveLength(3); // The volume of files, of a stream and of a push.
});

test('the SDKs are those of the document that is served', async () => {
  const document = await (await fetch(`${platform.url}/openapi.json`)).json();
  const kept = (path: string) => readFileSync(join(ROOT, 'sdk', path), 'utf8');
  expect(kept('typescript/src/api.ts')).toBe(typescriptApi(document));
  expect(kept('python/sidetone/_api.py')).toBe(pythonApi(document));
  expect(kept('python/sidetone/types.py')).toBe(pythonTypes(document));
});

describe('the SDK of TypeScript', () => {
  const client = (more: object = {}) =>
    new Sidetone({ baseUrl: platform.url, appUuid: app.appUuid, apiKey: app.apiKey, ...more });

  test('places a call, answers it, lists it and hangs up, and its webhooks are verified and typed', async () => {
    const sidetone = client();
    const call = await sidetone.sessions.dial({ from: NUMBER, to: NUMBER, ring_timeout_sec: 30 });
    await event('session.ringing_started', call.session_uuid);
    const created = await event('session.created');
    if (created.event !== 'session.created') throw new Error('another event');
    await sidetone.sessions.answer(created.session_uuid);
    await event('session.answered', call.session_uuid);
    const live: string[] = [];
    for await (const session of sidetone.sessions.list({ state: ['answered'] })) live.push(session.session_uuid);
    expect(live.sort()).toEqual([call.session_uuid, created.session_uuid].sort());
    expect((await sidetone.sessions.list()).length).toBe(2);
    await sidetone.sessions.disconnect(call.session_uuid);
    const ended = await event('session.ended', call.session_uuid);
    expect(ended).toMatchObject({ event: 'session.ended', hangup_cause: 'completed' });
  });

  test('gives a problem as an error with its code', async () => {
    const missing = client().sessions.answer('6a1f6f4e-58a5-4d0e-9a3c-2f9c8f6e0000');
    expect(await missing.catch((error: unknown) => error)).toMatchObject({
      name: 'SidetoneError',
      status: 404,
      code: 'not_found',
      message: 'Session not found',
    });
    expect(
      await client({ apiKey: 'wrong' })
        .app.get()
        .catch((error: unknown) => error instanceof SidetoneError && error.status),
    ).toBe(401);
  });

  test('tries again what is to be tried again, with the same key, and gives up in the end', async () => {
    const keys: (string | null)[] = [];
    let refusals = 2;
    const flaky = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        keys.push(request.headers.get('idempotency-key'));
        if (refusals-- > 0)
          return Response.json({ code: 'unavailable', message: 'later' }, { status: 503, headers: { 'retry-after': '0' } });
        return Response.json({ operation_uuid: 'o', status: 'in_progress' }, { status: 202 });
      },
    });
    const baseUrl = `http://127.0.0.1:${flaky.port}`;
    expect(await client({ baseUrl }).sessions.hold('x')).toMatchObject({ status: 'in_progress' });
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(3);
    refusals = 100;
    expect(
      await client({ baseUrl, maxRetries: 1 })
        .sessions.hold('x')
        .catch((error: unknown) => error),
    ).toMatchObject({ status: 503, retryAfter: 0 });
    await flaky.stop(true);
    expect(
      await client({ baseUrl, maxRetries: 0, timeoutMs: 500 })
        .sessions.hold('x')
        .catch(() => 'failed'),
    ).toBe('failed');
  });

  test('waits for the answer of a command that took longer than an attempt may', async () => {
    const { promise: asked, resolve: release } = Promise.withResolvers<void>();
    await using source = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      // The command is still under way when the second attempt asks.
      fetch: () => asked.then(() => new Response(keysWav('7'), { headers: { 'content-type': 'audio/wav' } })),
    });
    const statuses: number[] = [];
    const watching = async (...request: Parameters<typeof fetch>) => {
      const response = await fetch(...request);
      statuses.push(response.status);
      if (response.status === 409) release();
      return response;
    };
    const patient = client({ fetch: Object.assign(watching, { preconnect: fetch.preconnect }) });
    const { session_uuid: session } = await patient.sessions.dial({ from: NUMBER, to: NUMBER, ring_timeout_sec: 30 });
    await event('session.ringing_started', session);
    for (const each of await patient.sessions.list())
      if (each.session_uuid !== session) await patient.sessions.answer(each.session_uuid).catch(() => {});
    await event('session.answered', session);
    const urls = [`http://127.0.0.1:${source.port}/`];
    await patient.sessions.play(session, { type: 'files', urls }, { timeoutMs: 500 });
    expect(statuses.slice(-2)).toEqual([409, 202]);
    await patient.sessions.disconnect(session);
    await event('session.ended', session);
  }, 30_000);

  test('refuses a webhook that is altered, too old or of another secret, and takes one of a rotated secret', async () => {
    const body = '{"event":"session.created"}';
    const now = Date.UTC(2026, 0, 1);
    const key = Buffer.from(app.webhookSecret.slice(6), 'base64');
    const seconds = String(now / 1000);
    const signature = new Bun.CryptoHasher('sha256', key).update(`evt_1.${seconds}.${body}`).digest('base64');
    const headers = { 'webhook-id': 'evt_1', 'webhook-timestamp': seconds, 'webhook-signature': `v1,AAAA v1,${signature}` };
    const verify = (raw: string, secrets: string | readonly string[], at = now) => verifyWebhook(raw, headers, secrets, () => at);
    const titled = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()), value]),
    );
    expect(Object.keys(titled)[0]).toBe('Webhook-Id');
    expect(await verifyWebhook(body, titled, app.webhookSecret, () => now)).toMatchObject({ event: 'session.created' });
    const other = `whsec_${Buffer.alloc(32).toString('base64')}`;
    expect(await verify(body, [other, app.webhookSecret])).toMatchObject({ event: 'session.created' });
    const attempts = [
      () => verify(`${body} `, app.webhookSecret),
      () => verify(body, other),
      () => verify(body, app.webhookSecret, now + 600_000),
      () => verifyWebhook(body, {}, app.webhookSecret),
    ];
    for (const attempt of attempts)
      expect(await attempt().catch((error: unknown) => error instanceof WebhookVerificationError)).toBe(true);
    for (const secret of ['', 'whsec_', 'whsec_not base64!', 'whsec_AAAAA'])
      expect(await verify(body, secret).catch(String)).toBe('TypeError: a secret is whsec_ and base64, as the platform gave it');
  });

  test('is built for Node and places a call there', () => {
    const directory = mkdtempSync(join(tmpdir(), 'sidetone-sdk-'));
    try {
      execFileSync(join(ROOT, 'node_modules/.bin/tsc'), [
        '-p',
        join(ROOT, 'sdk/typescript/tsconfig.json'),
        '--outDir',
        directory,
      ]);
      const program = `import { Sidetone } from ${JSON.stringify(join(directory, 'index.js'))};
const { session_uuid } = await new Sidetone(JSON.parse(process.argv[1])).sessions.dial({ from: '${NUMBER}', to: '${NUMBER}', ring_timeout_sec: 30 });
console.log(session_uuid);`;
      const options = JSON.stringify({ baseUrl: platform.url, appUuid: app.appUuid, apiKey: app.apiKey });
      const { stdout, stderr } = spawnSync('node', ['--input-type=module', '-e', program, options], { encoding: 'utf8' });
      expect([stdout.trim(), stderr]).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), '']);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }, 30_000);
});

/** A body with the headers that the platform would send with it now. */
function signed(body: string): { readonly body: string; readonly headers: Record<string, string> } {
  const seconds = String(Math.floor(Date.now() / 1000));
  const key = Buffer.from(app.webhookSecret.slice(6), 'base64');
  const signature = new Bun.CryptoHasher('sha256', key).update(`evt_1.${seconds}.${body}`).digest('base64');
  const headers = { 'webhook-id': 'evt_1', 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` };
  return { body, headers: { ...headers, 'content-type': 'application/json' } };
}

describe('webhook handlers of the SDK of TypeScript', () => {
  test('Hono: an event is handed over, a forged one is 401, a failing handler lets the platform try again', async () => {
    const seen: string[] = [];
    const hono = new Hono();
    hono.post(
      '/hook',
      honoWebhook(app.webhookSecret, (event, { webhookId }) => {
        seen.push(`${event.event} ${webhookId}`);
        if (event.event === 'session.ended') throw new Error('the database of the application is away');
      }),
    );
    const send = async (body: string, more: Record<string, string> = {}) => {
      const { headers } = signed(body);
      return (await hono.request('/hook', { method: 'POST', body, headers: { ...headers, ...more } })).status;
    };
    expect(await send('{"event":"session.created"}')).toBe(204);
    expect(await send('{"event":"session.created"}', { 'webhook-id': 'evt_2' })).toBe(401);
    expect(await send('{"event":"session.ended"}')).toBe(500);
    // The identifier by which a delivery that comes twice is known.
    expect(seen).toEqual(['session.created evt_1', 'session.ended evt_1']);
  });

  test('Express, on Node: the bytes that came are verified, and a parsed body is a mistake that is told', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sidetone-sdk-'));
    const program = `import express from 'express';
import { expressWebhook } from ${JSON.stringify(join(directory, 'index.js'))};
const app = express();
const handler = expressWebhook(process.argv[1], (event, { webhookId }) => console.log(event.event, webhookId));
app.post('/hook', express.raw({ type: 'application/json' }), handler);
app.post('/parsed', express.json(), handler);
app.use((error, request, response, next) => response.status(500).send(error.message));
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));`;
    execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', join(ROOT, 'sdk/typescript/tsconfig.json'), '--outDir', directory]);
    const child = Bun.spawn(['node', '--input-type=module', '-e', program, app.webhookSecret], { cwd: ROOT, stdout: 'pipe' });
    try {
      const reader = child.stdout.getReader();
      const line = async () => new TextDecoder().decode((await reader.read()).value).trim();
      const base = `http://127.0.0.1:${await line()}`;
      const event = signed('{"event":"session.created"}');
      expect((await fetch(`${base}/hook`, { method: 'POST', ...event })).status).toBe(204);
      expect(await line()).toBe('session.created evt_1');
      expect((await fetch(`${base}/hook`, { method: 'POST', ...event, body: '{"event":"session.ended"}' })).status).toBe(401);
      expect(await (await fetch(`${base}/parsed`, { method: 'POST', ...event })).text()).toContain('use express.raw');
    } finally {
      child.kill();
      await child.exited;
      rmSync(directory, { recursive: true, force: true });
    }
  }, 30_000);
});

test('the SDK of TypeScript needs nothing that is not in every runtime', () => {
  const wrong = ['api', 'index', 'transport', 'webhook'].flatMap((name) => {
    const text = readFileSync(join(ROOT, `sdk/typescript/src/${name}.ts`), 'utf8');
    const imports = [...text.matchAll(/from '([^']+)'/g)]
      .map(([, target = '']) => target)
      .filter((target) => !target.startsWith('./'));
    return [...imports, ...(text.match(/\b(process|Buffer|require|Bun|Deno|__dirname)\b[.(]/g) ?? [])];
  });
  expect(wrong).toEqual([]);
});

const DENO = join(ROOT, 'node_modules/.bin/deno');
test.skipIf(!existsSync(DENO))(
  'the SDK of TypeScript places a call and verifies a webhook on Deno, with the network as its only permission',
  async () => {
    const program = `import { Sidetone, verifyWebhook, webhookHandler } from ${JSON.stringify(join(ROOT, 'sdk/typescript/src/index.ts'))};
const [options, hook, secret] = JSON.parse(await new Response(Deno.stdin.readable).text());
const sidetone = new Sidetone(options);
const call = await sidetone.sessions.dial({ from: '${NUMBER}', to: '${NUMBER}', ring_timeout_sec: 30 });
const live = [];
for await (const each of sidetone.sessions.list()) live.push(each.session_uuid);
await sidetone.sessions.disconnect(call.session_uuid);
const { event } = await verifyWebhook(hook.body, hook.headers, secret);
const handled = await webhookHandler(secret, () => {})(new Request('http://x/', { method: 'POST', ...hook }));
console.log(JSON.stringify([live.includes(call.session_uuid), event, handled.status]));`;
    const file = join(platform.dataDir, 'on-deno.ts');
    writeFileSync(file, program);
    const options = { baseUrl: platform.url, appUuid: app.appUuid, apiKey: app.apiKey };
    const child = Bun.spawn([DENO, 'run', '--allow-net', '--no-config', '--no-check', file], {
      stdin: new Blob([JSON.stringify([options, signed('{"event":"session.created"}'), app.webhookSecret])]),
      stdout: 'pipe',
      stderr: 'pipe',
      env: { PATH: process.env.PATH ?? '', HOME: platform.dataDir, DENO_NO_UPDATE_CHECK: '1' },
    });
    const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect([output.trim(), errors]).toEqual([JSON.stringify([true, 'session.created', 204]), '']);
  },
  30_000,
);

const PYTHON = `
import asyncio, json, os, sys
from sidetone import Sidetone, SidetoneError, WebhookVerificationError, asgi_webhook, verify_webhook

client = Sidetone(base_url=os.environ["URL"], app_uuid=os.environ["APP"], api_key=os.environ["KEY"])
call = client.sessions.dial(from_=os.environ["NUMBER"], to=os.environ["NUMBER"], ring_timeout_sec=30)
again = client.sessions.dial(from_=os.environ["NUMBER"], to=os.environ["NUMBER"], ring_timeout_sec=30, idempotency_key="python-key")
replayed = client.sessions.dial(from_=os.environ["NUMBER"], to=os.environ["NUMBER"], ring_timeout_sec=30, idempotency_key="python-key")
assert again == replayed, (again, replayed)
live = [session["session_uuid"] for session in client.sessions.list()]
assert call["session_uuid"] in live and again["session_uuid"] in live
client.sessions.disconnect(call["session_uuid"])
client.sessions.disconnect(again["session_uuid"])
room = client.rooms.create(voice_activity_events=True)
assert client.rooms.get(room["room_id"])["voice_activity_events"] is True
client.rooms.delete(room["room_id"])
try:
    client.sessions.answer("6a1f6f4e-58a5-4d0e-9a3c-2f9c8f6e0000")
except SidetoneError as error:
    assert (error.status, error.code) == (404, "not_found")
else:
    raise AssertionError("no error")

hook = json.loads(sys.stdin.read())
told = verify_webhook(hook["body"], hook["headers"], ["whsec_AAAA", os.environ["SECRET"]])
sent = {name.lower(): value for name, value in hook["headers"].items()}
assert (told["event"], told.webhook_id) == ("session.created", sent["webhook-id"]), told.webhook_id
try:
    verify_webhook(hook["body"] + " ", hook["headers"], os.environ["SECRET"])
except WebhookVerificationError:
    pass
else:
    raise AssertionError("an altered body was taken")

for secret in ["", "whsec_", "whsec_***"]:
    try:
        verify_webhook(hook["body"], hook["headers"], secret)
    except ValueError:
        pass
    else:
        raise AssertionError("a secret without a key was taken")
for name, value in [("webhook-signature", "v1,\u00e9"), ("webhook-timestamp", "\u00b2"), ("webhook-timestamp", "1" * 5000)]:
    try:
        verify_webhook(hook["body"], {**{key.lower(): each for key, each in hook["headers"].items()}, name: value}, os.environ["SECRET"])
    except WebhookVerificationError:
        pass
    else:
        raise AssertionError("a strange field was taken")

seen, sent = [], []
async def on_event(event): seen.append(event["event"])
async def receive(): return {"type": "http.request", "body": hook["body"].encode(), "more_body": False}
async def send(message): sent.append(message)
scope = {"type": "http", "method": "POST", "headers": [(name.encode(), value.encode()) for name, value in hook["headers"].items()]}
asyncio.run(asgi_webhook(os.environ["SECRET"], on_event)(scope, receive, send))
assert seen == ["session.created"] and sent[0]["status"] == 204

try:
    import flask
except ImportError:
    print("flask is not installed", file=sys.stderr)
else:
    from sidetone import flask_webhook
    web = flask.Flask("test")
    web.post("/hook")(flask_webhook(os.environ["SECRET"], lambda event: seen.append(event["event"])))
    web.post("/other")(flask_webhook(os.environ["SECRET"], lambda event: None))
    browser = web.test_client()
    assert browser.post("/hook", data=hook["body"], headers=hook["headers"]).status_code == 204
    assert browser.post("/hook", data="{}", headers=hook["headers"]).status_code == 401
    assert seen == ["session.created", "session.created"]
print("all is well")
`;

/** The sample's line in a stream that may tell of other events too. */
const SAMPLE = /^data: (.*session\.created.*)\n/m;
const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0;

test.skipIf(!hasPython)(
  'the SDK of Python places calls, replays by key, makes Rooms, and verifies what the platform signs',
  async () => {
    const abort = new AbortController();
    const token = readFileSync(join(platform.dataDir, 'operator.token'), 'utf8').trim();
    const stream = await fetch(`${platform.url}/operator/v1/events/stream?signed=true`, {
      headers: { authorization: `Bearer ${token}` },
      signal: abort.signal,
    });
    await platform.operator('POST', `/apps/${app.appUuid}/events`, { event: 'session.created' });
    let text = '';
    for await (const chunk of stream.body ?? []) {
      text += new TextDecoder().decode(chunk);
      if (SAMPLE.test(text)) break;
    }
    abort.abort();
    const hook = SAMPLE.exec(text)?.[1] ?? '';
    const child = spawn('python3', ['-W', 'error', '-c', PYTHON], {
      env: {
        PATH: process.env.PATH ?? '',
        PYTHONPATH: join(ROOT, 'sdk/python'),
        PYTHONDONTWRITEBYTECODE: '1',
        URL: platform.url,
        APP: app.appUuid,
        KEY: app.apiKey,
        SECRET: app.webhookSecret,
        NUMBER,
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let output = '';
    for (const source of [child.stdout, child.stderr])
      source.on('data', (chunk) => {
        output += chunk;
      });
    child.stdin.end(hook);
    await new Promise((resolve) => child.once('exit', resolve));
    expect(output.replace('flask is not installed\n', '').trim()).toBe('all is well');
  },
  30_000,
);

const BROKEN_OFF = `
import os
from http.client import HTTPException
from sidetone import Sidetone

options = dict(base_url=os.environ["URL"], app_uuid="app_1", api_key="key")
assert Sidetone(**options).sessions.hold("x")["status"] == "in_progress"
try:
    Sidetone(**options, max_retries=0).sessions.hold("y")
except OSError as error:
    assert isinstance(error.__cause__, HTTPException), error
else:
    raise AssertionError("no error")
print("all is well")
`;

test.skipIf(!hasPython)(
  'the SDK of Python tries again, with the same key, where an answer breaks off in its body',
  async () => {
    const keys: string[] = [];
    const server = createServer((socket) => {
      socket.once('data', (data) => {
        keys.push(/^idempotency-key: (.*)\r$/im.exec(data.toString())?.[1] ?? '');
        const body = '{"operation_uuid":"o","status":"in_progress"}';
        const isWhole = keys.length === 2;
        socket.end(
          `HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${isWhole ? body : body.slice(0, 10)}`,
        );
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const child = Bun.spawn(['python3', '-c', BROKEN_OFF], {
      env: {
        PATH: process.env.PATH ?? '',
        PYTHONPATH: join(ROOT, 'sdk/python'),
        PYTHONDONTWRITEBYTECODE: '1',
        URL: `http://127.0.0.1:${port}`,
      },
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const output = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    server.close();
    expect(output).toEqual(['all is well\n', '']);
    expect(keys).toHaveLength(3);
    expect(keys[0]).toBe(keys[1]);
  },
  30_000,
);
