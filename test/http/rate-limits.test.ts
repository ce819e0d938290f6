/**
 * Every token bucket, from a table that was written out of the interface (Limits) and the contract (§10), not out of
 * the code: its burst, its refill, whose it is, which commands share it, and that what is refused keeps its token.
 */
import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test';
import { accepted } from '../../src/call/ports/sessions.ts';
import { buckets } from '../../src/call/rate/buckets.ts';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import type { HttpDeps } from '../../src/http/app.ts';
import { newUuid } from '../../src/id.ts';
import { problems } from '../../src/problem.ts';
import { openPlatform, type Platform } from './platform.ts';
import { chargeBody } from './sample-bodies.ts';

type Scope = 'call' | 'room' | 'application';
interface Place {
  /** A live Session and a live Room of the application. */
  readonly session: string;
  readonly room: string;
}
type Request = readonly [method: string, path: (place: Place) => string, body?: unknown];
/** Several requests of one row share its bucket. */
type Row = readonly [capacity: number, refill: number, scope: Scope, ...requests: Request[]];

const RECORDING = `rec_${newUuid()}`;
const session =
  (tail = '') =>
  ({ session: uuid }: Place) =>
    `/v1/sessions/${uuid}${tail}`;
const room =
  (tail = '') =>
  ({ room: uuid }: Place) =>
    `/api/v1/rooms/${uuid}${tail}`;
const at = (path: string) => () => path;
const url = 'http://example.com/a.wav';
const format = { encoding: 'mulaw', sample_rate: 8000 };
const charge = chargeBody();

// Interface, Limits: per command in a call, per room, per application. Contract §10: the rest.
const ROWS: readonly Row[] = [
  [
    20,
    20,
    'call',
    ['POST', session('/playback/seek'), { position_ms: 0 }],
    ['POST', session(`/recordings/${RECORDING}/mask`), {}],
    ['POST', session(`/recordings/${RECORDING}/unmask`), {}],
  ],
  [20, 20, 'call', ['POST', session('/playback/stop'), {}]],
  [20, 20, 'call', ['POST', session('/playback/pause'), {}]],
  [20, 20, 'call', ['POST', session('/playback/resume'), {}]],
  [20, 20, 'call', ['POST', session('/playback/restart'), {}]],
  [20, 20, 'call', ['POST', session(`/recordings/${RECORDING}/stop`), {}]],
  [8, 4, 'call', ['POST', session('/playback/play'), { type: 'files', urls: [url] }]],
  [4, 0.8, 'call', ['POST', session('/dtmf/collect'), {}]],
  [4, 0.8, 'call', ['DELETE', session('/dtmf/collect')]],
  [10, 5, 'call', ['POST', session('/dtmf/send'), { digits: '1' }]],
  [4, 1, 'call', ['POST', session('/recordings'), { direction: 'both', channels: 'mono' }]],
  [15, 10, 'call', ['POST', session('/room/mute'), {}]],
  [15, 10, 'call', ['POST', session('/room/unmute'), {}]],
  [100, 30, 'room', ['POST', room('/members'), { session_uuid: newUuid() }]],
  [100, 30, 'room', ['DELETE', room(`/members/${newUuid()}`)]],
  [15, 10, 'room', ['POST', room('/playback/pause'), {}]],
  [15, 10, 'room', ['POST', room('/playback/seek'), { offset_ms: 0 }]],
  [15, 10, 'room', ['POST', room('/playback/volume'), { volume: 1 }]],
  [15, 10, 'room', ['POST', room('/playback/stop'), {}]],
  [8, 3, 'room', ['POST', room('/playback/play'), { type: 'files', urls: [url] }]],
  [8, 3, 'room', ['POST', room('/playback/record'), {}], ['POST', room('/playback/record/stop'), {}]],
  [10, 2, 'application', ['POST', at('/api/v1/rooms'), {}]],
  [40, 20, 'application', ['GET', at('/v1/sessions')]],
  [40, 20, 'application', ['GET', at('/api/v1/rooms')]],
  // Contract §10.
  [10, 5, 'call', ['POST', session('/answer'), {}]],
  [10, 5, 'call', ['POST', session('/reject'), { reason: 'busy' }]],
  [10, 5, 'call', ['POST', session('/cancel'), {}]],
  [5, 2, 'call', ['POST', session('/hold')]],
  [5, 2, 'call', ['POST', session('/unhold')]],
  [2, 0.5, 'call', ['POST', session('/transfer'), { to: '+15550111' }]],
  [10, 5, 'call', ['DELETE', session()]],
  [5, 2, 'call', ['POST', session('/hold'), {}]],
  [5, 2, 'call', ['POST', session('/unhold'), {}]],
  [2, 0.5, 'call', ['POST', session('/transfer'), { to: '+15550199' }]],
  [4, 0.8, 'call', ['POST', session('/payment/card/collect'), {}]],
  [4, 0.8, 'call', ['POST', session('/payment/cvv/collect'), {}]],
  [2, 0.2, 'call', ['POST', session('/payment/charges'), charge]],
  [20, 10, 'application', ['POST', at('/v1/sessions:dial'), { from: '+15550100', to: '+15550199', ring_timeout_sec: 9 }]],
  [
    20,
    10,
    'application',
    [
      'POST',
      at('/v1/sessions:connectWebsocket'),
      { websocket: { url: 'ws://a/' }, media_format: { from_session: format, to_session: format } },
    ],
  ],
  [100, 50, 'application', ['POST', session('/room/volume'), { volume: 1, direction: 'both' }]],
  [20, 10, 'application', ['POST', at('/v1/messages'), { from: '+15550100', to: '+15550199', text: 'x' }]],
  [40, 20, 'application', ['GET', at('/v1/messages')], ['GET', at(`/v1/messages/${newUuid()}`)]],
  [40, 20, 'application', ['GET', at('/api/v1/app')]],
  [5, 1, 'application', ['PATCH', at('/api/v1/app'), { blocked_webhook_events: [] }]],
  [15, 10, 'room', ['POST', room('/playback/resume'), {}]],
  [100, 30, 'application', ['DELETE', room()]],
  [100, 50, 'application', ['GET', session()]],
  [100, 50, 'application', ['GET', room()]],
  [100, 50, 'application', ['GET', room(`/members/${newUuid()}`)]],
  [100, 50, 'application', ['GET', session(`/recordings/${RECORDING}`)]],
  [100, 50, 'application', ['GET', room('/members')]],
  [100, 50, 'application', ['POST', at(`/v1/ingest/${newUuid()}`)]],
  [100, 50, 'application', ['GET', session('/recordings')]],
  [100, 50, 'application', ['GET', at('/v1/recordings')]],
];

