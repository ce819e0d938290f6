/** WHIP at its door, with the calls behind it wrapped: every status that the document names, and CORS on each. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { BrowserCalls } from '../../src/call/ports/webrtc.ts';
import { TokenBuckets } from '../../src/call/rate/token-buckets.ts';
import { systemClock } from '../../src/clock.ts';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { type WhipDeps, WhipDoor } from '../../src/http/route/whip.ts';
import { silentLog } from '../../src/log.ts';
import { type Problem, problems } from '../../src/problem.ts';
import type { OpenApiDocument } from '../support/openapi-check.ts';
import { openPlatform, type Platform } from './platform.ts';

const UUID = '3f2b8c1e-5a4d-4c6b-9e8f-1a2b3c4d5e6f';
const ENDPOINT = '/v1/whip';
const CALL = `${ENDPOINT}/${UUID}`;
const FRAGMENT = 'application/trickle-ice-sdpfrag';
const created = { sessionUuid: UUID, etag: '"name"', answer: 'v=0' };

/** What the calls behind the door answer next. */
let next: unknown;
const behind = (): never => {
  if (next instanceof Error) throw next;
  return next as never;
};
/** What they were given. */
const given: unknown[] = [];
const text = (body: Uint8Array) => Buffer.from(body).toString();
const browserCalls: BrowserCalls = {
  async create(_token, offer) {
    given.push(text(offer));
    return behind();
  },
  async patch(_token, sessionUuid, { kind, body, ifMatch }) {
    given.push([sessionUuid, kind, text(body), ifMatch]);
    return behind();
  },
  hangUp: async () => behind(),
};

let platform: Platform;
let app: AppSecrets;
let token = '';
let ahead = 0;
let far = 0;
let isDraining = false;
/** What the metrics were told of each request. */
const counted: unknown[] = [];
beforeAll(async () => {
  platform = await openPlatform({
    browserCalls,
    metrics: {
      request: (method, path, status, seconds) => void counted.push([method, path, status, seconds]),
      exposition: async () => ({ text: '', contentType: 'text/plain' }),
    },
    draining: () => isDraining,
    peer: (request: Request) => ({ address: request.headers.get('x-far-end') ?? `192.0.2.${far++}`, port: 1 }),
  });
  platform.now = () => Date.now() + ahead;
  app = await platform.testStore.store.apps.create({ name: 'browsers' });
});
afterAll(() => platform.close());

const newToken = async () => {
  const made = await platform.call(app, 'POST', '/v1/webrtc-tokens', { ttl_sec: 86_400 });
  token = String(made.body.token);
  return String(made.body.token_id);
};

interface Asked {
  readonly type?: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
}
async function ask(method: string, path: string, { type = 'application/sdp', body = 'v=0', headers = {} }: Asked = {}) {
  const hasBody = method === 'POST' || method === 'PATCH';
  const answer = await platform.raw(path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(hasBody ? { 'content-type': type } : {}), ...headers },
    ...(hasBody ? { body } : {}),
  });
  expect([method, path, answer.headers.get('access-control-allow-origin')]).toEqual([method, path, '*']);
  return answer;
}

async function until429(method: string, path: string): Promise<number> {
  const headers = { authorization: 'Bearer wrong', 'x-far-end': `guesser ${method} ${path}` };
  for (let n = 0; n < 50; n++) if ((await ask(method, path, { headers })).status === 429) return 429;
  return 0;
}

/** Brings a method to a status. */
async function drive(method: string, path: string, status: number): Promise<number> {
  const decided: Readonly<Record<number, Problem>> = {
    400: problems.invalid('body: must be SDP'),
    404: problems.notFound('Session'),
    409: problems.conflict('The token has 10 live Sessions'),
    412: problems.preconditionFailed('If-Match does not name the ICE session'),
    422: problems.unprocessable('body: must have audio'),
    428: problems.preconditionRequired(),
    503: problems.notConfigured('WebRTC'),
  };
  next = method === 'DELETE' ? false : decided[status];
  switch (status) {
    case 401:
      return (await ask(method, path, { headers: { authorization: 'Bearer wrong' } })).status;
    case 405:
      return (await ask('PUT', path)).status;
    case 413:
      return (await ask(method, path, { body: 'x'.repeat(17_000) })).status;
    case 415:
      return (await ask(method, path, { type: 'text/plain' })).status;
    case 429:
      return until429(method, path);
    case 500:
      next = new Error('a bug');
      return (await ask(method, path)).status;
    case 503:
      if (method === 'DELETE') next = new StoreUnavailable('away');
      return (await ask(method, path)).status;
    default:
      return (await ask(method, path)).status;
  }
}

