/**
 * Another application's objects are not there: whoever asks for one gets, byte for byte and in the same time, what an
 * identifier of nothing gets.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { newUuid } from '../../src/id.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

let platform: Platform;
let owner: Credentials;
let stranger: Credentials;
let bot: ReturnType<typeof Bun.serve>;
const receiver = new Receiver();
const format = { encoding: 'pcm_s16le', sample_rate: 8000 };
/** The objects of the owner, by the names that paths and bodies call them. */
const owned: Record<string, string> = {};

beforeAll(async () => {
  platform = await Platform.start();
  owner = await platform.application(receiver.url, '+15550002');
  stranger = await platform.application(receiver.url, '+15550003');
  bot = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, server) => (server.upgrade(request, { data: undefined }) ? undefined : new Response(null, { status: 400 })),
    websocket: { message() {} },
  });
  const post = async (path: string, body: unknown = {}) => {
    const { status, body: made } = await platform.api(owner, 'POST', path, body);
    expect([path, status < 300, made]).toEqual([path, true, made]);
    return made;
  };
  const connect = {
    websocket: { url: `ws://127.0.0.1:${bot.port}/` },
    media_format: { from_session: format, to_session: format },
  };
  owned.session_uuid = String((await post('/v1/sessions:connectWebsocket', connect)).session_uuid);
  await receiver.event('websocket.connected', owned.session_uuid);
  owned.room_id = String((await post('/api/v1/rooms')).room_id);
  await post(`/api/v1/rooms/${owned.room_id}/members`, { session_uuid: owned.session_uuid });
  await receiver.event('room.member.joined', owned.session_uuid);
  owned.recording_uuid = String(
    (await post(`/v1/sessions/${owned.session_uuid}/recordings`, { direction: 'both', channels: 'mono' })).recording_uuid,
  );
  await post(`/api/v1/rooms/${owned.room_id}/playback/record`);
  const pushed = await post(`/v1/sessions/${owned.session_uuid}/playback/play`, { type: 'push', media_format: format });
  owned.ingest_url = new URL(String(Object(pushed.ingest).url)).pathname;
  const message = { from: '+15550002', to: '+15550100', text: 'hello' };
  owned.message_uuid = String((await post('/v1/messages', message)).message_uuid);
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
  await bot?.stop(true);
});

const nothing = (kind: string): string => (kind === 'recording_uuid' ? `rec_${newUuid()}` : newUuid());

