/** What becomes of a command that another node is to serve. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Forwarded, Operation, Peers, Whose } from '../../src/call/ports/peers.ts';
import { accepted } from '../../src/call/ports/sessions.ts';
import { buckets } from '../../src/call/rate/buckets.ts';
import { systemClock } from '../../src/clock.ts';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { CallHistory } from '../../src/history/call-history.ts';
import { whoseOf } from '../../src/http/admission/elsewhere.ts';
import { newUuid } from '../../src/id.ts';
import { NODE_RETRY_AFTER_SEC } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { problems } from '../../src/problem.ts';
import { sessionRow } from '../database/rows.ts';
import { noRooms } from '../support/no-rooms.ts';
import { openPlatform, type Platform, type Reply } from './platform.ts';

let platform: Platform;
let app: AppSecrets;
/** What the other node says to each command in turn; an answer where nothing is left. */
let said: Forwarded[] = [];
/** The Session is on this node after so many looks. */
let looksElsewhere = Number.POSITIVE_INFINITY;
let forwarded: (Operation & { readonly isSlow: boolean })[] = [];
let looks: { readonly whose: Whose; readonly appUuid: string; readonly tried: readonly string[] }[] = [];
/** The tokens that were taken of buckets that the nodes have in common; seconds to wait where none is left. */
let takes: Parameters<Peers['take']>[] = [];
let waitSec: number | undefined;
/** A Room of this node. */
const hereRoom = newUuid();
/** The statuses of commands that were told in timelines of this node. */
let told: number[] = [];
const history = new CallHistory({
  clock: systemClock(),
  log: silentLog,
  write: async () => {},
  onEntry: (_, entry) => void (entry.kind === 'command' && told.push(entry.status)),
  onClosed: () => {},
});

beforeAll(async () => {
  platform = await openPlatform({
    history,
    rooms: { ...noRooms, knows: async () => true, isHere: (roomId) => roomId === hereRoom },
    peers: {
      async nodeOf(whose, appUuid, tried) {
        looks.push({ whose, appUuid, tried: [...tried] });
        return looks.length > looksElsewhere ? undefined : 'another';
      },
      async take(...asked) {
        takes.push(asked);
        return waitSec ?? (() => {});
      },
      async forward(_nodeId, operation, isSlow) {
        forwarded.push({ ...operation, isSlow });
        return said.shift() ?? { outcome: 'answered', answer: accepted(operation.operationUuid) };
      },
    },
  });
  app = await platform.testStore.store.apps.create({ name: 'forwarded' });
});
afterAll(() => platform.close());

/** Sends a command while the other node says so. */
async function sent(path: string, body: unknown, headers: Record<string, string> = {}, ...answers: Forwarded[]): Promise<Reply> {
  said = answers;
  forwarded = [];
  looks = [];
  told = [];
  return await platform.call(app, 'POST', path, body, headers);
}

test('is long only for one whose body names audio sources, which the other node opens first', async () => {
  const session = `/v1/sessions/${newUuid()}`;
  const isSlow = async (path: string, body: unknown) => {
    await sent(`${session}/${path}`, body);
    return forwarded.map((each) => each.isSlow);
  };
  expect(await isSlow('playback/play', { type: 'silence' })).toEqual([false]);
  expect(await isSlow('playback/play', { type: 'files', urls: ['http://192.0.2.1/a.wav'] })).toEqual([true]);
  expect(await isSlow('dtmf/collect', {})).toEqual([false]);
  expect(await isSlow('dtmf/collect', { prompt_files: ['http://192.0.2.1/a.wav'] })).toEqual([true]);
  expect(await isSlow('payment/card/collect', {})).toEqual([false]);
  expect(await isSlow('payment/card/collect', { retry_prompt_files: ['http://192.0.2.1/a.wav'] })).toEqual([true]);
  expect(await isSlow('dtmf/send', { digits: '1' })).toEqual([false]);
  forwarded = [];
  const trial = `/operator/v1/apps/${app.appUuid}/sessions/${newUuid()}`;
  await platform.operator('POST', `${trial}/play`, { url: 'http://192.0.2.1/a.wav' });
  await platform.operator('POST', `${trial}/hangup`, {});
  expect(forwarded.map((each) => each.isSlow)).toEqual([true, false]);
  expect(looks.slice(-2).map(({ appUuid }) => appUuid)).toEqual([app.appUuid, app.appUuid]);
});