test('every operation of WHIP answers with every problem that it documents', async () => {
  await newToken();
  const document: OpenApiDocument = (await platform.raw('/openapi.json')).body;
  const wrong: string[] = [];
  let driven = 0;
  for (const [template, operations] of Object.entries(document.paths)) {
    if (!template.startsWith(ENDPOINT)) continue;
    for (const [method, { responses }] of Object.entries(operations))
      for (const status of Object.keys(responses).map(Number)) {
        if (status < 400) continue;
        driven += 1;
        ahead += 60_000;
        const came = await drive(method.toUpperCase(), template === ENDPOINT ? ENDPOINT : CALL, status);
        if (came !== status) wrong.push(`${method} ${template} ${status}: ${came}`);
      }
  }
  expect(wrong).toEqual([]);
  expect(driven).toBeGreaterThan(25);
});

test('an offer is answered with its location and the name of its ICE session; a change with what it asks for', async () => {
  await newToken();
  given.length = 0;
  next = created;
  const begun = await ask('POST', ENDPOINT);
  expect([begun.status, begun.text, begun.headers.get('etag'), begun.headers.get('content-type')]).toEqual([
    201,
    'v=0',
    '"name"',
    'application/sdp',
  ]);
  expect(begun.headers.get('location')).toEndWith(CALL);
  expect(begun.headers.get('access-control-expose-headers')).toContain('Location, ETag');
  next = undefined;
  expect((await ask('PATCH', CALL, { type: FRAGMENT })).status).toBe(204);
  next = { etag: '"other"', fragment: 'a=ice-ufrag:x' };
  const restarted = await ask('PATCH', CALL, { type: FRAGMENT, body: 'a=x', headers: { 'if-match': '"name"' } });
  expect([restarted.status, restarted.headers.get('etag'), restarted.text]).toEqual([200, '"other"', 'a=ice-ufrag:x']);
  next = { answer: 'v=0' };
  expect((await ask('PATCH', CALL)).headers.get('content-type')).toBe('application/sdp');
  expect(given).toEqual([
    'v=0',
    [UUID, 'fragment', 'v=0', undefined],
    [UUID, 'fragment', 'a=x', '"name"'],
    [UUID, 'offer', 'v=0', undefined],
  ]);
  next = true;
  expect((await ask('DELETE', CALL)).status).toBe(200);
});

test('a token that is revoked begins no call, and a call that it began goes on', async () => {
  const tokenId = await newToken();
  expect((await platform.call(app, 'DELETE', `/v1/webrtc-tokens/${tokenId}`)).status).toBe(204);
  next = created;
  expect((await ask('POST', ENDPOINT)).status).toBe(401);
  next = undefined;
  expect((await ask('PATCH', CALL, { type: FRAGMENT })).status).toBe(204);
  next = problems.nodeAway('this call');
  expect((await ask('DELETE', CALL)).status).toBe(503);
  next = true;
  expect((await ask('DELETE', CALL)).status).toBe(200);
  expect((await ask('DELETE', `${ENDPOINT}/nonsense`)).status).toBe(404);
});

test('a browser asks without a token what a page may send, and a call without one is challenged', async () => {
  for (const [path, methods] of [
    [ENDPOINT, 'OPTIONS, POST'],
    [CALL, 'DELETE, OPTIONS, PATCH'],
  ] as const) {
    const { status, headers } = await ask('OPTIONS', path, { headers: { authorization: '' } });
    expect([status, headers.get('access-control-allow-methods')]).toEqual([204, methods]);
    expect(headers.get('access-control-allow-headers')).toBe('Authorization, Content-Type, If-Match');
  }
  const { status, headers } = await ask('POST', ENDPOINT, { headers: { authorization: '' } });
  expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
});

