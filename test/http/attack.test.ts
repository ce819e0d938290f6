/**
 * Attacks by HTTP on the running platform: every operation with malformed, huge and ambiguous requests, and every field
 * that takes a URL with every spelling of an address that may not be reached.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { connect } from 'node:net';
import { type Credentials, Platform } from '../support/platform.ts';

const NUMBER = '+15550064';
const OPERATOR_TOKEN = 'operator-token-of-the-attack';
/** The one private address that may be reached. */
const ALLOWED = '127.0.0.9';
let platform: Platform;
let app: Credentials;
/** What may not be reached: it counts who comes all the same. */
let visits = 0;
const canary = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: () => {
    visits += 1;
    return new Response('secret');
  },
});
/** What may be reached, and leads there. */
const door = Bun.serve({
  port: 0,
  hostname: ALLOWED,
  fetch: () => new Response(null, { status: 302, headers: { location: `http://127.0.0.1:${canary.port}/` } }),
});

beforeAll(async () => {
  // On 0.0.0.0 loopback is not allowed by itself.
  platform = await Platform.start({
    HTTP_HOST: '0.0.0.0',
    OUTBOUND_ALLOW: `${ALLOWED}/32`,
    OPERATOR_TOKEN,
    WEBRTC_LISTEN: 'off',
  });
  app = await platform.application('', NUMBER);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await canary.stop(true);
  await door.stop(true);
});

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly template: string;
  /** The names of the parameters of its query. */
  readonly query: readonly string[];
}

interface Described {
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
}

async function operations(): Promise<readonly Operation[]> {
  const { paths }: { readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>> } = await (
    await fetch(`${platform.url}/openapi.json`)
  ).json();
  return Object.entries(paths).flatMap(([template, each]) =>
    Object.entries(each).map(([method, { parameters = [] }]) => ({
      method: method.toUpperCase(),
      template,
      query: parameters.flatMap((parameter) => (parameter.in === 'query' ? [parameter.name] : [])),
      path: template.replaceAll(/\{[^}]+\}/g, '00000000-0000-4000-8000-000000000000'),
    })),
  );
}

const credentials = (path: string): string =>
  path.startsWith('/operator') ? `Bearer ${OPERATOR_TOKEN}` : `Bearer ${app.appUuid}:${app.apiKey}`;

/** Sends bytes, closes our half, and returns all that came until the connection was closed. */
function exchange(bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(platform.url).port), '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
    socket.end(Buffer.from(bytes, 'latin1'));
  });
}
const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));

/** A request that stands in the body of another. Its answer tells that it was taken for a request. */
const HIDDEN = 'GET /healthz HTTP/1.1\r\nHost: hidden\r\n\r\n';
const AMBIGUOUS: Readonly<Record<string, string>> = {
  'a length and chunks': `Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'two lengths': `Content-Length: 0\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  'a list of lengths': `Content-Length: 0, ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  'a signed length': `Content-Length: +${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  'a negative length': `Content-Length: -1\r\n\r\n${HIDDEN}`,
  'a coding before chunks': `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a coding after chunks': `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a chunk of no size': `Transfer-Encoding: chunked\r\n\r\nzz\r\n${HIDDEN}`,
  'a chunk beyond all numbers': `Transfer-Encoding: chunked\r\n\r\n${'f'.repeat(17)}\r\n${HIDDEN}`,
  'a name that ends in a blank': `Content-Length : ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  'a folded field': `X-A: b\r\n Content-Length: 0\r\nContent-Length: ${HIDDEN.length + 1}\r\n\r\n${HIDDEN}`,
  'a field of 200 kB': `X-A: ${'a'.repeat(200_000)}\r\n\r\n`,
  'a NUL in a field': `X-A: a\0b\r\nContent-Length: 0\r\n\r\n`,
};

const BODIES: readonly string[] = [
  '{',
  '[]',
  '"text"',
  'null',
  '\xff\xfe',
  '['.repeat(20_000),
  '{"__proto__":{"a":1},"constructor":1}',
  '1e999',
];

describe('every operation', () => {
  test('refuses a body that is none, without an error of ours', async () => {
    const wrong: string[] = [];
    for (const { method, path } of (await operations()).filter((each) => each.method !== 'GET' && each.method !== 'HEAD')) {
      const answers = await Promise.all(
        BODIES.map((body) =>
          fetch(platform.url + path, {
            method,
            body: Buffer.from(body, 'latin1'),
            headers: { authorization: credentials(path), 'content-type': 'application/json' },
          }),
        ),
      );
      for (const [at, { status }] of answers.entries())
        if (status >= 500) wrong.push(`${method} ${path} ${BODIES[at]?.slice(0, 40)}: ${status}`);
    }
    // What a platform without WebRTC says is 503.
    expect(wrong.filter((each) => !/webrtc|whip/.test(each))).toEqual([]);
  }, 60_000);

  test('refuses names and filters that no text of a database can be, without an error of ours', async () => {
    const wrong: string[] = [];
    for (const { method, path, template, query } of await operations()) {
      const names = template.match(/\{[^}]+\}/g) ?? [];
      const urls = [
        ...names.map((name) =>
          template
            .replace(name, 'a%00b')
            .replaceAll('{app_uuid}', app.appUuid)
            .replaceAll(/\{[^}]+\}/g, '1'),
        ),
        ...query.map((name) => `${path}?${name}=a%00b`),
      ];
      for (const url of urls) {
        const body = /^(GET|HEAD|DELETE)$/.test(method) ? {} : { body: '{}' };
        const { status } = await fetch(platform.url + url, { method, headers: { authorization: credentials(path) }, ...body });
        if (status < 400 || status >= 500) wrong.push(`${method} ${url}: ${status}`);
      }
    }
    expect(wrong.filter((each) => !/webrtc|whip/.test(each))).toEqual([]);
  }, 60_000);

  test('takes nothing for a request that stands in the body of another', async () => {
    const wrong: string[] = [];
    for (const { method, path } of await operations()) {
      const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${credentials(path)}\r\nContent-Type: application/json\r\n`;
      if (path === '/healthz') continue;
      const named = Object.entries(AMBIGUOUS);
      const answers = await Promise.all(named.map(([, rest]) => exchange(head + rest)));
      for (const [at, text] of answers.entries()) {
        const found = statuses(text);
        if (text.includes('{"status":"ok"}') || found.includes(500))
          wrong.push(`${method} ${path}, ${named[at]?.[0]}: ${found.join()}`);
      }
    }
    expect(wrong).toEqual([]);
    expect((await fetch(`${platform.url}/readyz`)).status).toBe(200);
  }, 60_000);
});

