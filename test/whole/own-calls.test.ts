/** `kill -9` of a platform alone with CALL_TAKEOVER: the process after it goes on with the calls. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { RawCaller } from '../cluster/raw-caller.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { level } from '../support/room-call.ts';
import { decodeMulaw, toneWav } from '../support/rtp-peer.ts';

const NUMBER = '+15550002';

let platform: Platform;
let app: Credentials;
const receiver = new Receiver();
const callers: RawCaller[] = [];
const media = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(toneWav(1000, 60)) });

beforeAll(async () => {
  const settings = { CALL_TAKEOVER: 'on', ORPHAN_TIMEOUT_SEC: '8', WEBHOOK_RETRY_SCALE: '0.1', OUTBOUND_ALLOW: '127.0.0.0/8' };
  platform = await Platform.start(settings);
  app = await platform.application(receiver.url, NUMBER);
  receiver.secrets.set(app.appUuid, app.webhookSecret);
  await platform.trunk('127.0.0.1:9');
  platform.answerEveryCall(app, receiver);
}, 60_000);

afterAll(async () => {
  for (const caller of callers) caller.close();
  await platform?.stop();
  await receiver.stop();
  await media.stop(true);
});

async function call(hz: number): Promise<{ readonly caller: RawCaller; readonly sessionUuid: string }> {
  const before = receiver.count('session.answered');
  const caller = await RawCaller.call(platform.sipUdp, NUMBER, hz);
  callers.push(caller);
  await receiver.until(() => receiver.count('session.answered') > before, 'the answer');
  return {
    caller,
    sessionUuid: String(receiver.events.findLast(({ event }) => event === 'session.answered')?.body.session_uuid),
  };
}

const api = (method: string, path: string, body?: unknown) => platform.api(app, method, path, body);
const hears = ({ ear }: RawCaller, hz: number) => level(decodeMulaw(ear.packets.slice(-25)), hz) > -25;
const invites = ({ answered }: RawCaller) => answered.filter((each) => each.startsWith('INVITE'));

test('Calls go on by one re-INVITE each, in their Room too; what ran in them has ended, and each ends once.', async () => {
  const [one, two, alone] = [await call(440), await call(660), await call(880)];
  const room = String((await api('POST', '/api/v1/rooms', {})).body.room_id);
  for (const { sessionUuid } of [one, two]) {
    expect((await api('POST', `/api/v1/rooms/${room}/members`, { session_uuid: sessionUuid })).status).toBe(202);
    await receiver.event('room.member.joined', sessionUuid);
  }
  const isRoomHeard = () => hears(one.caller, 660) && hears(two.caller, 440);
  await one.caller.ear.until(isRoomHeard, 'the two hear each other');
  const play = { type: 'files', urls: [`http://127.0.0.1:${media.port}/a.wav`] };
  expect((await api('POST', `/v1/sessions/${alone.sessionUuid}/playback/play`, play)).status).toBe(202);
  await receiver.event('playback.started', alone.sessionUuid);
  const recording = { direction: 'both', channels: 'mono', include_gaps: true };
  expect((await api('POST', `/v1/sessions/${alone.sessionUuid}/recordings`, recording)).status).toBe(202);
  await receiver.event('recording.became_available', alone.sessionUuid);

  await platform.kill();
  const silentFrom = [one, two].map(({ caller }) => caller.ear.packets.length);
  await platform.start();
  for (const { caller } of [one, two, alone]) {
    await caller.until(() => invites(caller).length > 0, 'the re-INVITE');
    expect(invites(caller)).toEqual([expect.stringMatching(/^INVITE \d+ 200$/)]);
  }
  const isHeard = () => [one, two].every(({ caller }, at) => caller.ear.packets.length > (silentFrom[at] ?? 0) + 25);
  await one.caller.ear.until(() => isHeard() && isRoomHeard(), 'the two hear each other again', 20_000);
  expect((await receiver.event('playback.failed', alone.sessionUuid)).body).toMatchObject({ reason: 'media_unavailable' });
  expect((await receiver.event('recording.ended', alone.sessionUuid)).body).toMatchObject({ session_uuid: alone.sessionUuid });
  const { members } = (await api('GET', `/api/v1/rooms/${room}/members`)).body;
  expect(members).toHaveLength(2);
  expect((await api('GET', `/v1/sessions/${alone.sessionUuid}`)).body).toMatchObject({ status: 'answered' });

  // Commands work, and the far ends and the application end the calls.
  expect(await one.caller.ask('BYE')).toBe(200);
  expect((await receiver.event('session.ended', one.sessionUuid)).body).toMatchObject({ answered: true, hangup_by: 'caller' });
  expect((await receiver.event('room.member.left', one.sessionUuid)).body).toMatchObject({ room_id: room });
  for (const { sessionUuid } of [two, alone]) {
    expect((await api('DELETE', `/v1/sessions/${sessionUuid}`)).status).toBe(202);
    expect((await receiver.event('session.ended', sessionUuid)).body).toMatchObject({ answered: true });
  }
  for (const { sessionUuid } of [one, two, alone])
    expect(receiver.names(sessionUuid).filter((name) => name === 'session.ended')).toHaveLength(1);
  expect(receiver.badSignatures).toBe(0);
}, 90_000);

test('A member whose far end is silent has its place until that is over: a Room that is deleted meanwhile waits for it.', async () => {
  const { caller, sessionUuid } = await call(440);
  const room = String((await api('POST', '/api/v1/rooms', {})).body.room_id);
  expect((await api('POST', `/api/v1/rooms/${room}/members`, { session_uuid: sessionUuid })).status).toBe(202);
  await receiver.event('room.member.joined', sessionUuid);
  caller.isDeaf = true;
  await platform.kill();
  await platform.start();
  expect((await api('DELETE', `/api/v1/rooms/${room}`)).status).toBe(202);
  await receiver.until(
    () => receiver.events.some(({ event, body }) => event === 'room.deleted' && body.room_id === room),
    'its end',
  );
  const told = receiver.events.filter(({ body }) => body.room_id === room).map(({ event }) => event);
  expect(told.slice(-2)).toEqual(['room.member.left', 'room.deleted']);
}, 90_000);

test('A call whose far end is gone meanwhile is an orphan, which ends as without CALL_TAKEOVER.', async () => {
  const { caller, sessionUuid } = await call(440);
  caller.refusal = () => '481 Call/Transaction Does Not Exist';
  await platform.kill();
  await platform.start();
  const ended = await receiver.event('session.ended', sessionUuid, 60_000);
  expect(ended.body).toMatchObject({ answered: false, hangup_by: 'system' });
  expect(receiver.names(sessionUuid).filter((name) => name === 'session.ended')).toHaveLength(1);
}, 90_000);
