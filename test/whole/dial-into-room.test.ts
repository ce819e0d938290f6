/**
 * A dial and a WebSocket that join a Room with their answer, over a loopback trunk: the whole path without a carrier.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { newUuid } from '../../src/id.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';

let platform: Platform;
let app: Credentials;
const receiver = new Receiver();
const NUMBER = '+15550081';

beforeAll(async () => {
  platform = await Platform.start();
  app = await platform.application(receiver.url, NUMBER);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  platform.answerEveryCall(app, receiver);
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
});

const dial = (more: object) =>
  platform.api(app, 'POST', '/v1/sessions:dial', { from: NUMBER, to: NUMBER, ring_timeout_sec: 10, ...more });

test('A dial with room_id joins at the answer; the seat is kept from the dial on and free after the call.', async () => {
  const { body: room } = await platform.api(app, 'POST', '/api/v1/rooms', {});
  const made = await dial({ room_id: room.room_id, room_muted: true });
  expect(made.status).toBe(202);
  const session = String(made.body.session_uuid);
  await receiver.event('session.answered', session);
  const names = receiver.names(session);
  expect(names.indexOf('room.member.joined')).toBeGreaterThanOrEqual(0);
  expect(names.indexOf('room.member.joined')).toBeLessThan(names.indexOf('session.answered'));
  const path = `/api/v1/rooms/${room.room_id}`;
  expect((await platform.api(app, 'GET', `${path}/members`)).body).toEqual({ members: [{ uuid: session, muted: true }] });
  await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
  await receiver.event('session.ended', session);
  expect((await platform.api(app, 'GET', path)).body.member_count).toBe(0);
}, 30_000);

test('A dial into an unknown Room is 404, and into a full one 409 room_full.', async () => {
  expect([(await dial({ room_id: newUuid() })).status, (await dial({ room_id: 'x' })).status]).toEqual([404, 404]);
  await platform.operator('PATCH', `/apps/${app.appUuid}`, { room_limits: { max_members_per_room: 1 } });
  const { body: room } = await platform.api(app, 'POST', '/api/v1/rooms', {});
  const first = await dial({ room_id: room.room_id });
  const second = await dial({ room_id: room.room_id });
  expect([first.status, second.status, second.body.code]).toEqual([202, 409, 'room_full']);
  await platform.api(app, 'DELETE', `/v1/sessions/${first.body.session_uuid}`);
  await receiver.event('session.ended', String(first.body.session_uuid));
  const third = await dial({ room_id: room.room_id });
  expect(third.status).toBe(202);
  await platform.api(app, 'DELETE', `/v1/sessions/${third.body.session_uuid}`);
  await receiver.event('session.ended', String(third.body.session_uuid));
}, 30_000);

test('A WebSocket Session with room_id joins when it is connected.', async () => {
  using bot = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, server) => (server.upgrade(request, { data: undefined }) ? undefined : new Response(null, { status: 400 })),
    websocket: { message() {} },
  });
  const { body: room } = await platform.api(app, 'POST', '/api/v1/rooms', {});
  const format = { encoding: 'pcm_s16le', sample_rate: 16_000 };
  const made = await platform.api(app, 'POST', '/v1/sessions:connectWebsocket', {
    websocket: { url: `ws://127.0.0.1:${bot.port}/` },
    media_format: { from_session: format, to_session: format },
    room_id: room.room_id,
  });
  const session = String(made.body.session_uuid);
  await receiver.event('room.member.joined', session);
  expect(receiver.names(session)).toEqual(['websocket.connected', 'room.member.joined']);
  await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
  await receiver.event('session.ended', session);
  expect(receiver.names(session).slice(-3)).toContain('room.member.left');
}, 30_000);

test('Hold music is opened when a member is alone, also in a Room that outlived a crash.', async () => {
  let asked = 0;
  const first = Promise.withResolvers<void>();
  using music = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => {
      asked += 1;
      first.resolve();
      return new Response(toneWav(500, 1));
    },
  });
  const { body: room } = await platform.api(app, 'POST', '/api/v1/rooms', {
    hold_music_url: `http://127.0.0.1:${music.port}/music.wav`,
  });
  expect(asked).toBe(0);
  await platform.kill();
  await platform.start();
  const made = await dial({ room_id: room.room_id });
  const session = String(made.body.session_uuid);
  await receiver.event('session.answered', session);
  await first.promise;
  await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
  await receiver.event('session.ended', session);
  await platform.api(app, 'DELETE', `/api/v1/rooms/${room.room_id}`);
}, 30_000);
