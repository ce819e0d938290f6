/** The transport of the SDKs against servers that are no platform: redirects, pages, waits that are given up. */
import { expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Sidetone, verifyWebhook } from '../../sdk/typescript/src/index.ts';

const ROOT = join(import.meta.dir, '../..');
const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0;

/** What a program for the SDK of Python says, and what it complains of. */
async function python(program: string, more: Readonly<Record<string, string>> = {}, argument = ''): Promise<[string, string]> {
  const child = Bun.spawn(['python3', '-c', program, argument], {
    env: { PATH: process.env.PATH ?? '', PYTHONPATH: join(ROOT, 'sdk/python'), PYTHONDONTWRITEBYTECODE: '1', ...more },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  return await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
}

/** Redirects from one port to another, which answers every GET with a list, and counts what comes there. */
function redirecting() {
  const followed: string[] = [];
  const to = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      followed.push(request.method);
      return Response.json({ messages: [] });
    },
  });
  const from = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) =>
      request.method === 'DELETE'
        ? new Response('<html>', { headers: { 'content-type': 'text/html' } })
        : new Response(null, { status: 301, headers: { location: `http://127.0.0.1:${to.port}/` } }),
  });
  const message = `redirected to http://127.0.0.1:${to.port}/: set B to where the platform is`;
  return {
    baseUrl: `http://127.0.0.1:${from.port}`,
    message,
    followed,
    stop: () => Promise.all([from.stop(true), to.stop(true)]),
  };
}

test('the SDK of TypeScript follows no redirect, which would make a GET of a command, and says what the answer of something else is', async () => {
  const { baseUrl, message, followed, stop } = redirecting();
  const { messages, sessions } = new Sidetone({ baseUrl, appUuid: 'app_1', apiKey: 'key' });
  const sent = await messages.send({ from: '+15550100', to: '+15550199', text: 'x' }).catch((error: unknown) => error);
  expect(sent).toMatchObject({ name: 'SidetoneError', status: 301, message: message.replace('B', 'baseUrl') });
  expect(await sessions.disconnect('x').catch(String)).toBe('SidetoneError: 200 without JSON: baseUrl leads to something else');
  expect(followed).toEqual([]);
  await stop();
});

/** A server that is no platform: what it answers with, by the first part of the path. */
const others = () =>
  Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => {
      const answer = new URL(request.url).pathname.split('/')[1] ?? '';
      return answer === 'empty'
        ? new Response(null, { status: 204 })
        : new Response(decodeURIComponent(answer), { headers: { 'content-type': 'application/json' } });
    },
  });

/** Each answer of such a server, and what it is without for a list. */
const OTHERS: readonly (readonly [answer: string, missing: string])[] = [
  ['{}', 'sessions'],
  ['{"sessions":1}', 'sessions'],
  ['empty', 'sessions'],
  ['[]', 'JSON'],
  ['1', 'JSON'],
  ['{"a', 'JSON'],
];

test('the SDK of TypeScript says of JSON of another shape that it is of something else', async () => {
  using other = others();
  for (const [answer, missing] of OTHERS) {
    const baseUrl = `http://127.0.0.1:${other.port}/${encodeURIComponent(answer)}`;
    const { sessions } = new Sidetone({ baseUrl, appUuid: 'app_1', apiKey: 'key' });
    const said = await sessions.list().then(String, String);
    expect([answer, said]).toEqual([answer, `SidetoneError: 200 without ${missing}: baseUrl leads to something else`]);
  }
});

const STRANGE = `
import os
from urllib.parse import quote
from sidetone import Sidetone, SidetoneError

for answer in os.environ["ANSWERS"].split(" "):
    try:
        print(Sidetone(base_url=os.environ["URL"] + "/" + quote(answer), app_uuid="app_1", api_key="key").sessions.list())
    except SidetoneError as error:
        print(error)
`;

test.skipIf(!hasPython)('the SDK of Python says of JSON of another shape that it is of something else', async () => {
  using other = others();
  const ANSWERS = OTHERS.map(([answer]) => answer).join(' ');
  const [output, errors] = await python(STRANGE, { URL: `http://127.0.0.1:${other.port}`, ANSWERS });
  const lines = OTHERS.map(([, missing]) => `200 without ${missing}: base_url leads to something else\n`);
  expect([output, errors]).toEqual([lines.join(''), '']);
});

