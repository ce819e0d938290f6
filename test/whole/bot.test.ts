/**
 * What a bot of `sidetone.v1` hears of its Room and orders, on the whole platform, with a call over a loopback trunk.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { WebSocketServer } from 'ws';
import { newUuid } from '../../src/id.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { toneWav } from '../support/rtp-peer.ts';

const NUMBER = '+15550091';
const FORMAT = { encoding: 'pcm_s16le', sample_rate: 16_000 };
const MULAW = { encoding: 'mulaw', sample_rate: 8000 };

let platform: Platform;
let app: Credentials;
let other: Credentials;
const receiver = new Receiver();

beforeAll(async () => {
  platform = await Platform.start();
  app = await platform.application(receiver.url, NUMBER);
  other = await platform.application(receiver.url, '+15550092');
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  platform.answerEveryCall(app, receiver);
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
});

/** The application's server: it keeps what it is told, agrees to any subprotocol, and can be waited for. */
function botServer() {
  const texts: Record<string, unknown>[] = [];
  const sockets: Bun.ServerWebSocket<undefined>[] = [];
  const waiting: (() => void)[] = [];
  let frames = 0;
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, self) => {
      const asked = request.headers.get('sec-websocket-protocol');
      const headers: Record<string, string> = asked === null ? {} : { 'sec-websocket-protocol': asked };
      return self.upgrade(request, { data: undefined, headers }) ? undefined : new Response(null, { status: 400 });
    },
    websocket: {
      open: (socket) => void sockets.push(socket),
      message: (_socket, message) => {
        if (typeof message === 'string') texts.push(JSON.parse(message));
        else frames += 1;
        for (const look of waiting.splice(0)) look();
      },
    },
  });
  const until = async (ready: () => boolean, what: string): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error(`waited for ${what}; heard ${JSON.stringify(texts)}`)), 15_000);
    const look = () => {
      if (ready()) resolve();
      else waiting.push(look);
    };
    look();
    await promise.finally(() => clearTimeout(timer));
  };
  return {
    url: `ws://127.0.0.1:${server.port}/`,
    texts,
    until,
    get frames(): number {
      return frames;
    },
    say: (message: object) => void sockets[0]?.send(JSON.stringify(message)),
    speak: (audio: Uint8Array<ArrayBuffer>) => void sockets[0]?.send(audio),
    /** The first message of that type (and more) that comes or came. */
    async hears(type: string, more: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
      const wanted = Object.entries({ type, ...more });
      const find = () => texts.find((text) => wanted.every(([name, value]) => text[name] === value));
      await until(() => find() !== undefined, type);
      return find() ?? {};
    },
    [Symbol.dispose]: () => void server.stop(true),
  };
}

/** A call of the application to itself: the Session that dialled and the one that was answered. */
async function call(): Promise<{ from: string; to: string }> {
  const before = receiver.events.length;
  const made = await platform.api(app, 'POST', '/v1/sessions:dial', { from: NUMBER, to: NUMBER, ring_timeout_sec: 10 });
  const from = String(made.body.session_uuid);
  await receiver.event('session.answered', from);
  const created = receiver.events.slice(before).find(({ event }) => event === 'session.created');
  return { from, to: String(created?.body.session_uuid) };
}

const connect = (url: string, more: object, format = FORMAT, subprotocol = 'sidetone.v1') =>
  platform.api(app, 'POST', '/v1/sessions:connectWebsocket', {
    websocket: { url, subprotocol },
    media_format: { from_session: format, to_session: format },
    ...more,
  });

