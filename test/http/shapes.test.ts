/**
 * Every request body of the API, broken in one place at a time: one issue, with the path of that place (interface,
 * Errors).
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { newUuid } from '../../src/id.ts';
import fc from '../support/fast-check.ts';
import { openPlatform, type Platform } from './platform.ts';

let platform: Platform;
let app: AppSecrets;
beforeAll(async () => {
  platform = await openPlatform();
  app = await platform.testStore.store.apps.create({ name: 'shapes' });
});
afterAll(() => platform.close());

const url = 'http://example.com/a.wav';
const session = `/v1/sessions/${newUuid()}`;
const room = `/api/v1/rooms/${newUuid()}`;
const format = { encoding: 'pcm_s16le', sample_rate: 16000 };
const collect = { prompt_files: [url], max_attempts: 2, terminators: ['#'], first_digit_timeout_ms: 1000 };
const operatorApp = `/operator/v1/apps/app_${newUuid()}`;

/** A valid body of every operation that takes one, by method and path. */
const BODIES: readonly (readonly [method: string, path: string, body: Record<string, unknown>])[] = [
  [
    'POST',
    '/v1/sessions:dial',
    {
      from: '+15550100',
      to: '+15550199',
      ring_timeout_sec: 30,
      sip_headers: { 'X-A': 'b' },
      client_state: 's',
      trunk: 't',
      machine_detection: { timeout_ms: 5000 },
    },
  ],
  [
    'POST',
    '/v1/sessions:connectWebsocket',
    {
      websocket: { url: 'ws://example.com/', headers: { a: 'b' }, subprotocol: 'x', connect_timeout_sec: 3 },
      media_format: { from_session: format, to_session: format },
      client_state: 's',
    },
  ],
  ['POST', '/v1/webrtc-tokens', { ttl_sec: 60, caller_id: '+15550100', to: '+15550001', client_state: 's' }],
  ['POST', `${session}/reject`, { reason: 'busy' }],
  ['POST', `${session}/playback/play`, { type: 'files', urls: [url], loop: 1, volume: 100 }],
  ['POST', `${session}/playback/play`, { type: 'stream', url, volume: 1 }],
  ['POST', `${session}/playback/play`, { type: 'push', media_format: format }],
  ['POST', `${session}/playback/seek`, { position_ms: 1 }],
  ['POST', `${session}/playback/seek`, { offset_ms: 1 }],
  [
    'POST',
    `${session}/dtmf/collect`,
    { prompt_files: [url], min_digits: 1, valid_digits: '1', terminators: ['#'], barge_in: true },
  ],
  [
    'POST',
    `${session}/recordings`,
    {
      direction: 'both',
      channels: 'mono',
      include_gaps: true,
      voice_activity_config: { sensitivity: 0.5, speech_duration_ms: 100, silence_duration_ms: 500 },
    },
  ],
  ['POST', `${session}/payment/card/collect`, { ...collect, accepted_brands: ['visa'] }],
  ['POST', `${session}/payment/cvv/collect`, { ...collect, card_uuid: `card_${newUuid()}` }],
  ['POST', `${session}/transfer`, { to: '+15550199', timeout_sec: 30 }],
  ['POST', `${session}/dtmf/send`, { digits: '1w#', duration_ms: 100, gap_ms: 100 }],
  ['POST', `${session}/room/volume`, { volume: 100, direction: 'both' }],
  ['POST', '/v1/messages', { from: '+15550100', to: '+15550199', text: 'x' }],
  ['POST', '/api/v1/rooms', { voice_activity_events: true, hold_music_url: 'https://a.example/music.mp3' }],
  ['POST', `${room}/members`, { session_uuid: newUuid(), muted: true, coach: newUuid() }],
  ['POST', `${room}/playback/play`, { type: 'files', urls: [url], loop: 1, volume: 100 }],
  ['POST', `${room}/playback/play`, { type: 'stream', url }],
  ['POST', `${room}/playback/seek`, { position_ms: 1 }],
  ['POST', `${room}/playback/seek`, { offset_ms: -1 }],
  ['POST', `${room}/playback/volume`, { volume: 100 }],
  ['POST', `${room}/playback/record`, { include_gaps: true }],
  ['PATCH', '/api/v1/app', { webhook_url: 'http://example.com/', blocked_webhook_events: ['session.held'] }],
  ['POST', '/operator/v1/apps', { name: 'a', room_limits: { max_rooms: 1, max_members_per_room: 2 } }],
  ['POST', `${operatorApp}/events`, { event: 'session.created' }],
  ['POST', `${operatorApp}/webrtc-tokens`, { ttl_sec: 60, to: '+15550001' }],
  ['POST', `${operatorApp}/dial`, { from: '+15550001', to: '+15550100', trunk: 'carrier' }],
  ['POST', `${operatorApp}${session.slice(3)}/play`, { url: 'https://media.example.com/welcome.wav' }],
  ['PATCH', operatorApp, { name: 'a', blocked_webhook_events: ['room.*'], room_limits: { max_rooms: 1 } }],
];