/** The answer to the stranger, as text, without what is of the moment. */
async function answer(method: string, path: string, body: unknown): Promise<string> {
  const response = await fetch(platform.url + path, {
    method,
    headers: {
      authorization: `Bearer ${stranger.appUuid}:${stranger.apiKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const fields = [...response.headers].filter(([name]) => name !== 'traceparent' && name !== 'date');
  return JSON.stringify([response.status, fields.sort(), await response.text()]);
}

interface Operation {
  readonly operationId: string;
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: unknown }>> };
}

/** What a path parameter names: `uuid` is a Session below `/v1/sessions` and a member of a Room elsewhere. */
const kindOf = (path: string, name: string): string =>
  name === 'uuid' ? (path.startsWith('/v1/messages') ? 'message_uuid' : 'session_uuid') : name;

test('Every route answers for the objects of another application what it answers for nothing, byte for byte', async () => {
  const { paths }: { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> } = await (
    await fetch(`${platform.url}/openapi.json`)
  ).json();
  const different: string[] = [];
  let asked = 0;
  const compare = async (what: string, method: string, theirs: string, none: string, body?: unknown, noneBody = body) => {
    asked++;
    const [foreign, unknown] = [await answer(method, theirs, body), await answer(method, none, noneBody)];
    if (foreign !== unknown || !/^\[(404|400|409)/.test(foreign)) different.push(`${what}: ${foreign} / ${unknown}`);
  };
  for (const [template, operations] of Object.entries(paths)) {
    if (!/^\/(api\/)?v1\//.test(template) || !template.includes('{') || /\/(media|ingest|whip)/.test(template)) continue;
    for (const [method, { operationId, requestBody }] of Object.entries(operations)) {
      const json = requestBody?.content['application/json'];
      const fill = (value: (kind: string) => string) =>
        template.replaceAll(/\{(\w+)\}/g, (_, name: string) => value(kindOf(template, name)));
      // Each identifier by itself, so that a path with two tells nothing by either of them.
      const kinds = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => kindOf(template, name));
      if (kinds.some((kind) => owned[kind] === undefined)) continue;
      const body = requestBody === undefined ? undefined : (json?.example ?? {});
      await compare(
        operationId,
        method.toUpperCase(),
        fill((kind) => owned[kind] ?? ''),
        fill(nothing),
        body,
      );
    }
  }
  // Identifiers in bodies.
  const mine = String((await platform.api(stranger, 'POST', '/api/v1/rooms', {})).body.room_id);
  const bodies: readonly (readonly [string, string, Readonly<Record<string, unknown>>, string])[] = [
    ['join', `/api/v1/rooms/${mine}/members`, {}, 'session_uuid'],
    ['dial', '/v1/sessions:dial', { from: '+15550003', to: '+15550100', ring_timeout_sec: 5 }, 'room_id'],
    [
      'connect',
      '/v1/sessions:connectWebsocket',
      { websocket: { url: 'ws://127.0.0.1:9/' }, media_format: { from_session: format, to_session: format } },
      'room_id',
    ],
  ];
  for (const [what, path, body, name] of bodies)
    await compare(what, 'POST', path, path, { ...body, [name]: owned[name] }, { ...body, [name]: newUuid() });
  const phone = { websocket: { url: 'ws://127.0.0.1:9/' }, media_format: { from_session: format, to_session: format } };
  const path = '/v1/sessions:connectWebsocket';
  const of = (uuid: string | undefined) => ({ ...phone, phone_session_uuid: uuid });
  await compare('phone', 'POST', path, path, of(owned.session_uuid), of(newUuid()));
  await compare('ingest', 'POST', owned.ingest_url ?? '', (owned.ingest_url ?? '').replace(/[^/]+$/, newUuid()), undefined);
  expect(different).toEqual([]);
  expect(asked).toBeGreaterThan(45);
}, 60_000);

/** A phone call of the stranger with itself, answered: what the stranger has of each kind. */
async function own(): Promise<Readonly<Record<'session_uuid' | 'room_id' | 'recording_uuid' | 'token', string>>> {
  const post = async (path: string, body: unknown = {}) => {
    const made = await platform.api(stranger, 'POST', path, body);
    expect([path, made.status < 300, made.body]).toEqual([path, true, made.body]);
    return made.body;
  };
  receiver.misbehave = (event) => {
    if (event.event === 'session.created') void platform.answerSoon(stranger, event.session_uuid);
    return undefined;
  };
  const dial = { from: '+15550003', to: '+15550003', ring_timeout_sec: 30 };
  const uuid = String((await post('/v1/sessions:dial', dial)).session_uuid);
  await receiver.event('session.answered', uuid);
  const room = String((await post('/api/v1/rooms')).room_id);
  await post(`/api/v1/rooms/${room}/members`, { session_uuid: uuid });
  await receiver.event('room.member.joined', uuid);
  const recording = { direction: 'both', channels: 'mono' };
  const recordingUuid = String((await post(`/v1/sessions/${uuid}/recordings`, recording)).recording_uuid);
  const token = String((await post('/v1/webrtc-tokens')).token);
  return { session_uuid: uuid, room_id: room, recording_uuid: recordingUuid, token };
}

test('An identifier of another application beside one of its own tells the stranger nothing either', async () => {
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  await platform.operator('PUT', '/trunks/theirs', { uri: 'sip:127.0.0.1:9', inbound_cidrs: [], apps: [owner.appUuid] });
  await platform.operator('PUT', `/apps/${owner.appUuid}/devices/theirs`, { password: 'a-password-of-theirs' });
  const token = await platform.api(owner, 'POST', '/v1/webrtc-tokens', {});
  const mine = await own();
  const { session_uuid: session = '', room_id: room = '', recording_uuid: recording = '' } = owned;
  const of = `/v1/sessions/${mine.session_uuid}`;
  const dial = { from: '+15550003', to: '+15550003', ring_timeout_sec: 5 };
  const connect = {
    websocket: { url: 'ws://127.0.0.1:9/' },
    media_format: { from_session: format, to_session: format },
  };
  /** What is asked with an identifier of the owner's, and the same with one of nothing. */
  const pairs: (readonly [string, string, (id: string) => unknown, string, string])[] = [
    // A path with two identifiers, one of them the stranger's own.
    ...['stop', 'mask', 'unmask'].map(
      (verb) => ['POST', `${of}/recordings/{}/${verb}`, () => ({}), recording, nothing('recording_uuid')] as const,
    ),
    ['GET', `${of}/recordings/{}`, () => undefined, recording, nothing('recording_uuid')],
    ['GET', `/v1/sessions/{}/recordings/${mine.recording_uuid}`, () => undefined, session, newUuid()],
    ...['GET', 'DELETE'].map(
      (method) => [method, `/api/v1/rooms/${mine.room_id}/members/{}`, () => undefined, session, newUuid()] as const,
    ),
    ['DELETE', `/api/v1/rooms/{}/members/${mine.session_uuid}`, () => undefined, room, newUuid()],
    ['POST', '/api/v1/rooms/{}/members', () => ({ session_uuid: mine.session_uuid }), room, newUuid()],
    // Identifiers in bodies.
    [
      'POST',
      `/api/v1/rooms/${mine.room_id}/members`,
      (coach) => ({ session_uuid: mine.session_uuid, coach }),
      session,
      newUuid(),
    ],
    ['POST', `${of}/transfer`, (uuid) => ({ to_session_uuid: uuid }), session, newUuid()],
    ['POST', '/v1/sessions:connectWebsocket', (id) => ({ ...connect, phone_session_uuid: id }), session, newUuid()],
    ['POST', '/v1/sessions:dial', (name) => ({ ...dial, to: `sip:${name}` }), 'theirs', 'nobody'],
    ['POST', '/v1/sessions:dial', (trunk) => ({ ...dial, trunk }), 'theirs', 'nobody'],
    ['POST', '/v1/sessions:dial', (from) => ({ ...dial, from }), '+15550002', '+15550999'],
    ['POST', '/v1/messages', (from) => ({ from, to: '+15550100', text: 'x' }), '+15550002', '+15550999'],
    ['POST', '/v1/webrtc-tokens', (caller) => ({ caller_id: caller }), '+15550002', '+15550999'],
    ['DELETE', '/v1/webrtc-tokens/{}', () => undefined, String(token.body.token_id), newUuid()],
  ];
  const different: string[] = [];
  for (const [method, path, body, theirs, none] of pairs) {
    const foreign = await answer(method, path.replace('{}', theirs), body(theirs));
    const unknown = await answer(method, path.replace('{}', none), body(none));
    if (foreign !== unknown || /^\[2/.test(foreign)) different.push(`${method} ${path}: ${foreign} / ${unknown}`);
  }
  // WHIP, by a token of the stranger's.
  for (const method of ['DELETE', 'PATCH']) {
    const whip = async (uuid: string) => {
      const headers = { authorization: `Bearer ${mine.token}`, 'content-type': 'application/trickle-ice-sdpfrag' };
      const response = await fetch(`${platform.url}/v1/whip/${uuid}`, { method, headers, body: 'a=ice-ufrag:x\r\n' });
      const fields = [...response.headers].filter(([name]) => name !== 'traceparent' && name !== 'date');
      return JSON.stringify([response.status, fields.sort(), await response.text()]);
    };
    const [foreign, unknown] = [await whip(session), await whip(newUuid())];
    if (foreign !== unknown || !foreign.startsWith('[404')) different.push(`WHIP ${method}: ${foreign} / ${unknown}`);
  }
  expect(different).toEqual([]);
}, 60_000);

/** Differences below this are the database's: a row that is found and not given is a page more than no row. */
const NOTHING_MS = 0.1;
/** The same as a part of an answer, for a busy machine where every answer takes longer. A query more is a fifth. */
const NOTHING_PART = 0.04;
/** What others do on the machine can look like a difference, but not in each round of as many. */
const ROUNDS = 5;

/** The quick ones of many: the time that an answer takes while nothing else is done. */
const lowerQuartile = (values: number[]): number => values.toSorted((one, other) => one - other)[values.length >> 2] ?? 0;

test('An object of another application takes as long to be not there as nothing does, to a tenth of a millisecond', async () => {
  const timed = async (path: string) => {
    const began = performance.now();
    await answer('GET', path, undefined);
    return performance.now() - began;
  };
  /**
   * Milliseconds that the object of another takes longer than nothing; in turns, so that both meet the same machine.
   */
  const round = async (path: string, uuid: string) => {
    const theirs: number[] = [];
    const nothings: number[] = [];
    for (let pair = 0; pair < 400; pair++) {
      if (pair % 2 === 0) theirs.push(await timed(path + uuid));
      nothings.push(await timed(path + newUuid()));
      if (pair % 2 === 1) theirs.push(await timed(path + uuid));
    }
    const none = lowerQuartile(nothings);
    return { difference: lowerQuartile(theirs) - none, limit: Math.max(NOTHING_MS, NOTHING_PART * none) };
  };
  for (const [path, name] of [
    ['/v1/sessions/', 'session_uuid'],
    ['/api/v1/rooms/', 'room_id'],
    ['/v1/messages/', 'message_uuid'],
  ] as const) {
    const differences: number[] = [];
    let isEqual = false;
    while (!isEqual && differences.length < ROUNDS) {
      const { difference, limit } = await round(path, owned[name] ?? '');
      differences.push(difference);
      isEqual = Math.abs(difference) < limit;
    }
    expect([name, isEqual, differences]).toEqual([name, true, differences]);
  }
}, 90_000);
