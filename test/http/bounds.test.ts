/**
 * The bounds of every field of a body, and what is meant where a field is left out, from tables that were written out
 * of the interface and the contract, not out of the code.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { newUuid } from '../../src/id.ts';
import { noRooms } from '../support/no-rooms.ts';
import { openPlatform, type Platform } from './platform.ts';
import { chargeBody, roomSummary } from './sample-bodies.ts';

let platform: Platform;
let app: AppSecrets;
/** What the Rooms were asked for last. */
let asked: unknown;
const roomId = newUuid();
const room = roomSummary(roomId);

beforeAll(async () => {
  const admitted = (request: unknown) => {
    asked = request;
    return { status: 202, body: {} };
  };
  platform = await openPlatform({
    rooms: {
      ...noRooms,
      get: () => room,
      knows: async () => true,
      create: async (request) => admitted(request),
      order: async (_, order) => admitted(order),
      join: async (_, request) => admitted(request),
    },
  });
  app = await platform.testStore.store.apps.create({ name: 'bounds' });
}, 60_000);
afterAll(() => platform.close());

const url = 'http://example.com/a.wav';
const session = (tail: string) => `/v1/sessions/${newUuid()}${tail}`;
const inRoom = (tail: string) => `/api/v1/rooms/${roomId}${tail}`;
const BOTH = { direction: 'both', channels: 'mono' };
const DIAL = { from: '+15550100', to: '+15550199', ring_timeout_sec: 30 };
const FILES = { type: 'files', urls: [url] };
const PCM = { encoding: 'pcm_s16le', sample_rate: 8000 };
const SOCKET = { websocket: { url: 'ws://example.com/' }, media_format: { from_session: PCM, to_session: PCM } };
const CHARGE = chargeBody();

/** A body with another value at a path of names. */
function withField(body: object, [name = '', ...rest]: readonly string[], value: unknown): object {
  const inner: unknown = Object.entries(body).find(([key]) => key === name)?.[1] ?? {};
  return { ...body, [name]: rest.length === 0 ? value : withField(Object(inner), rest, value) };
}

/** The message that refuses a body; undefined where its shape is right. The Sessions are nobody's, as 404 is free. */
async function refusal(path: string, body: object): Promise<string | undefined> {
  const reply = await platform.call(app, 'POST', path, body, { 'idempotency-key': newUuid() });
  return [400, 422].includes(reply.status) ? reply.body.message : undefined;
}

describe('A number of a body', () => {
  type Row = readonly [field: string, least: number, most: number, path: string, body: object];
  const rows: readonly Row[] = [
    // Interface, Recordings, Rooms and Payments.
    ['voice_activity_config.silence_duration_ms', 20, 3_600_000, session('/recordings'), BOTH],
    ['volume', 0, 200, session('/room/volume'), { direction: 'both' }],
    ['amount', 100, 2_147_483_600, session('/payment/charges'), CHARGE],
    // Contract §2.
    ['ring_timeout_sec', 1, 600, '/v1/sessions:dial', DIAL],
    ['max_duration_sec', 60, 86_400, '/v1/sessions:dial', DIAL],
    ['websocket.connect_timeout_sec', 1, 30, '/v1/sessions:connectWebsocket', SOCKET],
    ['position_ms', 0, Number.MAX_SAFE_INTEGER, session('/playback/seek'), {}],
    // Contract §3.
    ['volume', 0, 200, session('/playback/play'), FILES],
    ['volume', 0, 200, session('/playback/play'), { type: 'stream', url }],
    ['volume', 0, 200, session('/playback/play'), { type: 'push', media_format: PCM }],
    ['min_digits', 1, 128, session('/dtmf/collect'), {}],
    ['max_digits', 1, 128, session('/dtmf/collect'), {}],
    // Contract §4.
    ['volume', 0, 200, inRoom('/playback/volume'), {}],
    ['volume', 0, 200, inRoom('/playback/play'), FILES],
    // Contract §5.
    ['voice_activity_config.sensitivity', 0, 1, session('/recordings'), BOTH],
    ['voice_activity_config.speech_duration_ms', 20, 5_000, session('/recordings'), BOTH],
    // Contract §6.
    ['max_attempts', 1, 5, session('/payment/card/collect'), {}],
    ['max_attempts', 1, 5, session('/payment/cvv/collect'), {}],
    ['exp_month', 1, 12, session('/payment/charges'), CHARGE],
    ['installments', 1, 36, session('/payment/charges'), CHARGE],
  ];
  test.each(rows)('%s is of %d to %d', async (field, least, most, path, body) => {
    const told = (value: number) => refusal(path, withField(body, field.split('.'), value));
    expect(await told(least)).toBeUndefined();
    expect(await told(most)).toBeUndefined();
    expect(await told(least - 1)).toStartWith(`${field}: `);
    expect(await told(most + 1)).toStartWith(`${field}: `);
  });

  test('that is beyond its bounds and no whole number is told both at once, in one issue', async () => {
    expect(await refusal('/v1/sessions:dial', { ...DIAL, ring_timeout_sec: 600.5 })).toBe(
      'ring_timeout_sec: must be an integer and at most 600',
    );
  });
});