type Path = readonly (string | number)[];

/** Every place in a value, itself included. */
const placesOf = (value: unknown, path: Path = []): Path[] => [
  path,
  ...(Array.isArray(value)
    ? value.flatMap((each, index) => placesOf(each, [...path, index]))
    : typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([name, each]) => placesOf(each, [...path, name]))
      : []),
];

const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, step) => (Array.isArray(inner) ? inner[Number(step)] : Object(inner)[step]), value);

function replaced(value: unknown, path: Path, by: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return by;
  if (Array.isArray(value)) return value.map((each, index) => (index === step ? replaced(each, rest, by) : each));
  return Object.fromEntries(
    Object.entries(Object(value)).map(([name, each]) => [name, name === step ? replaced(each, rest, by) : each]),
  );
}

/** The name of a value's JSON type. */
const typeOf = (value: unknown): string => (Array.isArray(value) ? 'list' : value === null ? 'null' : typeof value);
const OF_OTHER_TYPES: readonly unknown[] = [null, true, 7, 'no', [], {}];
const pathText = (path: Path): string =>
  path.length === 0
    ? 'body'
    : path.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${step}`)).join('');

const send = (method: string, path: string, body: unknown) =>
  path.startsWith('/operator/')
    ? platform.operator(method, path, JSON.stringify(body), { 'content-type': 'application/json' })
    : platform.call(app, method, path, JSON.stringify(body), { 'content-type': 'application/json' });

describe('a body that is wrong in one place', () => {
  test('is refused with that place alone, on every route', async () => {
    const broken = fc
      .constantFrom(...BODIES)
      .chain(([method, path, body]) =>
        fc
          .constantFrom(...placesOf(body))
          .chain((place) =>
            fc
              .constantFrom(...OF_OTHER_TYPES.filter((other) => typeOf(other) !== typeOf(at(body, place))))
              .map((other) => ({ method, path, place, body: replaced(body, place, other) })),
          ),
      );
    await fc.assert(
      fc.asyncProperty(broken, async ({ method, path, place, body }) => {
        const reply = await send(method, path, body);
        expect(reply.status).toBe(path === '/v1/sessions:dial' ? 422 : 400);
        expect(Object.keys(reply.body)).toEqual(['code', 'message']);
        expect(reply.body.code).toBe('invalid_request');
        expect(`${reply.body.message}`.split(': must be ')[0]).toBe(pathText(place));
      }),
      { numRuns: 1_500 },
    );
  });

  test('names a field that nobody knows, at any depth', async () => {
    for (const [method, path, body] of BODIES)
      for (const place of placesOf(body)) {
        const inner = at(body, place);
        // The names of headers are the caller's own.
        if (typeOf(inner) !== 'object' || /headers$/.test(String(place.at(-1)))) continue;
        const reply = await send(method, path, replaced(body, place, { ...Object(inner), 'nobody-knows': 1 }));
        const where = pathText([...place, 'nobody-knows']);
        expect(`${path} ${reply.body.message}`).toBe(`${path} ${where}: is not a known field here`);
      }
  });

  test('the table above names every operation that takes a body of its own', async () => {
    const document = (await platform.raw('/openapi.json')).body;
    const pattern = (path: string) => new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`);
    const missing: string[] = [];
    for (const [path, operations] of Object.entries<Record<string, { requestBody?: { content: object } }>>(document.paths))
      for (const [method, { requestBody }] of Object.entries(operations)) {
        const known = BODIES.some(([m, p]) => m === method.toUpperCase() && pattern(path).test(p));
        // Trunks, devices, charges and assignments have tests of their own shapes.
        if (
          requestBody !== undefined &&
          'application/json' in requestBody.content &&
          !known &&
          !/trunks|devices|charges|numbers|caller-ids|terminals/.test(path)
        )
          missing.push(`${method} ${path}`);
      }
    expect(missing).toEqual([]);
  });
});