test('the SDK of TypeScript ends a wait for another attempt with the signal that was aborted before it', async () => {
  const abort = new AbortController();
  const later = async () => {
    abort.abort(new Error('enough'));
    return Response.json({ code: 'unavailable', message: 'later' }, { status: 503, headers: { 'retry-after': '50' } });
  };
  const sidetone = new Sidetone({
    baseUrl: 'http://127.0.0.1:1',
    appUuid: 'app_1',
    apiKey: 'key',
    fetch: Object.assign(later, { preconnect: fetch.preconnect }),
  });
  expect(await sidetone.sessions.hold('x', { signal: abort.signal }).catch(String)).toBe('Error: enough');
});

/** A platform that refuses a hold with each of these statuses first, and the keys that it was asked with. */
function refusing(statuses: readonly number[]) {
  const keys: (string | null)[] = [];
  const left = [...statuses];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      keys.push(request.headers.get('idempotency-key'));
      const status = left.shift();
      const problem = { code: 'unavailable', message: 'later' };
      if (status !== undefined) return Response.json(problem, { status, headers: { 'retry-after': '0' } });
      return Response.json({ operation_uuid: 'o', status: 'in_progress' }, { status: 202 });
    },
  });
  return { keys, baseUrl: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
}
const TRIED_AGAIN = [409, 429, 503, 529];
const GIVEN_UP = [400, 401, 403, 404, 413, 415, 422, 500, 502];

test('the SDK of TypeScript tries again what passes, under one key, and nothing else', async () => {
  for (const status of [...TRIED_AGAIN, ...GIVEN_UP]) {
    const { baseUrl, keys, stop } = refusing([status]);
    const { sessions } = new Sidetone({ baseUrl, appUuid: 'app_1', apiKey: 'key' });
    const held = await sessions.hold('x').then(
      (answer) => answer.status,
      (error: unknown) => error,
    );
    await stop();
    const isTried = TRIED_AGAIN.includes(status);
    expect([status, held, keys.length, new Set(keys).size]).toMatchObject([
      status,
      isTried ? 'in_progress' : { status },
      isTried ? 2 : 1,
      1,
    ]);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
  }
}, 20_000);

const HOLD = `
import json, os, sys
from sidetone import Sidetone, SidetoneError

told = []
for url in json.loads(sys.argv[1]):
    try:
        told.append(Sidetone(base_url=url, app_uuid="app_1", api_key="key").sessions.hold("x")["status"])
    except SidetoneError as error:
        told.append(error.status)
print(json.dumps(told))
`;

test.skipIf(!hasPython)(
  'the SDK of Python tries again what passes, under one key, and nothing else',
  async () => {
    const servers = [...TRIED_AGAIN, ...GIVEN_UP].map((status) => ({ status, ...refusing([status]) }));
    const [stdout, stderr] = await python(HOLD, {}, JSON.stringify(servers.map(({ baseUrl }) => baseUrl)));
    for (const { stop } of servers) await stop();
    expect([stderr, JSON.parse(stdout)]).toEqual(['', [...TRIED_AGAIN.map(() => 'in_progress'), ...GIVEN_UP]]);
    expect(servers.map(({ keys }) => [keys.length, new Set(keys).size])).toEqual([
      ...TRIED_AGAIN.map(() => [2, 1]),
      ...GIVEN_UP.map(() => [1, 1]),
    ]);
  },
  20_000,
);

const TYPES = `
import typing
from sidetone import _api

methods = [each for resource in vars(_api).values() if isinstance(resource, type) and resource.__module__ == "sidetone._api"
           for name, each in vars(resource).items() if not name.startswith("_")]
loose = [method.__qualname__ for method in methods if typing.Any in typing.get_type_hints(method).values()]
dial = typing.get_type_hints(_api.Sessions.dial)
print(len(methods) > 50, loose, dial["from_"], dial["ring_timeout_sec"], typing.get_type_hints(_api.Recordings.create)["channels"])
`;