describe('A list or a text of a body', () => {
  const long = (chars: number) => `${url}?${'a'.repeat(chars - url.length - 1)}`;
  const rows: readonly (readonly [what: string, path: string, fits: object, breaks: object, field: string])[] = [
    ['has 1 URL at least', session('/playback/play'), FILES, { ...FILES, urls: [] }, 'urls'],
    ['has 100 URLs at most', inRoom('/playback/play'), { ...FILES, urls: Array(100).fill(url) }, FILES, ''],
    ['has no 101 URLs', inRoom('/playback/play'), FILES, { ...FILES, urls: Array(101).fill(url) }, 'urls'],
    ['has URLs of 2,048', session('/playback/play'), { ...FILES, urls: [long(2_048)] }, FILES, ''],
    ['has none of 2,049', session('/playback/play'), FILES, { ...FILES, urls: [long(2_049)] }, 'urls[0]'],
    [
      'has seven digits, not six',
      session('/payment/charges'),
      CHARGE,
      { ...CHARGE, terminal_number: '123456' },
      'terminal_number',
    ],
    ['and not eight', session('/payment/charges'), CHARGE, { ...CHARGE, terminal_number: '12345678' }, 'terminal_number'],
    ['names ils in lower case', session('/payment/charges'), CHARGE, { ...CHARGE, currency: 'ILS' }, 'currency'],
  ];
  test.each(rows)('%s', async (_, path, fits, breaks, field) => {
    expect(await refusal(path, fits)).toBeUndefined();
    if (field !== '') expect(await refusal(path, breaks)).toStartWith(`${field}: `);
  });

  test.each([
    ['ws://example.com:1/', true],
    ['wss://example.com:65535/', true],
    ['ws://example.com', true],
    ['ws://example.com:0/', false],
    ['ws://example.com:65536/', false],
    ['ws://user@example.com/', false],
    ['ws://:secret@example.com/', false],
    ['ws://example.com/#part', false],
    ['http://example.com/', false],
  ])('A WebSocket is at a port of 1 to 65535, and its URL names no user, password or fragment: %s', async (address, fits) => {
    const told = await refusal('/v1/sessions:connectWebsocket', withField(SOCKET, ['websocket', 'url'], address));
    if (fits) expect(told).toBeUndefined();
    else expect(told).toStartWith('websocket.url: ');
  });
});

