/** The numbers that an application may reach, over HTTP and on the whole platform: calls, transfers and messages. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const NUMBER = '+15550083';
const receiver = new Receiver();
let platform: Platform;
let app: Credentials;

beforeAll(async () => {
  platform = await Platform.start({ BLOCKED_DESTINATIONS: '+1900', SMS_PROVIDER: 'smpp://u:p@127.0.0.1:9' });
  app = await platform.application(receiver.url, NUMBER);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  platform.answerEveryCall(app, receiver);
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
});

const REFUSED = { status: 403, body: { code: 'forbidden', message: expect.stringMatching(/^That number may not be reached/) } };
const dial = (to: string) =>
  platform.api(app, 'POST', '/v1/sessions:dial', { from: NUMBER, to, ring_timeout_sec: 10, trunk: 'loop' });
const write = (to: string) => platform.api(app, 'POST', '/v1/messages', { from: NUMBER, to, text: 'Hello' });
const permit = (lists: object) => platform.operator('PATCH', `/apps/${app.appUuid}`, lists);

test('A number that the platform blocks is reached by nobody, neither by a call nor by a message', async () => {
  expect(await dial('+19005550100')).toMatchObject(REFUSED);
  expect(await write('+19005550100')).toMatchObject(REFUSED);
});

test('The operator says where an application may call, and it counts for the next call', async () => {
  expect((await permit({ allowed_destinations: ['+972'] })).status).toBe(204);
  expect(await dial(NUMBER)).toMatchObject(REFUSED);
  expect(await write('+447700900000')).toMatchObject(REFUSED);
  expect((await write('+972501112222')).status).toBe(202);
  await permit({ allowed_destinations: ['+972', '+1', '+1900'], blocked_destinations: ['+1555019'] });
  expect(await dial('+15550199')).toMatchObject(REFUSED);
  // The platform's own list stands, whatever the application's lists say.
  expect(await dial('+19005550100')).toMatchObject(REFUSED);
  const { body } = await platform.operator('GET', `/apps/${app.appUuid}`);
  expect(body).toMatchObject({ allowed_destinations: ['+972', '+1', '+1900'], blocked_destinations: ['+1555019'] });
});

test('A call is transferred to no other number either, however that is written', async () => {
  await permit({ allowed_destinations: ['+1'], blocked_destinations: [] });
  const made = await dial(NUMBER);
  const session = String(made.body.session_uuid);
  await receiver.event('session.answered', session);
  const transfer = (to: string) => platform.api(app, 'POST', `/v1/sessions/${session}/transfer`, { to });
  for (const to of ['+447700900000', '+19005550100', 'sip:%2B447700900000@carrier.example', 'sip:00447700900000@carrier.example'])
    expect(await transfer(to), to).toMatchObject(REFUSED);
  expect((await transfer('sip:+15550100@carrier.example')).status).toBe(202);
  await platform.api(app, 'DELETE', `/v1/sessions/${session}`);
  await receiver.event('session.ended', session);
}, 30_000);

test('What is no beginning of a number is 400, as are too many', async () => {
  const many = Array.from({ length: 501 }, (_, at) => `+1${1000 + at}`);
  for (const list of [['972'], ['+0'], [''], ['*'], [1], '+1', many])
    expect((await permit({ allowed_destinations: list })).status, JSON.stringify(list).slice(0, 40)).toBe(400);
});