describe('a seek', () => {
  test('takes every safe integer and no other number, for a Session and a Room alike', async () => {
    for (const owner of [session, room])
      for (const field of ['position_ms', 'offset_ms']) {
        for (const good of [0, 86_400_001, Number.MAX_SAFE_INTEGER])
          expect((await send('POST', `${owner}/playback/seek`, { [field]: good })).status).toBe(404);
        for (const bad of [1e300, 2 ** 53, 1.5])
          expect((await send('POST', `${owner}/playback/seek`, { [field]: bad })).body.message).toStartWith(`${field}: must be `);
      }
  });
  test('names one place, not two and not none', async () => {
    for (const owner of [session, room])
      for (const body of [{}, { position_ms: 1, offset_ms: 1 }])
        expect((await send('POST', `${owner}/playback/seek`, body)).body.message).toBe(
          'position_ms: exactly one of position_ms and offset_ms is required',
        );
  });
});

describe('blocked_webhook_events', () => {
  test('takes names of events and prefixes of them, and nothing else', async () => {
    const patch = (name: string) => send('PATCH', '/api/v1/app', { blocked_webhook_events: [name] });
    for (const good of ['session.held', 'room.*', 'room.member.*', 'recording.speech.started'])
      expect((await patch(good)).status).toBe(204);
    for (const bad of ['session.hold', 'rooms.*', 'session', 'session.held.*', '*'])
      expect((await patch(bad)).body.message).toStartWith('blocked_webhook_events[0]: must be ');
    expect((await patch('rooms.*')).body.message).toEndWith('the name of an event, or a prefix of one with a trailing .*');
  });
});

describe('a URL that is not kept as it was sent', () => {
  const send = async (method: string, path: string, body: unknown) => {
    const { status, body: answer } = await platform.call(app, method, path, body);
    return `${status} ${answer?.message}`;
  };
  // The parser of URLs takes each of these, and leaves something out.
  const odd = (scheme: string) =>
    ['a\n.com/', 'a.com/\r\n', 'a.com/ ', 'a.com/\tb', '/a.com/'].map((rest) => `${scheme}://${rest}`);

  test('is refused for webhooks, sources, hold music and WebSockets, and what is wanted is said', async () => {
    for (const given of odd('http')) {
      const webhook = await send('PATCH', '/api/v1/app', { webhook_url: given });
      expect(webhook).toStartWith('400 webhook_url: must be "" or an http or https URL');
      const play = await send('POST', `${room}/playback/play`, { type: 'files', urls: [given] });
      expect(play).toStartWith('400 urls[0]: must be an http or https URL');
      const music = await send('POST', '/api/v1/rooms', { hold_music_url: given });
      expect(music).toStartWith('400 hold_music_url: must be an http or https URL');
    }
    const socket = (given: string) =>
      send('POST', '/v1/sessions:connectWebsocket', {
        websocket: { url: given },
        media_format: { from_session: format, to_session: format },
      });
    for (const given of odd('ws')) expect(await socket(given)).toStartWith('400 websocket.url: must be a');
    expect(await socket('ws://a.com:65536/')).toContain('a port of 1 to 65535');
    expect(await send('PATCH', '/api/v1/app', { webhook_url: 'ftp://a.com/' })).toContain('an http or https URL');
    expect(await send('PATCH', '/api/v1/app', { webhook_url: 'https://a.com/b c?d=\u00e9' })).toStartWith('204');
  });
});

test('a source with a user or a password is refused everywhere before it is fetched, and the message says so', async () => {
  const refusal = async (method: string, path: string, body: unknown) => {
    const { status, body: answer } = await platform.call(app, method, path, body);
    return `${status} ${answer?.message}`;
  };
  const wanted = 'must be an http or https URL of at most 2048 characters without user and password';
  for (const given of ['http://user:secret@a.example/a.wav', 'https://user@a.example/a.wav', 'http://:secret@a.example/a.wav']) {
    for (const path of [`${session}/playback/play`, `${room}/playback/play`]) {
      expect(await refusal('POST', path, { type: 'files', urls: [url, given] })).toBe(`400 urls[1]: ${wanted}`);
      expect(await refusal('POST', path, { type: 'stream', url: given })).toBe(`400 url: ${wanted}`);
    }
    for (const path of ['dtmf/collect', 'payment/card/collect', 'payment/cvv/collect'])
      expect(await refusal('POST', `${session}/${path}`, { prompt_files: [given] })).toBe(`400 prompt_files[0]: ${wanted}`);
    const retry = await refusal('POST', `${session}/payment/card/collect`, { retry_prompt_files: [given] });
    expect(retry).toBe(`400 retry_prompt_files[0]: ${wanted}`);
    expect(await refusal('POST', '/api/v1/rooms', { hold_music_url: given })).toBe(`400 hold_music_url: ${wanted}`);
  }
});