describe('A field that is left out counts as', () => {
  const collectTerms = {
    minDigits: 1,
    maxDigits: 128,
    validDigits: '0123456789*#',
    terminators: ['#'],
    firstDigitTimeoutMs: 5_000,
    interDigitTimeoutMs: 5_000,
    totalTimeoutMs: 60_000,
    bargeIn: true,
  };
  const paymentTerms = { maxAttempts: 3, firstDigitTimeoutMs: 10_000, interDigitTimeoutMs: 5_000, terminators: ['#'] };
  const heard = { sensitivity: 0.5, speechDurationMs: 100, silenceDurationMs: 500 };
  const spoken = { ...BOTH, enable_voice_activity_events: true };

  const ofSessions: readonly (readonly [what: string, tail: string, body: object, command: object])[] = [
    ['no gaps and no word of speech', '/recordings', BOTH, { terms: { includeGaps: false, voiceActivity: undefined } }],
    ['speech as the contract hears it', '/recordings', spoken, { terms: { voiceActivity: heard } }],
    [
      'the same where the object is empty',
      '/recordings',
      { ...spoken, voice_activity_config: {} },
      { terms: { voiceActivity: heard } },
    ],
    ['files once, at full volume', '/playback/play', FILES, { loop: 1, volume: 100 }],
    ['a stream at full volume', '/playback/play', { type: 'stream', url }, { volume: 100 }],
    ['a push at full volume', '/playback/play', { type: 'push', media_format: PCM }, { volume: 100 }],
    ['any digits, up to #', '/dtmf/collect', {}, { promptUrls: [], terms: collectTerms }],
    [
      'no terminator only by an empty list',
      '/dtmf/collect',
      { terminators: [] },
      { terms: { ...collectTerms, terminators: [] } },
    ],
    ['three attempts at a card', '/payment/card/collect', {}, { terms: paymentTerms }],
    ['three attempts at a CVV', '/payment/cvv/collect', {}, { terms: paymentTerms }],
    ['keys of 100 ms', '/dtmf/send', { digits: '1' }, { durationMs: 100, gapMs: 100 }],
    ['30 s for a transfer', '/transfer', { to: '+15550199' }, { timeoutMs: 30_000 }],
  ];
  test.each(ofSessions)('%s', async (_, tail, body, command) => {
    const uuid = platform.session(app, { state: 'answered' });
    expect((await platform.call(app, 'POST', `/v1/sessions/${uuid}${tail}`, body)).status).toBe(202);
    expect(platform.sessions.commands.at(-1)).toMatchObject({ uuid, command });
  });

  const ofRooms: readonly (readonly [what: string, path: string, body: object | undefined, order: object])[] = [
    ['a Room that tells no voices', '/api/v1/rooms', undefined, { voice_activity_events: false }],
    ['a member that is heard', inRoom('/members'), { session_uuid: newUuid() }, { muted: false }],
    ['files once, at the volume there is', inRoom('/playback/play'), FILES, { loop: 1, volume: undefined }],
    ['a recording of a Room without gaps', inRoom('/playback/record'), undefined, { terms: { includeGaps: false } }],
  ];
  test.each(ofRooms)('%s', async (_, path, body, order) => {
    const { status } = await platform.call(app, 'POST', path, body);
    expect(status).toBe(202);
    expect(asked).toMatchObject(order);
  });
});

test('A list of Rooms shows the summary of each, and one Room all of it', async () => {
  const listed = await openPlatform({ rooms: { ...noRooms, list: () => [room], get: () => room } }, platform.testStore);
  const { room_id, created_at, member_count, playback_status, voice_activity_events } = room;
  const { body } = await listed.call(app, 'GET', '/api/v1/rooms');
  expect(body).toEqual({ rooms: [{ room_id, created_at, member_count, playback_status, voice_activity_events }] });
  expect((await listed.call(app, 'GET', inRoom(''))).body).toEqual(room);
});

describe('A body of 64 KiB', () => {
  const taking = () => platform.app.routes.filter(({ method, takesBody }) => takesBody && method !== 'PUT');
  const isCommand = (path: string) => path.startsWith('/v1/sessions/:uuid/');
  const sent = async (method: string, path: string, bytes: number) =>
    (await platform.raw(path.replaceAll(/:\w+_?uuid|:room_id/g, newUuid()), { method, body: ' '.repeat(bytes) })).status;

  test('is the largest on every command of a Session, and one byte more is 413', async () => {
    const commands = taking().filter(({ path }) => isCommand(path));
    expect(commands.length).toBeGreaterThan(20);
    for (const { method, path } of commands) {
      expect([path, await sent(method, path, 65_536)]).toEqual([path, 400]);
      expect([path, await sent(method, path, 65_537)]).toEqual([path, 413]);
    }
  });

  test('is not the largest elsewhere: that is 1 MiB', async () => {
    const others = taking().filter(({ path, auth }) => auth === 'application' && !isCommand(path));
    expect(others.length).toBeGreaterThan(10);
    for (const { method, path } of others) {
      expect([path, await sent(method, path, 1_048_576)]).toEqual([path, 400]);
      expect([path, await sent(method, path, 1_048_577)]).toEqual([path, 413]);
    }
  });
});

test('A list has 1,000 items where no limit is given, and is asked for 50,000 at most', async () => {
  const many = await platform.testStore.store.apps.create({ name: 'many' });
  for (let made = 0; made < 1_001; made++) platform.session(many);
  const list = (query: string) => platform.call(many, 'GET', `/v1/sessions${query}`);
  expect((await list('')).body.sessions).toHaveLength(1_000);
  expect((await list('?limit=50000')).body.sessions).toHaveLength(1_001);
  expect((await list('?limit=1')).body.sessions).toHaveLength(1);
  for (const path of ['/v1/sessions', '/v1/messages'])
    for (const limit of ['0', '50001', '1.5', '-1', ''])
      expect((await platform.call(many, 'GET', `${path}?limit=${limit}`)).body).toEqual({
        code: 'invalid_request',
        message: 'limit: must be a whole number from 1 to 50000',
      });
});
