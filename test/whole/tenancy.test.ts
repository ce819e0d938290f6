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