test.skipIf(!hasPython)('the methods of the SDK of Python have a type for every field, which Python can resolve', async () => {
  const [stdout, stderr] = await python(TYPES);
  expect([stdout, stderr]).toEqual(["True [] <class 'str'> <class 'int'> typing.Literal['mono', 'stereo']\n", '']);
});

const IN_PROGRESS = `
import os
from sidetone import Sidetone, SidetoneError

client = Sidetone(base_url=os.environ["URL"], app_uuid="app_1", api_key="key")
print(client.sessions.hold("x")["status"])
try:
    client.sessions.hold("y")
except SidetoneError as error:
    print(error.status, error.retry_after)
`;

test.skipIf(!hasPython)(
  'the SDK of Python waits for the answer of a command that is still under way, and not for a state',
  async () => {
    const keys: (string | null)[] = [];
    const conflict = { code: 'conflict', message: 'x' };
    const answers = [
      Response.json(conflict, { status: 409, headers: { 'retry-after': '0' } }),
      Response.json({ operation_uuid: 'o', status: 'in_progress' }, { status: 202 }),
      Response.json(conflict, { status: 409 }),
    ];
    await using server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        keys.push(request.headers.get('idempotency-key'));
        return answers.shift() ?? new Response(null, { status: 500 });
      },
    });
    expect(await python(IN_PROGRESS, { URL: `http://127.0.0.1:${server.port}` })).toEqual(['in_progress\n409 None\n', '']);
    expect([keys.length, keys[0] === keys[1]]).toEqual([3, true]);
  },
);

const REDIRECTED = `
import os
from sidetone import Sidetone, SidetoneError

client = Sidetone(base_url=os.environ["URL"], app_uuid="app_1", api_key="key")
for command in (lambda: client.messages.send(from_="+15550100", to="+15550199", text="x"), lambda: client.sessions.disconnect("x")):
    try:
        command()
    except SidetoneError as error:
        print(error.status, error)
`;

test.skipIf(!hasPython)('the SDK of Python follows no redirect, and says what the answer of something else is', async () => {
  const { baseUrl, message, followed, stop } = redirecting();
  const [output, errors] = await python(REDIRECTED, { URL: baseUrl });
  const wanted = `301 ${message.replace('B', 'base_url')}\n200 200 without JSON: base_url leads to something else\n`;
  expect([output, errors]).toEqual([wanted, '']);
  expect(followed).toEqual([]);
  await stop();
});

test('the SDK of TypeScript keeps the path before the platform, and names at once what is missing or no address', async () => {
  const asked: string[] = [];
  const note = async (url: RequestInfo | URL) => {
    asked.push(String(url));
    return Response.json({ rooms: [] });
  };
  const given = { baseUrl: 'https://proxy.example.com/voice/', appUuid: 'app_1', apiKey: 'key' };
  await new Sidetone({ ...given, fetch: Object.assign(note, { preconnect: fetch.preconnect }) }).rooms.list();
  expect(asked).toEqual(['https://proxy.example.com/voice/api/v1/rooms']);
  expect(() => new Sidetone({ ...given, baseUrl: '127.0.0.1:8080' })).toThrow('baseUrl must be an http or https URL');
  expect(() => new Sidetone({ ...given, appUuid: '' })).toThrow('appUuid is missing');
  expect(() => new Sidetone({ ...given, apiKey: '' })).toThrow('apiKey is missing');
  expect(() => new Sidetone({ ...given, apiKey: 'key\n' })).toThrow('apiKey has a space, an end of a line');
});

const MISSING = `
from sidetone import Sidetone
for more in ({"base_url": "127.0.0.1:8080"}, {"app_uuid": None}, {"api_key": ""}, {"api_key": "key\\n"}):
    try:
        Sidetone(**{"base_url": "http://127.0.0.1:1", "app_uuid": "app_1", "api_key": "key", **more})
    except ValueError as error:
        print(error)
`;

test.skipIf(!hasPython)('the SDK of Python names at once what is missing or no address', async () => {
  const [stdout, stderr] = await python(MISSING);
  const told = [
    "base_url must be an http or https URL, not '127.0.0.1:8080'",
    'app_uuid is missing',
    'api_key is missing',
    'api_key has a space, an end of a line or a character beyond ASCII',
  ];
  expect([stderr, stdout.trim().split('\n')]).toEqual(['', told]);
});