test('goes there as it was admitted, and its answer or refusal is the one of that node', async () => {
  const uuid = newUuid();
  const path = `/v1/sessions/${uuid}/answer`;
  history.begin(uuid, app.appUuid);
  const operation = newUuid();
  const done = await sent(`${path}?a=b`, {}, { 'operation-id': operation, 'idempotency-key': 'one' });
  expect([done.status, done.body.operation_uuid]).toEqual([202, operation]);
  expect(forwarded).toMatchObject([
    {
      ...{ method: 'POST', route: '/v1/sessions/:uuid/answer', params: { uuid }, path, query: '?a=b', body: {} },
      ...{ appUuid: app.appUuid, operationUuid: operation, key: { key: 'one' }, isSlow: false },
    },
  ]);
  expect(looks).toEqual([{ whose: { kind: 'session', sessionUuid: uuid }, appUuid: app.appUuid, tried: [] }]);
  const refused = await sent(path, {}, {}, { outcome: 'refused', problem: problems.conflict('It rings no more') });
  expect([refused.status, refused.body.message]).toEqual([409, 'It rings no more']);
  expect(forwarded[0]).not.toHaveProperty('key');
  // It is told in the timeline of that node.
  expect(told).toEqual([]);
});

test('is served here, and told in the timeline, where its Session has just come to this node', async () => {
  const session = platform.session(app);
  history.begin(session, app.appUuid);
  looksElsewhere = 2;
  const done = await sent(`/v1/sessions/${session}/answer`, {}, {}, { outcome: 'moved' }, { outcome: 'not_delivered' });
  looksElsewhere = Number.POSITIVE_INFINITY;
  expect([done.status, platform.sessions.commands.at(-1)?.uuid]).toEqual([202, session]);
  expect(looks.map(({ tried }) => tried.length)).toEqual([0, 1, 2]);
  expect(told).toEqual([202]);
});

test('is given up after three nodes, so that it may be sent again, and at once where one may have done it', async () => {
  const path = `/v1/sessions/${newUuid()}/answer`;
  const key = { 'idempotency-key': newUuid() };
  const moved = { outcome: 'moved' } as const;
  expect((await sent(path, {}, key, moved, moved, { outcome: 'not_delivered' })).status).toBe(503);
  expect(forwarded.length).toBe(3);
  expect((await sent(path, {}, key, { outcome: 'unknown' })).status).toBe(503);
  expect(forwarded.length).toBe(1);
  // Until it is known what came of it, the key is that request's.
  expect((await sent(path, {}, key)).status).toBe(409);
  expect(forwarded).toEqual([]);
});

/** Has this node do what another one forwards to it. */
const perform = (route: string, appUuid: string, uuid: string, until: number) =>
  platform.app.perform(
    {
      ...{ method: 'POST', route, params: { app_uuid: app.appUuid, uuid }, path: '/', query: '', body: {} },
      ...{ appUuid, operationUuid: newUuid(), traceparent: '' },
    },
    until,
  );

test('commits nothing after the other node has given it up, the operator’s commands as an application’s', async () => {
  const uuid = platform.session(app);
  const until = platform.now() + 1_000;
  history.begin(uuid, app.appUuid);
  told = [];
  const before = platform.sessions.commands.length;
  expect(await perform('/v1/sessions/:uuid/answer', app.appUuid, uuid, until)).toMatchObject({ status: 202 });
  expect(await perform('/operator/v1/apps/:app_uuid/sessions/:uuid/hangup', '', uuid, until)).toMatchObject({ status: 202 });
  const contexts = platform.sessions.commands.slice(before).map(({ context }) => context);
  expect(contexts).toMatchObject([
    { appUuid: app.appUuid, until },
    { appUuid: app.appUuid, until },
  ]);
  // The timeline of the call is here.
  expect(told).toEqual([202, 202]);
});

test('tells a dial that another node forwards in the timeline of the call that it made', async () => {
  const uuid = newUuid();
  history.begin(uuid, app.appUuid);
  const route = { method: 'POST', params: { app_uuid: app.appUuid }, query: '', traceparent: '' };
  for (const [path, appUuid, body] of [
    ['/v1/sessions:dial', app.appUuid, { from: '+15550100', to: '+15550101', ring_timeout_sec: 30 }],
    ['/operator/v1/apps/:app_uuid/dial', '', { from: '+15550100', to: '+15550101' }],
  ] as const) {
    told = [];
    platform.sessions.dialled = uuid;
    const operation = { ...route, route: path, path, body, appUuid, operationUuid: newUuid() };
    expect(await platform.app.perform(operation, Number.POSITIVE_INFINITY)).toMatchObject({ status: 202 });
    expect(told).toEqual([202]);
  }
});

