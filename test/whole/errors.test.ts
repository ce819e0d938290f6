/**
 * The errors of the interface on the running platform: each code with its message, and the trace on every class of
 * them.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { newUuid } from '../../src/id.ts';
import { type Answered, type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

let platform: Platform;
let app: Credentials;
let bot: ReturnType<typeof Bun.serve>;
const receiver = new Receiver();
const format = { encoding: 'pcm_s16le', sample_rate: 8000 };

beforeAll(async () => {
  platform = await Platform.start({ RECORDINGS: 'off', SMS_PROVIDER: 'off' });
  const made = await platform.operator('POST', '/apps', {
    name: 'small',
    webhook_url: receiver.url,
    room_limits: { max_rooms: 2, max_members_per_room: 1 },
  });
  app = { appUuid: String(made.body.app_uuid), apiKey: String(made.body.api_key), webhookSecret: '' };
  bot = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, server) => (server.upgrade(request, { data: undefined }) ? undefined : new Response(null, { status: 400 })),
    websocket: { message() {} },
  });
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
  await bot?.stop(true);
});

const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  platform.api(app, method, path, body, headers);

/** A Session that is up, without a phone. */
async function session(): Promise<string> {
  const { body } = await call('POST', '/v1/sessions:connectWebsocket', {
    websocket: { url: `ws://127.0.0.1:${bot.port}/` },
    media_format: { from_session: format, to_session: format },
  });
  await receiver.event('websocket.connected', String(body.session_uuid));
  return String(body.session_uuid);
}

function refused(reply: Answered, status: number, code: string, message: string) {
  expect([reply.status, reply.body.code, reply.body.message]).toEqual([status, code, message]);
  expect(Object.keys(reply.body).sort()).toEqual(['code', 'message']);
  expect(reply.headers.get('traceparent')).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
}