/** What proxies say in Retry-After, and the seconds that it means; null where it means none. */
const RETRY_AFTER = [
  ['7', 7],
  ['Thu, 01 Jan 2026 00:00:00 GMT', 0],
  ['-5', null],
  ['', null],
  ['soon', null],
] as const;

test('the SDK of TypeScript takes a Retry-After in seconds or as a date, and nothing else', async () => {
  for (const [text, seconds] of RETRY_AFTER) {
    const busy = async () => Response.json({ code: 'unavailable' }, { status: 503, headers: { 'retry-after': text } });
    const sidetone = new Sidetone({
      baseUrl: 'http://127.0.0.1:1',
      appUuid: 'app_1',
      apiKey: 'key',
      maxRetries: 0,
      fetch: Object.assign(busy, { preconnect: fetch.preconnect }),
    });
    const error = await sidetone.rooms.list().then(
      () => undefined,
      (rejection: unknown) => rejection,
    );
    expect([text, error]).toMatchObject([text, { status: 503, retryAfter: seconds ?? undefined }]);
  }
});

const AFTER = `
from sidetone._transport import _seconds
import json, sys
print(json.dumps([_seconds(text) for text in json.loads(sys.argv[1])]))
`;

test.skipIf(!hasPython)('the SDK of Python takes a Retry-After in seconds or as a date, and nothing else', async () => {
  const texts = JSON.stringify(RETRY_AFTER.map(([text]) => text));
  const [stdout, stderr] = await python(AFTER, {}, texts);
  expect([stderr, JSON.parse(stdout)]).toEqual(['', RETRY_AFTER.map(([, seconds]) => seconds)]);
});

