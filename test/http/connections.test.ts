/** Connections to the running platform, as bytes: what a stranger's client, proxy or attacker may send (RFC 9112). */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { execFile } from 'node:child_process';
import { openAsBlob, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { listen } from '../../src/compose/listen.ts';
import type { HttpApp } from '../../src/http/app.ts';
import { failureResponse } from '../../src/http/failure.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { createRecordingUrls } from '../../src/recording-storage/signed-url.ts';
import { newTraceparent } from '../../src/tracing/tracing.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

let platform: Platform;
let app: Credentials;
const OPERATOR_TOKEN = 'operator-token-of-the-connections';
const masterKey = new Uint8Array(32).fill(5);
const receiver = new Receiver();

beforeAll(async () => {
  const MASTER_KEY = Buffer.from(masterKey).toString('base64');
  platform = await Platform.start({ LOG_LEVEL: 'info', OPERATOR_TOKEN, MASTER_KEY });
  app = await platform.application(receiver.url, '+15550061');
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
});

/** Sends bytes on a connection of its own and returns all that came until it was closed, or until `enough` says so. */
function exchange(bytes: string | Buffer, enough: (text: string) => boolean): Promise<{ text: string; closed: boolean }> {
  const { port } = new URL(platform.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1');
    let text = '';
    const done = (closed: boolean) => {
      socket.destroy();
      resolve({ text, closed });
    };
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (enough(text)) done(false);
    });
    socket.on('error', () => done(true));
    socket.on('close', () => done(true));
    socket.write(bytes);
  });
}
const answers = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
const auth = () => `Authorization: Bearer ${app.appUuid}:${app.apiKey}\r\n`;