test('A bot is told its parameters, hears its Room, presses keys, and hangs up its phone Session.', async () => {
  using bot = botServer();
  const { from, to } = await call();
  const { body: room } = await platform.api(app, 'POST', '/api/v1/rooms', {});
  const made = await connect(bot.url, { room_id: room.room_id, phone_session_uuid: to, parameters: { order: '7' } });
  const session = String(made.body.session_uuid);
  await receiver.event('room.member.joined', session);
  expect(bot.texts[0]).toEqual({
    type: 'start',
    session_uuid: session,
    phone_session_uuid: to,
    media_format: { from_session: FORMAT, to_session: FORMAT },
    parameters: { order: '7' },
  });
  await platform.api(app, 'POST', `/api/v1/rooms/${room.room_id}/members`, { session_uuid: to });
  await bot.hears('member_joined', { session_uuid: to });

  // The keys that the bot presses reach the other end of the call, and keys from there reach the bot.
  bot.say({ type: 'send_dtmf', digits: '42' });
  await receiver.event('dtmf.sent', to);
  await receiver.until(() => receiver.of(from).filter(({ event }) => event === 'dtmf.received').length === 2, 'both keys');
  await platform.api(app, 'POST', `/v1/sessions/${from}/dtmf/send`, { digits: '9' });
  expect(await bot.hears('dtmf')).toMatchObject({ session_uuid: to, digit: '9' });

  await platform.api(app, 'DELETE', `/api/v1/rooms/${room.room_id}/members/${to}`);
  await bot.hears('member_left', { session_uuid: to, reason: 'removed' });
  // It is in no Room of the bot any more, so that it cannot be named; it is still the bot's phone Session.
  bot.say({ type: 'hangup', session_uuid: to });
  const refusal = 'hangup: no such Session in your Room; leave session_uuid out to mean your phone Session';
  expect((await bot.hears('error')).message).toBe(refusal);
  bot.say({ type: 'hangup' });
  await receiver.event('session.ended', to);
  await receiver.event('session.ended', from);
  bot.say({ type: 'hangup', session_uuid: session });
  await receiver.event('session.ended', session);
}, 40_000);

test('A bot hears who speaks in a Room that was created without voice activity events.', async () => {
  using bot = botServer();
  const tone = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(toneWav(400, 60)) });
  const { from, to } = await call();
  const { body: room } = await platform.api(app, 'POST', '/api/v1/rooms', {});
  await platform.api(app, 'POST', `/api/v1/rooms/${room.room_id}/members`, { session_uuid: to });
  await receiver.event('room.member.joined', to);
  const made = await connect(bot.url, { room_id: room.room_id });
  const session = String(made.body.session_uuid);
  await receiver.event('room.member.joined', session);

  const play = { type: 'files', urls: [`http://127.0.0.1:${tone.port}/tone.wav`] };
  const speak = async () => platform.api(app, 'POST', `/v1/sessions/${from}/playback/play`, play);
  await speak();
  await bot.hears('speech_started', { session_uuid: to });
  await platform.api(app, 'POST', `/v1/sessions/${from}/playback/stop`);
  await bot.hears('speech_ended', { session_uuid: to });
  // A member that leaves while it talks is heard of as silent before it is heard of as gone.
  bot.texts.length = 0;
  await speak();
  await bot.hears('speech_started', { session_uuid: to });
  await platform.api(app, 'DELETE', `/api/v1/rooms/${room.room_id}/members/${to}`);
  await bot.hears('member_left', { session_uuid: to });
  expect(bot.texts.map(({ type }) => type)).toEqual(['speech_started', 'speech_ended', 'member_left']);
  expect(receiver.of(to).filter(({ event }) => event === 'room.member.voice_activity_changed')).toEqual([]);
  for (const each of [from, session]) await platform.api(app, 'DELETE', `/v1/sessions/${each}`);
  for (const each of [from, to, session]) await receiver.event('session.ended', each);
  await tone.stop(true);
}, 40_000);

test('An order that is malformed or has no Session to mean is an error, and nothing happens.', async () => {
  using bot = botServer();
  const { from, to } = await call();
  const made = await connect(bot.url, {});
  const session = String(made.body.session_uuid);
  await receiver.event('websocket.connected', session);
  const refused = async (message: object, expected: string) => {
    const heard = bot.texts.length;
    bot.say(message);
    await bot.hears('error', { message: expected });
    expect(bot.texts.slice(heard)).toEqual([{ type: 'error', message: expected }]);
    bot.texts.length = 0;
  };
  const none = 'no phone Session to mean: name a member of your Room by session_uuid';
  await refused({ type: 'hangup' }, `hangup: ${none}`);
  await refused({ type: 'hangup', session_uuid: to }, 'hangup: no such Session in your Room');
  await refused({ type: 'hangup', session_uuid: 7 }, 'hangup: session_uuid must be a string');
  await refused({ type: 'transfer' }, 'transfer: to must be a string');

  const { body: room } = await platform.api(app, 'POST', '/api/v1/rooms', {});
  for (const each of [session, to]) {
    await platform.api(app, 'POST', `/api/v1/rooms/${room.room_id}/members`, { session_uuid: each });
    await receiver.event('room.member.joined', each);
  }
  // The webhook may be there before what the bot is told.
  await bot.hears('member_joined', { session_uuid: to });
  bot.texts.length = 0;
  await refused({ type: 'send_dtmf', digits: 'x' }, 'send_dtmf: digits must be some of 0-9, A-D, *, #, w, W');
  await refused({ type: 'transfer', to: 'tel:1' }, 'transfer: to must be an E.164 number or a sip: URI');
  await platform.api(app, 'DELETE', `/v1/sessions/${from}`);
  await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
  for (const each of [from, to, session]) await receiver.event('session.ended', each);
}, 40_000);