/** The headers of a webhook that is signed now. */
function signed(body: Uint8Array, key: Uint8Array) {
  const seconds = String(Math.floor(Date.now() / 1000));
  const signature = new Bun.CryptoHasher('sha256', key).update(`evt_1.${seconds}.`).update(body).digest('base64');
  return { 'webhook-id': 'evt_1', 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` };
}

test('the verifier of TypeScript holds the signature against the bytes that came', async () => {
  const key = new Uint8Array(32).fill(7);
  const secret = `whsec_${Buffer.from(key).toString('base64')}`;
  const text = '{"event":"session.created","client_state":"שלום 🙂"}';
  const bytes = new TextEncoder().encode(text);
  const headers = signed(bytes, key);
  for (const raw of [text, bytes, bytes.slice().buffer])
    expect(await verifyWebhook(raw, headers, secret)).toMatchObject({ client_state: 'שלום 🙂' });
  // A decoder drops a byte order mark, and gives the same text for all octets that are no UTF-8.
  const marked = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]);
  const replaced = new TextEncoder().encode('{"a":"\ufffd"}');
  const octet = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')]);
  for (const [raw, head] of [
    [marked, headers],
    [octet, signed(replaced, key)],
  ] as const)
    expect(await verifyWebhook(raw, head, secret).catch(String)).toStartWith('WebhookVerificationError: webhook-signature');
});

/** Asks a platform that answers with one outcome after the other, the last of them for ever, and tells the waits. */
async function waits(outcomes: readonly (Response | Error)[], signal?: AbortSignal) {
  const asked: Headers[] = [];
  const waited: number[] = [];
  const timers = Object.getOwnPropertyDescriptor(globalThis, 'setTimeout') ?? {};
  const atOnce = (run: () => void, ms: number) => {
    waited.push(ms);
    queueMicrotask(run);
  };
  Object.defineProperty(globalThis, 'setTimeout', { ...timers, value: atOnce });
  const answer = async (_url: unknown, init: RequestInit = {}) => {
    const outcome = outcomes[Math.min(asked.length, outcomes.length - 1)] ?? new Error('no outcome');
    asked.push(new Headers(init.headers));
    if (outcome instanceof Error) throw outcome;
    return outcome.clone();
  };
  const fetching = Object.assign(answer, { preconnect: fetch.preconnect });
  const { sessions } = new Sidetone({ baseUrl: 'http://127.0.0.1:1', appUuid: 'app_1', apiKey: 'key', fetch: fetching });
  const said = await sessions.hold('x', signal && { signal }).then(
    ({ status }) => status,
    (error: unknown) => error,
  );
  Object.defineProperty(globalThis, 'setTimeout', timers);
  const keys = new Set(asked.map((headers) => headers.get('idempotency-key')));
  return { said, waited, attempts: asked.length, keys: keys.size };
}

test('the SDK of TypeScript waits as it is told, longer each time where nobody knows how long, and a minute at most', async () => {
  const done = Response.json({ operation_uuid: 'o', status: 'in_progress' }, { status: 202 });
  const refused = (status: number, seconds?: number) =>
    Response.json({ code: 'later' }, { status, headers: seconds === undefined ? {} : { 'retry-after': String(seconds) } });
  const page = new Response('<html>', { status: 503, headers: { 'content-type': 'text/html', 'retry-after': '3' } });
  const lost = new Error('connection lost');
  const cases: readonly (readonly [outcomes: readonly (Response | Error)[], said: unknown, waited: readonly number[]])[] = [
    [[refused(503, 7), refused(529, 7), done], 'in_progress', [7_000, 7_000]],
    [[refused(409, 1), refused(409, 1), refused(409, 1), done], 'in_progress', [1_000, 2_000, 4_000]],
    [[lost, lost, lost, done], 'in_progress', [200, 400, 800]],
    [[lost], lost, [200, 400, 800]],
    [[refused(429, 500), done], 'in_progress', [60_000]],
    [[page, done], 'in_progress', [3_000]],
    [[refused(503)], { status: 503, code: 'later' }, []],
    [[refused(503, 1)], { status: 503, retryAfter: 1 }, [1_000, 1_000, 1_000]],
  ];
  for (const [outcomes, said, waited] of cases) {
    const told = await waits(outcomes);
    expect(told).toMatchObject({ waited, attempts: waited.length + 1, keys: 1 });
    if (typeof said === 'object') expect(told.said).toMatchObject(said ?? {});
    else expect(told.said).toBe(said);
  }
  expect(await waits([lost], AbortSignal.abort())).toMatchObject({ said: lost, waited: [], attempts: 1 });
});

/** What stands in the headers of a webhook, the seconds by which it came late, and whether it is taken. */
const DELIVERIES: readonly (readonly [timestamp: string, before: string, lateSec: number, isTaken: boolean])[] = [
  ['1767225600', '', 300, true],
  ['1767225600', '', -300, true],
  ['1767225600', '', 301, false],
  ['1767225600', '', -301, false],
  ['1767225600', 'v1,AAAA v2,AAAA ', 0, true],
  ['1767225600', 'AAAA', 0, false],
  ['soon', '', 0, false],
  ['1.7672256e9', '', 0, false],
  ['-1767225600', '', 0, false],
  ['01767225600 ', '', 0, false],
];
const ALWAYS_KEY = new Uint8Array(32).fill(9);
const deliveries = DELIVERIES.map(([timestamp, before, lateSec, isTaken]) => {
  const signature = new Bun.CryptoHasher('sha256', ALWAYS_KEY).update(`evt_1.${timestamp}.{}`).digest('base64');
  const headers = { 'Webhook-Id': 'evt_1', 'Webhook-Timestamp': timestamp, 'Webhook-Signature': `${before}v1,${signature}` };
  return { headers, now: 1_767_225_600 + lateSec, isTaken };
});

test('the verifier of TypeScript takes one of several signatures, for five minutes, and no time that is no number', async () => {
  const secret = `whsec_${Buffer.from(ALWAYS_KEY).toString('base64')}`;
  for (const { headers, now, isTaken } of deliveries) {
    const said = await verifyWebhook('{}', headers, secret, () => now * 1000).then(JSON.stringify, ({ name }) => name);
    expect([headers, now, said]).toEqual([headers, now, isTaken ? '{}' : 'WebhookVerificationError']);
  }
});

const DELIVERED = `
import json, sys
from sidetone import WebhookVerificationError, verify_webhook

told = []
for each in json.loads(sys.argv[1]):
    try:
        verify_webhook(b"{}", each["headers"], "whsec_CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=", now=lambda: each["now"])
        told.append(True)
    except WebhookVerificationError:
        told.append(False)
print(json.dumps(told))
`;

test.skipIf(!hasPython)(
  'the verifier of Python takes one of several signatures, for five minutes, and no time that is no number',
  async () => {
    const [stdout, stderr] = await python(DELIVERED, {}, JSON.stringify(deliveries));
    expect([stderr, JSON.parse(stdout)]).toEqual(['', deliveries.map(({ isTaken }) => isTaken)]);
  },
);

test('the verifier of TypeScript says that a secret is missing, and that a body was parsed', async () => {
  const headers = signed(new Uint8Array(), new Uint8Array(32));
  // What comes from plain JavaScript has no types: a variable that is not set, a body that a framework has parsed.
  const loosely = (raw: unknown, secrets: unknown): Promise<string> =>
    Promise.resolve(Reflect.apply(verifyWebhook, undefined, [raw, headers, secrets])).catch(String);
  for (const secrets of [undefined, [undefined], null])
    expect(await loosely('{}', secrets)).toBe('TypeError: a secret is whsec_ and base64, as the platform gave it');
  expect(await loosely('{}', [])).toBe('TypeError: no secret is given');
  expect(await loosely({ event: 'x' }, 'whsec_AAAA')).toStartWith('TypeError: raw must be the body as it came');
});

const NO_SECRET = `
import time
from sidetone import verify_webhook
headers = {"webhook-id": "evt_1", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
for secrets in (None, [None], []):
    try:
        verify_webhook(b"{}", headers, secrets)
    except ValueError as error:
        print(error)
`;

test.skipIf(!hasPython)('the verifier of Python says that a secret is missing', async () => {
  const [stdout, stderr] = await python(NO_SECRET);
  const none = 'a secret is whsec_ and base64, as the platform gave it';
  expect([stderr, stdout.trim().split('\n')]).toEqual(['', [none, none, 'no secret is given']]);
});

/** Answers lists of recordings in pages of two, out of five. */
function pagingServer(asked: string[]) {
  const all = [1, 2, 3, 4, 5].map((number) => ({ recording_uuid: `rec_${number}` }));
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      const { searchParams } = new URL(request.url);
      asked.push(searchParams.toString());
      const from = Number(searchParams.get('after') ?? 0);
      return Response.json({ recordings: all.slice(from, from + 2), after: from + 2 < all.length ? String(from + 2) : '' });
    },
  });
}

test('the SDK of TypeScript goes through all pages of a list, and gives the first one where it is awaited', async () => {
  const asked: string[] = [];
  await using server = pagingServer(asked);
  const sidetone = new Sidetone({ baseUrl: `http://127.0.0.1:${server.port}`, appUuid: 'app_1', apiKey: 'key' });
  const names: string[] = [];
  for await (const { recording_uuid } of sidetone.recordings.search({ limit: 2 })) names.push(recording_uuid);
  expect(names).toEqual(['rec_1', 'rec_2', 'rec_3', 'rec_4', 'rec_5']);
  expect(asked).toEqual(['limit=2', 'limit=2&after=2', 'limit=2&after=4']);
  const listing = sidetone.recordings.search({ after: '2' });
  expect(await listing).toMatchObject([{ recording_uuid: 'rec_3' }, { recording_uuid: 'rec_4' }]);
  const rest: string[] = [];
  for await (const { recording_uuid } of listing) rest.push(recording_uuid);
  expect(rest).toEqual(['rec_3', 'rec_4', 'rec_5']);
  // The page that was awaited is not asked for again.
  expect(asked.slice(3)).toEqual(['after=2', 'after=4']);
});

const PAGES = `
import os
from sidetone import Sidetone
client = Sidetone(base_url=os.environ["URL"], app_uuid="app_1", api_key="key")
found = client.recordings.search(limit=2)
print(next(found)["recording_uuid"], *[each["recording_uuid"] for each in found])
`;

test.skipIf(!hasPython)('the SDK of Python goes through all pages of a list', async () => {
  const asked: string[] = [];
  await using server = pagingServer(asked);
  const [out, err] = await python(PAGES, { URL: `http://127.0.0.1:${server.port}` });
  expect([err, out.trim()]).toEqual(['', 'rec_1 rec_2 rec_3 rec_4 rec_5']);
  expect(asked).toEqual(['limit=2', 'after=2&limit=2', 'after=4&limit=2']);
});