describe('an error', () => {
  test('of what is not there names it, and never the call when only a part of it is missing', async () => {
    const live = `/v1/sessions/${await session()}`;
    const gone = `/v1/sessions/${newUuid()}`;
    const room = `/api/v1/rooms/${(await call('POST', '/api/v1/rooms', {})).body.room_id}`;
    const missing: readonly (readonly [string, string, unknown, string])[] = [
      ['GET', gone, undefined, 'Session not found'],
      ['POST', `${gone}/playback/stop`, {}, 'Session not found'],
      ['GET', `${gone}/recordings`, undefined, 'Session not found'],
      ['DELETE', `${live}/dtmf/collect`, undefined, 'DTMF collection not found'],
      ['DELETE', `${live}/payment/card/collect`, undefined, 'Payment collection not found'],
      ['DELETE', `${live}/payment/cvv/collect`, undefined, 'Payment collection not found'],
      ['GET', `${live}/recordings/rec_${newUuid()}`, undefined, 'Recording not found'],
      ['POST', `${live}/recordings/rec_${newUuid()}/unmask`, {}, 'Recording not found'],
      ['GET', `/api/v1/rooms/${newUuid()}`, undefined, 'Room not found'],
      ['DELETE', `/api/v1/rooms/${newUuid()}`, undefined, 'Room not found'],
      ['POST', `${room}/members`, { session_uuid: newUuid() }, 'Session not found'],
      ['GET', `${room}/members/${newUuid()}`, undefined, 'Member not found'],
      ['DELETE', `${room}/members/${newUuid()}`, undefined, 'Member not found'],
      ['GET', `/v1/messages/${newUuid()}`, undefined, 'Message not found'],
      ['POST', `/v1/ingest/${newUuid()}`, undefined, 'Ingest not found'],
      ['GET', '/v1/nothing', undefined, 'No route matches this path'],
    ];
    for (const [method, path, body, message] of missing) refused(await call(method, path, body), 404, 'not_found', message);
    await call('DELETE', live);
    await call('DELETE', room);
  });

  test('of a cap is 403 for Rooms and 409 room_full for members, without Retry-After', async () => {
    await receiver.event('room.deleted');
    const rooms = [await call('POST', '/api/v1/rooms', {}), await call('POST', '/api/v1/rooms', {})];
    const third = await call('POST', '/api/v1/rooms', {});
    refused(third, 403, 'forbidden', 'Maximum number of rooms reached for this application');
    const members = `/api/v1/rooms/${rooms[0]?.body.room_id}/members`;
    const [first, second] = [await session(), await session()];
    expect((await call('POST', members, { session_uuid: first })).status).toBe(202);
    const full = await call('POST', members, { session_uuid: second });
    refused(full, 409, 'room_full', 'Room is full');
    expect([third.headers.get('retry-after'), full.headers.get('retry-after')]).toEqual([null, null]);
    for (const each of [first, second]) await call('DELETE', `/v1/sessions/${each}`);
    const room = `/api/v1/rooms/${rooms[1]?.body.room_id}`;
    refused(
      await call('POST', `${room}/playback/record/stop`, {}),
      409,
      'recording_not_active',
      'No recording of the room is active',
    );
    for (const each of rooms) await call('DELETE', `/api/v1/rooms/${each.body.room_id}`);
  });

  test('of more than 50,000 matching Sessions is 413, whatever the limit, until filters narrow them', async () => {
    const sql = postgres({ host: `${platform.dataDir}/postgres-socket`, username: 'sidetone', database: 'postgres', max: 1 });
    await sql`INSERT INTO sessions (session_uuid, app_uuid, node_id, type, state, caller_id, did, answered, client_state, created_at)
      SELECT gen_random_uuid(), ${app.appUuid}, 'elsewhere', 'phone_in', 'answered', '', '', true, '', 1_700_000_000_000 + n
      FROM generate_series(1, 50001) AS n`;
    await sql.end();
    const all = await call('GET', '/v1/sessions?limit=1');
    refused(all, 413, 'result_set_too_large', 'Too many results to return; narrow your query using filters.');
    const narrowed = await call('GET', `/v1/sessions?limit=1&created_after=${new Date(1_700_000_000_002).toISOString()}`);
    expect([narrowed.status, (narrowed.body.sessions as unknown[]).length]).toEqual([200, 1]);
  });

  test('of a dial without a trunk says who sets one up, without Retry-After', async () => {
    await platform.operator('PUT', `/apps/${app.appUuid}/caller-ids/+15550997`, {});
    const dial = await call('POST', '/v1/sessions:dial', { from: '+15550997', to: '+15550998', ring_timeout_sec: 5 });
    const wanted = 'No trunk takes calls of this application: the operator sets one up by `bin/sidetone trunks set`';
    refused(dial, 503, 'unavailable', wanted);
    expect(dial.headers.get('retry-after')).toBeNull();
  });

  test('of every class carries a trace of its own', async () => {
    const path = '/api/v1/rooms';
    const key = { 'idempotency-key': newUuid() };
    await call('PATCH', '/api/v1/app', { blocked_webhook_events: [] }, key);
    const replies: Answered[] = [
      await call('POST', path, { voice_activity_events: 1 }),
      await platform.api({ ...app, apiKey: 'wrong' }, 'GET', path),
      await platform.api({ ...app, appUuid: 'nobody' }, 'GET', path),
      await call('POST', '/v1/sessions:dial', { from: '+15550999', to: '+15550998', ring_timeout_sec: 5 }),
      await call('GET', '/nothing'),
      await call('PUT', path),
      await call('POST', `/v1/sessions/${newUuid()}/reject`, { reason: 'x'.repeat(70_000) }),
      await call('POST', path, {}, { 'content-type': 'text/plain' }),
      await call('PATCH', '/api/v1/app', { blocked_webhook_events: ['session.held'] }, key),
      await call('POST', '/v1/messages', { from: '+15550999', to: '+15550998', text: 'x' }),
      await fetch(`${platform.url}/v1/media/rec_x/pull`).then(async (response) => ({
        status: response.status,
        headers: response.headers,
        body: (await response.json()) as Record<string, unknown>,
      })),
    ];
    expect(replies.map(({ status }) => status)).toEqual([400, 401, 400, 403, 404, 405, 413, 415, 422, 503, 403]);
    for (const { headers } of replies) expect(headers.get('traceparent')).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    expect(new Set(replies.map(({ headers }) => headers.get('traceparent'))).size).toBe(replies.length);
  });
});

test('SIGTERM with a live Session delivers its session.ended before the process exits', async () => {
  const last = await session();
  const before = receiver.count('session.ended');
  await platform.terminate();
  expect(receiver.count('session.ended')).toBe(before + 1);
  expect(receiver.names(last).at(-1)).toBe('session.ended');
  expect(receiver.of(last).at(-1)?.body).toMatchObject({ hangup_by: 'system' });
}, 30_000);