test('phone_session_uuid of another application, of a bot or of nobody is 404; parameters have limits.', async () => {
  using bot = botServer();
  const { from, to } = await call();
  const statuses = [];
  for (const given of [newUuid(), 'x']) statuses.push((await connect(bot.url, { phone_session_uuid: given })).status);
  const foreign = await platform.api(other, 'POST', '/v1/sessions:connectWebsocket', {
    websocket: { url: bot.url },
    media_format: { from_session: FORMAT, to_session: FORMAT },
    phone_session_uuid: to,
  });
  expect([...statuses, foreign.status]).toEqual([404, 404, 404]);
  const many = Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`p${n}`, '']));
  for (const parameters of [{ a: 1 }, { a: 'x'.repeat(501) }, { ['n'.repeat(65)]: '' }, many, [], null])
    expect((await connect(bot.url, { parameters })).status).toBe(400);
  await platform.api(app, 'DELETE', `/v1/sessions/${from}`);
  for (const each of [from, to]) await receiver.event('session.ended', each);
}, 40_000);

test('Twilio’s dialect has the phone Session as callSid and the parameters as customParameters.', async () => {
  using bot = botServer();
  const { from, to } = await call();
  const made = await connect(bot.url, { phone_session_uuid: to, parameters: { order: '7' } }, MULAW, 'twilio');
  const session = String(made.body.session_uuid);
  await receiver.event('websocket.connected', session);
  expect(bot.texts.find((text) => text.event === 'start')).toMatchObject({
    start: { callSid: to, customParameters: { order: '7' } },
  });
  for (const each of [from, session]) await platform.api(app, 'DELETE', `/v1/sessions/${each}`);
  for (const each of [from, to, session]) await receiver.event('session.ended', each);
}, 40_000);

test('A server that agrees to no subprotocol is told of as such.', async () => {
  using bot = botServer();
  // Bun agrees by itself to what is asked for.
  const silent = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => false });
  await new Promise((resolve) => silent.once('listening', resolve));
  const address = silent.address();
  const other = `ws://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
  const spoken: unknown[] = [];
  for (const [url, format, subprotocol] of [
    [bot.url, undefined, 'sidetone.v1'],
    [other, undefined, 'sidetone.v1'],
    [bot.url, MULAW, 'twilio'],
  ] as const) {
    const session = String((await connect(url, {}, format, subprotocol)).body.session_uuid);
    spoken.push((await receiver.event('websocket.connected', session)).body.subprotocol);
    await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
    await receiver.event('session.ended', session);
  }
  expect(spoken).toEqual(['sidetone.v1', undefined, 'twilio']);
  silent.close();
}, 40_000);

test('A bot pauses its own buffer, and goes on from there.', async () => {
  using bot = botServer();
  const made = await connect(bot.url, {});
  const session = String(made.body.session_uuid);
  await receiver.event('websocket.connected', session);
  bot.say({ type: 'pause' });
  bot.speak(new Uint8Array(FORMAT.sample_rate / 5));
  bot.say({ type: 'mark', name: 'after' });
  const { frames } = bot;
  await bot.until(() => bot.frames >= frames + 25, 'half a second');
  expect(bot.texts.filter(({ type }) => type === 'mark_played')).toEqual([]);
  bot.say({ type: 'resume' });
  await bot.hears('mark_played', { name: 'after' });
  await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
  await receiver.event('session.ended', session);
}, 40_000);