let platform: Platform;
let app: AppSecrets;
let other: AppSecrets;
let now = Date.now();
/** The next command ends in this conflict. */
let isRefused = false;

/** Heart and stores that admit everything: buckets are looked at before them. */
function admitting(): Partial<HttpDeps> {
  const answer = async () => (isRefused ? problems.conflict('in the way') : accepted(newUuid()));
  const member = (uuid: string) => ({ uuid, muted: false });
  const view = (room_id: string) => ({
    room_id,
    created_at: '',
    member_count: 0,
    playback_status: 'stopped' as const,
    playback_operation_uuid: '',
    playback_urls: [],
    playback_volume: 0,
    voice_activity_events: false,
  });
  const recording = {
    recording_uuid: RECORDING,
    session_uuid: '',
    state: 'active' as const,
    masked: false,
    direction: 'both' as const,
    channels: 'mono' as const,
    include_gaps: false,
    enable_voice_activity_events: false,
    available: false,
    created_at: '',
    duration: 0,
    media_url: '',
    live_url: '',
    expires_at: '',
  };
  const message = {
    messageUuid: newUuid(),
    appUuid: '',
    operationUuid: '',
    from: '',
    to: '',
    text: '',
    status: 'queued' as const,
    segments: 1,
    encoding: 'gsm7' as const,
    errorCode: '',
    errorMessage: '',
    createdAt: 0,
    updatedAt: 0,
    sentAt: undefined,
    deliveredAt: undefined,
    parts: [],
    stage: 'waiting' as const,
    dueAt: 0,
    attempts: 0,
    traceparent: '',
  };
  return {
    sessions: {
      dial: answer,
      connectWebsocket: answer,
      command: answer,
      owns: async () => true,
      isDraining: false,
      isHere: () => false,
      ingest: () => ({
        appUuid: app.appUuid,
        operationUuid: newUuid(),
        expiresAt: Number.POSITIVE_INFINITY,
        used: false,
        ingest: {
          accept: () => !isRefused,
          write: async () => true,
          end() {},
          fail() {},
          over: new Promise(() => {}),
        },
      }),
      get: async (_app, uuid) => ({
        session_uuid: uuid,
        type: 'phone_in',
        state: 'answered',
        created_at: '',
        caller_id: '',
        did: '',
      }),
      list: async () => [],
    },
    rooms: {
      create: answer,
      isHere: () => false,
      knows: async () => true,
      list: () => [],
      get: (_app, uuid) => view(uuid),
      opening: () => undefined,
      order: answer,
      join: answer,
      leave: answer,
      live: () => [],
      members: () =>
        [...ROWS].flatMap(([, , , ...requests]) => requests.map(([, path]) => member(path(NOWHERE).split('/').at(-1) ?? ''))),
    },
    recordings: {
      terms: (wished) => ({ recordingUuid: RECORDING, livenessMs: 10_000, ...wished }),
      use: () => undefined,
      isLive: () => true,
      list: async () => [recording],
      find: async () => undefined,
      kept: async () => [],
      remove: async () => undefined,
      media: async () => undefined,
    },
    messages: { send: answer, get: async () => message, list: async () => [] },
    charges: { provider: 'sandbox', charge: answer },
  };
}
const NOWHERE: Place = { session: '', room: '' };