/**
 * Spellings of an address that may not be reached: each is a form that some parser takes for 127.0.0.1, or leads there.
 */
const HOSTS = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f000001',
  '0x7f.0.0.1',
  '0177.0.0.1',
  '017700000001',
  '127.0.0.1.',
  '%31%32%37.0.0.1',
  '１２７.0.0.1',
  '127。0。0。1',
  'localhost',
  'LOCALHOST.',
  '0.0.0.0',
  '0',
  '[::1]',
  '[::]',
  '[0:0:0:0:0:ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
];

describe('no spelling of an address that may not be reached', () => {
  const urls = () => [...HOSTS.map((host) => `http://${host}:${canary.port}/a.wav`), `http://${ALLOWED}:${door.port}/a.wav`];
  /** The answered Sessions of three calls within the platform. */
  const calls = async (): Promise<readonly string[]> => {
    const order = { from: NUMBER, to: NUMBER, trunk: 'loop', ring_timeout_sec: 20 };
    for (let n = 0; n < 3; n += 1) await platform.api(app, 'POST', '/v1/sessions:dial', order);
    for (;;) {
      const { body } = await platform.api(app, 'GET', '/v1/sessions');
      const sessions: readonly Readonly<Record<string, unknown>>[] = Array.isArray(body.sessions) ? body.sessions : [];
      for (const { session_uuid, type, state } of sessions)
        if (type === 'phone_in' && state === 'ringing') await platform.api(app, 'POST', `/v1/sessions/${session_uuid}/answer`);
      const up = sessions.filter(({ state }) => state === 'answered').map(({ session_uuid }) => String(session_uuid));
      if (up.length === 6) return up;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const formats = {
    from_session: { encoding: 'mulaw', sample_rate: 8000 },
    to_session: { encoding: 'mulaw', sample_rate: 8000 },
  };

  test('is reached by any field that takes a URL', async () => {
    const sessions = await calls();
    // Enough of each that no bucket is empty: limits of rate are not what is tried here.
    const apps = [app, ...(await Promise.all([1, 2, 3, 4].map((n) => platform.application('', `${NUMBER}${n}`))))];
    const rooms = await Promise.all(
      [1, 2, 3].map(async () => (await platform.api(app, 'POST', '/api/v1/rooms', {})).body.room_id),
    );
    const wrong: string[] = [];
    for (const [at, url] of urls().entries()) {
      const session = `/v1/sessions/${sessions[at % sessions.length]}`;
      const tenant = apps[at % apps.length] ?? app;
      const tries: readonly (readonly [as: Credentials, method: string, path: string, body: object])[] = [
        [app, 'POST', `${session}/playback/play`, { type: 'files', urls: [url] }],
        [app, 'POST', `${session}/playback/play`, { type: 'stream', url }],
        [app, 'POST', `${session}/dtmf/collect`, { prompt_files: [url] }],
        [app, 'POST', `${session}/payment/card/collect`, { prompt_files: [url], retry_prompt_files: [url] }],
        [app, 'POST', `/api/v1/rooms/${rooms[at % rooms.length]}/playback/play`, { type: 'files', urls: [url] }],
        [tenant, 'POST', '/api/v1/rooms', { hold_music_url: url }],
        [
          tenant,
          'POST',
          '/v1/sessions:connectWebsocket',
          { websocket: { url: url.replace('http', 'ws') }, media_format: formats },
        ],
        [tenant, 'PATCH', '/api/v1/app', { webhook_url: url }],
      ];
      for (const [as, method, path, body] of tries) {
        const { status } = await platform.api(as, method, path, body);
        const mayBeTaken = !/play|collect/.test(path) && status < 300;
        if (!mayBeTaken && ![400, 502].includes(status)) wrong.push(`${path} ${url}: ${status}`);
      }
      await platform.operator('POST', `/apps/${tenant.appUuid}/events`, { event: 'session.ended' });
    }
    expect(wrong).toEqual([]);
    // Every webhook is tried before the visits are counted.
    const tried = async () => {
      const { body } = await platform.operator('GET', '/events?before=999999999&limit=1000&event=session.ended');
      return Array.isArray(body.events)
        ? body.events.filter((each) => each.status !== 'pending' || each.attempts.length > 0).length
        : 0;
    };
    while ((await tried()) < urls().length) await new Promise((resolve) => setTimeout(resolve, 100));
    expect(visits).toBe(0);
  }, 60_000);
});