describe('a connection', () => {
  test('of HTTP/1.0 without Host reaches the health check, as HAProxy sends it', async () => {
    const { text } = await exchange('GET /healthz HTTP/1.0\r\n\r\n', () => false);
    expect(answers(text)).toEqual([200]);
    expect(text).toContain('{"status":"ok"}');
  });

  test('of HTTP/1.0 without Host gets the 404 of an unknown path also where that begins with two slashes', async () => {
    for (const path of ['//', '//healthz', '//a:b/', '///'])
      expect([path, answers((await exchange(`GET ${path} HTTP/1.0\r\n\r\n`, () => false)).text)]).toEqual([path, [404]]);
  });

  test('of HTTP/1.0 without Host opens the signed URL of a recording like any other', async () => {
    const { mediaUrl } = createRecordingUrls({ masterKey, publicUrl: '', ttlSec: 60 }).sign(`rec_${newUuid()}`, Date.now());
    const statusOf = async (head: string) => answers((await exchange(head, () => false)).text);
    const close = 'Host: a\r\nConnection: close\r\n';
    expect(await statusOf(`GET ${mediaUrl} HTTP/1.1\r\n${close}\r\n`)).toEqual([404]);
    expect(await statusOf(`GET ${mediaUrl} HTTP/1.0\r\n\r\n`)).toEqual([404]);
  });

  test('that gives Host twice is refused in the error format', async () => {
    const { text } = await exchange('GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', (t) => t.includes('}'));
    expect(answers(text)).toEqual([400]);
    expect(text).toContain('"message":"Host: must be given once"');
    expect(text.toLowerCase()).toContain('traceparent: 00-');
  });

  test('whose Host makes no URL is refused on every path, and leaves nothing in the log', async () => {
    const before = platform.output.length;
    const wrong: string[] = [];
    for (const path of ['/', '/nowhere', '/console', '/console/session', '/docs', '/v1/sessions', '/v1/whip', '/v1/media/a/pull'])
      for (const host of ['%%%', 'a:99999', 'a:b', '[::1', '[v1.x]', '1.2.3.4.5', '%00', 'xn--', `${'a'.repeat(600)}:70000`]) {
        const { text } = await exchange(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, () => false);
        if (answers(text).join() !== '400') wrong.push(`${path} ${host}: ${answers(text)}`);
      }
    expect(wrong).toEqual([]);
    expect(platform.output.slice(before)).toBe('');
  });

  test('may name its host in any way that a URL has', async () => {
    for (const host of ['a', 'a.example:8080', '127.0.0.1', '[::1]:80', 'a_b', 'A.EXAMPLE.', ''])
      expect([
        host,
        answers((await exchange(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, () => false)).text),
      ]).toEqual([host, [200]]);
  });

  test('may carry a push for as long as a call may last, and a larger body elsewhere is refused in the error format', async () => {
    const declared = (path: string, bytes: number) =>
      exchange(`POST ${path} HTTP/1.1\r\nHost: a\r\n${auth()}Content-Length: ${bytes}\r\n\r\n`, (t) => t.includes('}'));
    const push = await declared(`/v1/ingest/${crypto.randomUUID()}`, 24 * 3600 * 48_000 * 2);
    expect(answers(push.text)).toEqual([404]);
    expect(push.text).toContain('Ingest not found');
    const other = await declared('/api/v1/rooms', 2 * 1024 ** 3);
    expect(answers(other.text)).toEqual([413]);
    expect(other.text).toContain('"code":"payload_too_large"');
    expect(other.text.toLowerCase()).toContain('traceparent: 00-');
  });

  test('answers at most 16 requests that were pipelined at once, and is closed after them', async () => {
    const { text, closed } = await exchange('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(500), () => false);
    expect(closed).toBe(true);
    expect(answers(text).length).toBeLessThanOrEqual(16);
    expect(text.toLowerCase()).toContain('connection: close');
  });

  test('is told that it is closed where it asked for that, so that no proxy sends another request on it', async () => {
    for (const [asks, ends] of [
      ['close', true],
      ['Keep-Alive, CLOSE', true],
      ['keep-alive', false],
      ['closed', false],
    ] as const) {
      const request = `GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: ${asks}\r\n\r\n`;
      const { text, closed } = await exchange(request, (each) => !ends && each.includes('}'));
      const told = /^connection: (.*)$/im.exec(text)?.[1] ?? '';
      expect([asks, answers(text), told, closed]).toEqual([asks, [200], ends ? 'close' : '', ends]);
    }
  });

  test('with two pipelined commands has no effect that is not answered', async () => {
    const body = '{"voice_activity_events":false}';
    const create = `POST /api/v1/rooms HTTP/1.1\r\nHost: a\r\n${auth()}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const { text } = await exchange(create + create, (t) => answers(t).length === 2);
    const made = answers(text).filter((status) => status === 201).length;
    const { body: list } = await platform.api(app, 'GET', '/api/v1/rooms');
    expect(list.rooms).toHaveLength(made);
  });

  test('hears a 413 although it sends its whole body of 8 MiB before it reads, as the fetch of Node does', async () => {
    const script = `fetch(process.argv[1], { method: 'POST', body: new Uint8Array(8 * 1024 * 1024) }).then(
      async (answer) => console.log(answer.status, await answer.text()), (error) => console.log(String(error.cause)))`;
    for (const path of ['/v1/messages', `/v1/sessions/${crypto.randomUUID()}/answer`]) {
      const { stdout } = await promisify(execFile)('node', ['-e', script, platform.url + path]);
      expect(stdout).toStartWith('413 {"code":"payload_too_large"');
    }
  });

  test('that sends on after a 413 is closed without its body being read', async () => {
    const head = `POST /api/v1/rooms HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\n`;
    const { text, closed } = await exchange(Buffer.concat([Buffer.from(head), Buffer.alloc(2 * 1024 * 1024)]), () => false);
    expect(closed).toBe(true);
    expect(answers(text)).toEqual([413]);
  });
});

test('a request whose connection is closed in the middle of its body is over, and is counted as refused', async () => {
  const refusals = async () => {
    const text = await (await fetch(`${platform.url}/metrics`)).text();
    return Number(
      /^sidetone_http_requests_total\{method="POST",route="\/v1\/messages",status="400"\} (\d+)$/m.exec(text)?.[1] ?? 0,
    );
  };
  const before = await refusals();
  const { port } = new URL(platform.url);
  for (let n = 0; n < 20; n += 1) {
    const socket = connect(Number(port), '127.0.0.1');
    const head = 'POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n';
    socket.write(head + 'x'.repeat(30_000), () => socket.destroy());
  }
  while ((await refusals()) < before + 20);
}, 10_000);

test('a valid traceparent is linked on every route, in one line of the log; a malformed one is not', async () => {
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const link = (path: string, n: number) =>
    fetch(platform.url + path, {
      headers: { traceparent: `00-${trace}-00000000000000a${n}-01`, tracestate: `vendor=${'x'.repeat(600)}` },
    });
  const paths = ['/healthz', '/v1/sessions', '/nothing', '/v1/media/rec/pull?signature=0', '/metrics', '/openapi.json'];
  const told = await Promise.all(paths.map(async (path, n) => (await link(path, n)).headers.get('traceparent')));
  await fetch(`${platform.url}/healthz`, { headers: { traceparent: 'garbage', tracestate: 'a=b' } });
  const lines = () => platform.output.split('\n').filter((line) => line.includes('linked_trace'));
  while (lines().length < paths.length) await new Promise((wake) => setTimeout(wake, 5));
  for (const [n, traceparent] of told.entries()) {
    const line = lines().find((each) => each.includes(`00-${trace}-00000000000000a${n}-01`));
    expect(JSON.parse(line ?? '{}')).toMatchObject({ traceparent, linked_tracestate: `vendor=${'x'.repeat(505)}` });
  }
  expect(lines()).toHaveLength(paths.length);
});

test('callers without a key, or over their rate, fill the log with a hundred of their traces at most, and leave the others theirs', async () => {
  const linked = (trace: string) => platform.output.split('\n').filter((line) => line.includes(`00-${trace}-`)).length;
  const ask = async (path: string, trace: string, times: number, more: Record<string, string> = {}) => {
    const headers = { traceparent: `00-${trace}-00f067aa0ba902b7-01`, ...more };
    for (let n = 0; n < times; n += 10)
      await Promise.all(Array.from({ length: 10 }, () => fetch(platform.url + path, { headers })));
  };
  const stranger = 'a'.repeat(32);
  const guesser = 'b'.repeat(32);
  const known = 'c'.repeat(32);
  const begunAt = performance.now();
  await ask('/healthz', stranger, 300);
  await ask('/v1/sessions', guesser, 300, { authorization: `Bearer ${app.appUuid}:sk_wrong` });
  const seconds = Math.ceil((performance.now() - begunAt) / 1000);
  await ask('/api/v1/app', known, 10, { authorization: `Bearer ${app.appUuid}:${app.apiKey}` });
  while (linked(known) < 10) await new Promise((wake) => setTimeout(wake, 5));
  expect(linked(stranger) + linked(guesser)).toBeLessThanOrEqual(100 + 10 * seconds);
  expect(platform.output).toContain('too many traces of callers without a key: not all are logged');
});

test('answers to credentials are not stored by anyone', async () => {
  const { headers } = await platform.api(app, 'GET', '/api/v1/app');
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const mcp = await fetch(`${platform.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${app.appUuid}:${app.apiKey}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(message),
  });
  expect(mcp.status).toBe(200);
  const events = await fetch(`${platform.url}/operator/v1/events/stream`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  });
  await events.body?.cancel();
  for (const each of [headers, mcp.headers, events.headers])
    expect([each.get('cache-control'), each.get('x-content-type-options')]).toEqual(['no-store', 'nosniff']);
});

test('after ten wrong operator tokens in a minute further wrong ones are 429; a right one always passes', async () => {
  const guess = (token: string) => fetch(`${platform.url}/operator/v1/apps`, { headers: { authorization: `Bearer ${token}` } });
  const statuses: number[] = [];
  for (let n = 0; n < 12; n += 1) statuses.push((await guess(`wrong-${n}`)).status);
  expect(statuses).toEqual([...new Array<number>(10).fill(401), 429, 429]);
  expect(Number((await guess('wrong')).headers.get('retry-after'))).toBeWithin(1, 61);
  expect((await platform.operator('GET', '/apps')).status).toBe(200);
});

test('a request of HTTP/1.0 without Host has a far end like any other', async () => {
  const listener = listen({ http: { host: '127.0.0.1', port: 0 }, publicUrl: undefined });
  const app: Pick<HttpApp, 'fetch'> = {
    async fetch(request) {
      listener.disableIdleTimeout(request);
      return new Response(listener.peer(request)?.address ?? 'nobody');
    },
  };
  listener.ready(Object.assign(Object.create(null), app));
  const socket = connect(listener.port, '127.0.0.1', () => socket.write('GET / HTTP/1.0\r\n\r\n'));
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  expect(text).toEndWith('127.0.0.1');
  await listener.stop();
});

test('a file that is gone before it is sent is told by the usual error, without its path', async () => {
  const listener = listen({ http: { host: '127.0.0.1', port: 0 }, publicUrl: undefined });
  const path = join(tmpdir(), `sidetone-gone-${newUuid()}.wav`);
  const logged: string[] = [];
  const log = { ...silentLog, error: (_: object, message: string) => void logged.push(message) };
  const app: Pick<HttpApp, 'fetch' | 'failed'> = {
    async fetch() {
      writeFileSync(path, 'RIFF');
      const file = await openAsBlob(path);
      rmSync(path);
      return new Response(file);
    },
    failed: (error) => failureResponse(error, 'an answer', log, newTraceparent()),
  };
  listener.ready(Object.assign(Object.create(null), app));
  const response = await fetch(`http://127.0.0.1:${listener.port}/`);
  expect(response.status).toBe(500);
  expect(await response.json()).toEqual({ code: 'internal_error', message: 'Internal error', support_id: expect.any(String) });
  expect(logged).toEqual(['a request ended in a bug']);
  await listener.stop();
});