test('makes nothing new on a node that has begun to drain, of which the other node does not know yet', async () => {
  const about = { method: 'POST', params: {}, query: '', traceparent: '', appUuid: app.appUuid, operationUuid: newUuid() };
  const body = { from: '+15550100', to: '+15550101', ring_timeout_sec: 30 };
  const dial = { ...about, route: '/v1/sessions:dial', path: '/v1/sessions:dial', body };
  platform.sessions.isDraining = true;
  expect(await platform.app.perform(dial, Number.POSITIVE_INFINITY)).toBe('moved');
  platform.sessions.isDraining = false;
  expect(await platform.app.perform(dial, Number.POSITIVE_INFINITY)).toMatchObject({ status: 202 });
});

test('is 503 where another release has a route that is none here, and leaves no mark of what only reads', async () => {
  const uuid = platform.session(app);
  history.begin(uuid, app.appUuid);
  told = [];
  const about = {
    params: { uuid },
    query: '',
    path: '/',
    traceparent: '',
    appUuid: app.appUuid,
    operationUuid: newUuid(),
    body: {},
  };
  const asked = (method: string, route: string) => platform.app.perform({ ...about, method, route }, Number.POSITIVE_INFINITY);
  expect(await asked('POST', '/v1/sessions/:uuid/next')).toMatchObject({ status: 503, retryAfterSec: NODE_RETRY_AFTER_SEC });
  expect(await asked('GET', '/v1/sessions/:uuid')).toMatchObject({ status: expect.any(Number) });
  expect(told).toEqual([]);
});

test('puts no member in or out of a Room of this node whose call has gone on to another one', async () => {
  const uuid = newUuid();
  await platform.testStore.store.journal.commit({ events: [], session: sessionRow({ sessionUuid: uuid, appUuid: app.appUuid }) });
  const route = '/api/v1/rooms/:room_id/members';
  const room = { room_id: hereRoom };
  const about = { query: '', traceparent: '', path: '/', appUuid: app.appUuid, operationUuid: newUuid() };
  const ordered = async (sessionUuid: string) => [
    await platform.app.perform(
      { ...about, method: 'POST', route, params: room, body: { session_uuid: sessionUuid } },
      Number.POSITIVE_INFINITY,
    ),
    await platform.app.perform(
      { ...about, method: 'DELETE', route: `${route}/:uuid`, params: { ...room, uuid: sessionUuid }, body: undefined },
      Number.POSITIVE_INFINITY,
    ),
  ];
  expect(await ordered(uuid)).toEqual(['moved', 'moved']);
  // The node of the Room answers for a call that is nowhere: it is unknown.
  expect(await ordered(newUuid())).toMatchObject([{ status: 404 }, { status: 404 }]);
});

test('gives its token of the rate limit back where it is refused here or fails, whoever asked', async () => {
  const uuid = platform.session(app);
  const { capacity } = buckets.answer;
  const route = '/v1/sessions/:uuid/answer';
  looksElsewhere = 0;
  for (const [next, status] of [
    [problems.conflict('busy'), 409],
    [new StoreUnavailable('away'), 503],
  ] as const)
    for (let times = 0; times <= capacity; times++) {
      platform.sessions.next = next;
      expect(await perform(route, app.appUuid, uuid, Number.POSITIVE_INFINITY)).toMatchObject({ status });
      platform.sessions.next = next;
      expect((await sent(`/v1/sessions/${uuid}/answer`, {})).status).toBe(status);
    }
  looksElsewhere = Number.POSITIVE_INFINITY;
});