beforeAll(async () => {
  platform = await openPlatform(admitting());
  platform.now = () => now;
  app = await platform.testStore.store.apps.create({ name: 'one' });
  other = await platform.testStore.store.apps.create({ name: 'other' });
});
afterAll(() => platform.close());

const place = (): Place => ({ session: newUuid(), room: newUuid() });
const send = (as: AppSecrets, [method, path, body]: Request, where: Place) =>
  platform.call(as, method, path(where), body, { 'idempotency-key': newUuid() });

describe('the bucket of', () => {
  for (const [capacity, refill, scope, ...requests] of ROWS) {
    const names = requests.map(([method, path]) => `${method} ${path({ session: ':uuid', room: ':room_id' })}`);
    test(`${names.join(', ')} is ${capacity} with ${refill} a second, per ${scope}`, async () => {
      now += 3_600_000;
      const here = place();
      const turn = (n: number): Request => requests[n % requests.length] ?? ['GET', at('/')];
      // What is refused for its state gives its token back.
      const [method] = turn(0);
      isRefused = method !== 'GET' && method !== 'PATCH';
      if (isRefused) for (let n = 0; n < 3; n += 1) expect((await send(app, turn(n), here)).status).toBe(409);
      isRefused = false;
      for (let n = 0; n < capacity; n += 1) expect((await send(app, turn(n), here)).status).toBeLessThan(300);
      for (const request of requests) {
        const denied = await send(app, request, here);
        expect([denied.status, denied.body.code]).toEqual([429, 'rate_limited']);
        expect(denied.body.message).toBe('Command rate limit exceeded. See Retry-After header.');
        expect(denied.headers.get('retry-after')).toBe(String(Math.ceil(1 / refill)));
      }
      const elsewhere = scope === 'application' ? await send(other, turn(0), here) : await send(app, turn(0), place());
      expect(elsewhere.status).toBeLessThan(300);
      if (scope === 'application') expect((await send(app, turn(0), place())).status).toBe(429);
      now += 1000 / refill + 1;
      expect((await send(app, turn(0), here)).status).toBeLessThan(300);
      expect((await send(app, turn(0), here)).status).toBe(429);
    });
  }
});

test('what is refused gives one token back where its key cannot be released, not two', async () => {
  now += 3_600_000;
  const here = place();
  const collect: Request = ['POST', session('/dtmf/collect'), {}];
  const release = spyOn(platform.testStore.store.idempotency, 'release').mockRejectedValue(new StoreUnavailable('away'));
  try {
    for (let n = 0; n < 2; n += 1) expect((await send(app, collect, here)).status).toBe(202);
    isRefused = true;
    expect((await send(app, collect, here)).status).toBe(503);
  } finally {
    isRefused = false;
    release.mockRestore();
  }
  for (let n = 0; n < 2; n += 1) expect((await send(app, collect, here)).status).toBe(202);
  expect((await send(app, collect, here)).status).toBe(429);
});

test('every route of an application has a limit, and every limit is that of a route', () => {
  const { routes } = platform.app;
  const unlimited = routes.filter(({ auth, buckets: own = [] }) => auth !== 'operator' && own.length === 0);
  expect(unlimited.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  // Calls from browsers come by a door of their own (whip.test.ts).
  const used = new Set<string>([...routes.flatMap(({ buckets: own = [] }) => own), 'whip_offer', 'whip_patch']);
  expect([...used].sort()).toEqual(Object.keys(buckets).sort());
});