test('a header that may not have its name is told how it may be named', async () => {
  const dial = { from: '+15550100', to: '+15550199', ring_timeout_sec: 30 };
  const named = await platform.call(app, 'POST', '/v1/sessions:dial', { ...dial, sip_headers: { From: 'x' } });
  expect(named.body.message).toBe('sip_headers.From: must have a name of the form ^X-[A-Za-z0-9-]{1,62}$');
  const websocket = { url: 'ws://example.com/', headers: { 'a b': 'x' } };
  const body = { websocket, media_format: { from_session: format, to_session: format } };
  const spaced = await platform.call(app, 'POST', '/v1/sessions:connectWebsocket', body);
  expect(spaced.body.message).toStartWith('websocket.headers.a b: must have a name of the form ');
  const told = async (headers: object) => {
    const given = { ...body, websocket: { url: 'ws://example.com/', headers } };
    return (await platform.call(app, 'POST', '/v1/sessions:connectWebsocket', given)).body.message;
  };
  // A header that is refused is named by its path.
  for (const name of ['traceparent', 'X-Session-Uuid', 'Host', 'Content-Length', 'sec-websocket-key'])
    expect(await told({ a: 'b', [name]: 'x' })).toStartWith(`websocket.headers.${name}: must be absent`);
  expect(await told({ 'X-Token': '1', 'x-token': '2' })).toStartWith('websocket.headers.x-token: must be given once');
  const unknown = await platform.call(app, 'POST', '/v1/sessions:dial', { ...dial, sip_header: {} });
  expect(unknown.body.message).toBe('sip_header: is not a known field here');
});

test('text is counted in characters, as JSON Schema counts it', async () => {
  const send = (text: string) => platform.call(app, 'POST', '/v1/messages', { from: '+15550100', to: '+15550199', text });
  expect((await send('😀'.repeat(1_600))).status).toBe(403);
  expect(await send('😀'.repeat(1_601))).toMatchObject({
    status: 400,
    body: { message: 'text: must be a string of 1 to 1600 characters' },
  });
  expect((await send('')).status).toBe(400);
  // What is no text at all is told so: an object as client_state was told to be shorter.
  const dial = { from: '+15550100', to: '+15550199', ring_timeout_sec: 30 };
  const object = await platform.call(app, 'POST', '/v1/sessions:dial', { ...dial, client_state: { order: 7 } });
  expect(object.body.message).toBe('client_state: must be a string of at most 1024 characters');
  const token = (clientState: string) => platform.call(app, 'POST', '/v1/webrtc-tokens', { client_state: clientState });
  expect([(await token('😀'.repeat(1_024))).status, (await token('😀'.repeat(1_025))).status]).toEqual([201, 400]);
});

test('what is wrong with two fields together is told by the field that holds both', async () => {
  const body = {
    websocket: { url: 'ws://example.com/', subprotocol: 'twilio' },
    media_format: { from_session: format, to_session: format },
  };
  expect((await platform.call(app, 'POST', '/v1/sessions:connectWebsocket', body)).body.message).toStartWith(
    'media_format: must be mulaw',
  );
});