test('takes tokens of an application or a Room where the nodes have them, of a call and the operator here', async () => {
  const [roomId, uuid] = [newUuid(), platform.session(app)];
  looksElsewhere = 0;
  takes = [];
  await platform.call(app, 'GET', '/v1/sessions');
  await platform.call(app, 'DELETE', `/api/v1/rooms/${roomId}/members/${uuid}`);
  expect(takes).toEqual([
    [app.appUuid, ['session_list'], undefined],
    [app.appUuid, ['member_delete'], roomId],
  ]);
  takes = [];
  expect((await sent(`/v1/sessions/${uuid}/answer`, {})).status).toBe(202);
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  expect((await platform.operator('POST', '/mcp', ping, { accept: 'application/json, text/event-stream' })).status).toBe(200);
  expect(takes).toEqual([]);
  waitSec = 7;
  const denied = await platform.call(app, 'GET', '/v1/sessions');
  waitSec = undefined;
  expect([denied.status, denied.headers.get('retry-after')]).toEqual([429, '7']);
  looksElsewhere = Number.POSITIVE_INFINITY;
});

test('is not sent where its caller is gone already', async () => {
  forwarded = [];
  const request = new Request(`http://127.0.0.1/v1/sessions/${newUuid()}/answer`, {
    ...{ method: 'POST', signal: AbortSignal.abort() },
    headers: { authorization: `Bearer ${app.appUuid}:${app.apiKey}` },
  });
  expect([(await platform.app.fetch(request)).status, forwarded]).toEqual([400, []]);
});

test('goes to the node of the Session or Room that it is about, and a new call near what it names', () => {
  const [id, other, third] = [newUuid(), newUuid(), newUuid()];
  const whose = (order: string, params: Record<string, string>, body: unknown = {}) => {
    const [method, path] = order.split(' ');
    const found = platform.app.routes.find((each) => each.method === method && each.path === path);
    if (found === undefined) throw new Error(`no route ${order}`);
    return whoseOf(found, params, body);
  };
  const none = { kind: 'new', near: [], trunk: undefined } as const;
  const dial = { to: '+15550001', trunk: 'home', near: id, room_id: other, phone_session_uuid: third };
  const placed: Whose = { kind: 'new', near: [third, id, other], trunk: 'home', isPhone: true, device: undefined };
  expect(whose('POST /v1/sessions:dial', {}, dial)).toEqual(placed);
  expect(whose('POST /operator/v1/apps/:app_uuid/dial', {}, dial)).toEqual(placed);
  expect(whose('POST /v1/sessions:dial', {}, { to: 'sip:desk', near: 'x', trunk: 1 })).toEqual({
    ...none,
    isPhone: true,
    device: 'desk',
  });
  expect(whose('POST /v1/sessions:connectWebsocket', {}, { to: 'sip:desk', room_id: id })).toEqual({
    ...none,
    near: [id],
    isPhone: false,
    device: undefined,
  });
  expect(whose('POST /api/v1/rooms', {})).toEqual({ ...none, isPhone: false });
  expect(whose('GET /api/v1/rooms', {})).toBeUndefined();

  // A Session is read from its row by any node; all else is its own node's.
  expect(whose('GET /v1/sessions/:uuid', { uuid: id })).toBeUndefined();
  const ofSession = ['DELETE /v1/sessions/:uuid', 'POST /v1/sessions/:uuid/answer', 'GET /v1/sessions/:uuid/recordings'];
  for (const order of [...ofSession, 'POST /operator/v1/apps/:app_uuid/sessions/:uuid/hangup']) {
    expect(whose(order, { uuid: id })).toEqual({ kind: 'session', sessionUuid: id });
    expect(whose(order, { uuid: 'x' })).toBeUndefined();
  }
  expect(whose('GET /operator/v1/sessions/:uuid/timeline', { uuid: id })).toBeUndefined();

  const room = '/api/v1/rooms/:room_id';
  const params = { room_id: id, uuid: other };
  const ofRoom = { kind: 'room', roomId: id } as const;
  const ofMember = { kind: 'member', sessionUuid: other, roomId: id } as const;
  for (const order of [`GET ${room}`, `DELETE ${room}`, `GET ${room}/members`, `GET ${room}/members/:uuid`])
    expect(whose(order, params)).toEqual(ofRoom);
  expect(whose(`POST ${room}/playback/stop`, params, { session_uuid: other })).toEqual(ofRoom);
  expect(whose(`DELETE ${room}`, { room_id: 'x' })).toBeUndefined();
  expect(whose(`POST ${room}/members`, { room_id: id }, { session_uuid: other })).toEqual(ofMember);
  expect(whose(`DELETE ${room}/members/:uuid`, params)).toEqual(ofMember);
  for (const body of [{ session_uuid: 'x' }, null, 'text']) expect(whose(`POST ${room}/members`, params, body)).toEqual(ofRoom);
});