test('an application makes twenty tokens at once, and ten a second (contract §10)', async () => {
  ahead += 60_000;
  const frozen = Date.now() + ahead;
  platform.now = () => frozen;
  const make = async () => (await platform.call(app, 'POST', '/v1/webrtc-tokens', {})).status;
  for (let n = 0; n < 20; n++) expect(await make()).toBe(201);
  expect(await make()).toBe(429);
  platform.now = () => frozen + 1000;
  for (let n = 0; n < 10; n++) expect(await make()).toBe(201);
  expect(await make()).toBe(429);
  platform.now = () => Date.now() + ahead;
});

test('each request is counted by its path without its call, and by how long it took', async () => {
  ahead += 60_000;
  await newToken();
  counted.length = 0;
  let now = Date.now() + ahead;
  platform.now = () => now;
  next = new Promise((resolve) => {
    setImmediate(() => {
      now += 1500;
      resolve(created);
    });
  });
  await ask('POST', ENDPOINT);
  next = true;
  await ask('DELETE', CALL);
  expect(counted).toEqual([
    ['POST', '/v1/whip', 201, 1.5],
    ['DELETE', '/v1/whip/:session_uuid', 200, 0],
  ]);
  platform.now = () => Date.now() + ahead;
});

test('a token begins ten calls at once and one a second, and each token by itself', async () => {
  ahead += 60_000;
  await newToken();
  const frozen = Date.now() + ahead;
  platform.now = () => frozen;
  next = created;
  for (let n = 0; n < 10; n++) expect((await ask('POST', ENDPOINT)).status).toBe(201);
  const eleventh = await ask('POST', ENDPOINT);
  expect([eleventh.status, eleventh.headers.get('retry-after')]).toEqual([429, '1']);
  await newToken();
  expect((await ask('POST', ENDPOINT)).status).toBe(201);
  platform.now = () => Date.now() + ahead;
});

test('what is refused, fails or comes while the platform drains costs a token of the bucket nothing', async () => {
  ahead += 60_000;
  await newToken();
  const frozen = Date.now() + ahead;
  platform.now = () => frozen;
  const offers = async (times: number) => {
    const statuses = new Set<number>();
    for (let n = 0; n < times; n++) statuses.add((await ask('POST', ENDPOINT)).status);
    return [...statuses];
  };
  for (const [what, status] of [
    [problems.conflict('The token has 10 live Sessions'), 409],
    [new StoreUnavailable('away'), 503],
  ] as const) {
    next = what;
    expect(await offers(12)).toEqual([status]);
  }
  next = created;
  isDraining = true;
  expect(await offers(12)).toEqual([503]);
  isDraining = false;
  expect([await offers(10), await offers(1)]).toEqual([[201], [429]]);
  platform.now = () => Date.now() + ahead;
});

test('in a cluster the offers of a token are counted by the node that has its bucket', async () => {
  const tokenId = await newToken();
  const asked: unknown[] = [];
  let answer: (() => void) | number = 7;
  const peers: WhipDeps['peers'] = {
    take: async (...wanted) => {
      asked.push(wanted);
      return answer;
    },
  };
  const { store } = platform.testStore;
  const clock = { ...systemClock(), now: () => Date.now() + ahead };
  const metrics = { request: () => {} };
  const door = new WhipDoor(
    { browserCalls, store, clock, log: silentLog, metrics, publicUrl: '', draining: () => false, peers },
    new TokenBuckets(),
  );
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/sdp' };
  const offer = () => door.answer(new Request(`http://localhost${ENDPOINT}`, { method: 'POST', headers, body: 'v=0' }));
  const refused = await offer();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '7']);
  let given = 0;
  answer = () => void given++;
  next = created;
  expect([(await offer()).status, given]).toEqual([201, 0]);
  next = problems.conflict('The token has 10 live Sessions');
  expect([(await offer()).status, given]).toEqual([409, 1]);
  expect(asked).toEqual([1, 2, 3].map(() => [tokenId, ['whip_offer']]));
});