describe('the OpenAPI document', () => {
  const dial = { from: '+15550100', to: '+15550199', ring_timeout_sec: 30 };
  const socket = { websocket: { url: 'ws://example.com/' }, media_format: { from_session: format, to_session: format } };
  const many = (count: number, name = (at: number) => `X-${at}`) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [name(at), 'v']));
  const named = (length: number, letter = 'n') => many(1, () => letter.repeat(length));
  const charge = (amount: number) => ({
    card_uuid: `card_${newUuid()}`,
    cvv_uuid: `cvv_${newUuid()}`,
    exp_month: 1,
    exp_year: 2030,
    amount,
    currency: 'ils',
    provider: 'sandbox',
    terminal_number: '1234567',
  });
  const connect = '/v1/sessions:connectWebsocket';
  const inRoom = { ...socket, room_id: newUuid() };

  /** Limits that concern several fields, or how many there are: the name of a schema, the limit, and one more. */
  const LIMITS: readonly (readonly [schema: string, path: string, fits: object, breaks: readonly object[]])[] = [
    ['DialRequest', '/v1/sessions:dial', { ...dial, sip_headers: many(20) }, [{ ...dial, sip_headers: many(21) }]],
    [
      'ConnectWebsocketRequest',
      connect,
      { ...inRoom, websocket: { ...socket.websocket, headers: many(20) } },
      [{ ...inRoom, websocket: { ...socket.websocket, headers: many(21) } }],
    ],
    ['ConnectWebsocketRequest', connect, { ...inRoom, parameters: many(32) }, [{ ...inRoom, parameters: many(33) }]],
    ['ConnectWebsocketRequest', connect, { ...inRoom, parameters: named(64) }, [{ ...inRoom, parameters: named(65) }]],
    [
      'ConnectWebsocketRequest',
      connect,
      { ...inRoom, parameters: named(64, '😀') },
      [{ ...inRoom, parameters: named(65, '😀') }],
    ],
    ['SeekPlaybackRequest', `${session}/playback/seek`, { offset_ms: 1 }, [{}, { position_ms: 1, offset_ms: 1 }]],
    ['SeekRoomPlaybackRequest', `${room}/playback/seek`, { offset_ms: 1 }, [{}, { position_ms: 1, offset_ms: 1 }]],
    [
      'TransferSessionRequest',
      `${session}/transfer`,
      { to: '+15550199' },
      [{}, { timeout_sec: 30 }, { to: '+15550199', to_session_uuid: newUuid() }],
    ],
    ['ChargeRequest', `${session}/payment/charges`, charge(100), [charge(150)]],
  ];

  /** What only one of the two judges: a URL as a whole, text that cannot be stored, two fields together. */
  const BEYOND_A_SCHEMA =
    /URL of at most|without U\+0000|min_digits: must be at most|is unsupported|are unsupported|ws or wss URL|must be mulaw|an event, or a prefix|sip: URI of at most/;
  const ODD: readonly unknown[] = [
    ...['', ' ', 'x', 'X', '0', '#', 'é', '😀', '+', '+1', '+972', '+15550100', '15550100', '+155501001234567890', 'carrier'],
    ...['a'.repeat(33), 'b'.repeat(64), 'b'.repeat(65), '😀'.repeat(64), '😀'.repeat(65), 'c'.repeat(101), 'd'.repeat(2_049)],
    ...[
      'http://a.example/',
      'HTTPS://a.example',
      'ftp://a.example/',
      'ws://a.example/',
      'http://',
      'sip:alice',
      'sip:a@b.example',
    ],
    ...[
      'session.ended',
      'session.*',
      'SESSION',
      'ILS',
      newUuid(),
      newUuid().toUpperCase(),
      `app_${newUuid()}`,
      `rec_${newUuid()}`,
    ],
    ...[0, -1, 1, 4, 5, 19, 20, 21, 100, 101, 200, 201, 1_000, 5_001, 3_600_001, 1e6, 1e6 + 1, 0.5, 1e300, -1e300, 2 ** 53],
  ];
  const MORE: typeof BODIES = [
    ['POST', `${session}/transfer`, { to_session_uuid: newUuid(), timeout_sec: 30 }],
    ['PUT', '/operator/v1/numbers/+15550177', { app_uuid: `app_${newUuid()}` }],
    [
      'PUT',
      '/operator/v1/trunks/carrier',
      {
        ...{ uri: 'sip:192.0.2.1:5060', inbound_cidrs: ['192.0.2.0/24'], username: 'u', password: 'p', register: false },
        ...{ max_channels: 10, codecs: ['PCMU'], country_code: '972', inbound_format: 'auto', outbound_format: 'e164' },
        ...{
          outbound_prefix: '0',
          auth_username: 'a',
          from_user: 'f',
          from_domain: 'd.example',
          outbound_proxy: 'sip:p.example',
        },
        ...{ contact_user: 'c', contact_host: 'sbc.example', user_phone: true, identity: 'pai', trust_identity: false },
        ...{ inbound_auth: false, srtp: 'off', srtp_without_tls: false },
        ...{ session_timer: 'on', max_cps: 5, priority: 1, weight: 2, apps: [`app_${newUuid()}`], follow_redirects: false },
        ...{ tls: { ca: '', cert: '', key: '' }, transfer_hosts: ['h.example'], advertise: '192.0.2.9', nodes: ['n'] },
      },
    ],
    ['PUT', `${operatorApp}/devices/alice`, { password: 'a-secret-of-a-phone', caller_id: '+15550100' }],
    ['PATCH', operatorApp, { webhook_url: '', allowed_destinations: ['+972'], blocked_destinations: ['+1900'] }],
  ];

  test('permits of every field what is admitted, and forbids what is refused', async () => {
    const { components, paths } = (await platform.raw('/openapi.json')).body;
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    ajv.addSchema({ $id: 'openapi', components });
    const schemaOf = (method: string, path: string): string => {
      const fits = (named: string) => new RegExp(`^${named.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`).test(path);
      const named = Object.keys(paths).find(fits) ?? '';
      return paths[named][method.toLowerCase()].requestBody.content['application/json'].schema.$ref;
    };
    const permits = (method: string, path: string) => ajv.getSchema(`openapi${schemaOf(method, path)}`) ?? (() => undefined);
    const wrong: unknown[] = [];
    for (const [method, path, body] of [...BODIES, ...MORE]) {
      const isPermitted = permits(method, path);
      for (const place of placesOf(body).slice(1))
        for (const odd of ODD) {
          const given = replaced(body, place, odd);
          const reply = await send(method, path, given);
          const why = reply.body?.code === 'invalid_request' ? `${reply.body.message}` : undefined;
          const permitted = isPermitted(given) === true;
          const agree = permitted === (why === undefined) || (permitted && BEYOND_A_SCHEMA.test(why ?? ''));
          if (!agree) wrong.push({ method, path, place: pathText(place), odd, permitted, why });
        }
    }
    expect(wrong).toEqual([]);
  });

  test('permits of every parameter of a list what is admitted, and forbids what is refused', async () => {
    const { paths } = (await platform.raw('/openapi.json')).body;
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    const leaps = ['2016-12-31T23:59:60Z', '2016-12-31T18:59:60.5-05:00', '2016-12-31T23:58:60Z', '2016-12-31T23:59:61Z'];
    const times = ['2026-11-29', '2026-11-29T00:00:00Z', '2026-02-30T00:00:00Z', ...leaps];
    const given = [...ODD.map(String), ...times, 'pending', 'live', 'queued'];
    const wrong: unknown[] = [];
    let judged = 0;
    for (const path of Object.keys(paths).filter((each) => /sessions$|recordings$|messages$|events$|devices$/.test(each)))
      for (const { in: place, name, schema } of paths[path].get?.parameters ?? []) {
        // The `after` of such a list is a text of the platform's own.
        if (place !== 'query' || (name === 'after' && schema.type === 'string')) continue;
        for (const text of given) {
          const value = schema.type === 'integer' && /^-?[0-9]+$/.test(text) ? Number(text) : text;
          const permitted = ajv.validate(schema.type === 'array' ? schema.items : schema, value);
          const url = `${path.replace('{app_uuid}', app.appUuid).replace('{uuid}', newUuid())}?${name}=${encodeURIComponent(text)}`;
          const owner = path.startsWith('/operator/') ? platform.operator('GET', url) : platform.call(app, 'GET', url);
          const { status, body: answer } = await owner;
          if (status === 429) continue;
          judged += 1;
          const why = answer?.code === 'invalid_request' ? answer.message : undefined;
          if (permitted !== (why === undefined)) wrong.push({ path, name, text, permitted, why });
        }
      }
    expect(wrong).toEqual([]);
    expect(judged).toBeGreaterThan(1_000);
  });

  test('permits what is admitted at a limit, and not what is refused beyond it', async () => {
    const { components } = (await platform.raw('/openapi.json')).body;
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    ajv.addSchema({ $id: 'openapi', components });
    const judged = async (schema: string, path: string, body: object) => {
      const headers = { 'content-type': 'application/json', 'idempotency-key': newUuid() };
      const { status } = await platform.call(app, 'POST', path, JSON.stringify(body), headers);
      return {
        schema,
        permitted: ajv.validate(`openapi#/components/schemas/${schema}`, body),
        admitted: ![400, 422].includes(status),
      };
    };
    for (const [schema, path, fits, breaks] of LIMITS) {
      expect(await judged(schema, path, fits)).toEqual({ schema, permitted: true, admitted: true });
      for (const each of breaks) expect(await judged(schema, path, each)).toEqual({ schema, permitted: false, admitted: false });
    }
  });
});
