/**
 * The programs of docs/examples, as they are, on Node, each with a caller of another application over a loopback trunk.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Example } from '../support/example.ts';
import { keysWav } from '../support/keypad.ts';
import { type Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const CALLER = '+15550001';
const CALLED = '+15550002';

let platform: Platform;
let caller: Credentials;
let called: Credentials;
const receiver = new Receiver();
const files = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: (request) => {
    const keys = /keys-(\d+)\.wav$/.exec(request.url)?.[1] ?? '';
    return new Response(keysWav(keys), { headers: { 'content-type': 'audio/wav' } });
  },
});

beforeAll(async () => {
  platform = await Platform.start();
  caller = await platform.application(receiver.url, CALLER);
  called = await platform.application(receiver.url, CALLED);
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop();
  await files.stop(true);
}, 20_000);

async function dial(): Promise<string> {
  const made = await platform.api(caller, 'POST', '/v1/sessions:dial', { from: CALLER, to: CALLED, ring_timeout_sec: 10 });
  expect(made.status).toBe(202);
  const session = String(made.body.session_uuid);
  await receiver.event('session.answered', session);
  return session;
}

const press = (session: string, keys: string) =>
  platform.api(caller, 'POST', `/v1/sessions/${session}/playback/play`, {
    type: 'files',
    urls: [`http://127.0.0.1:${files.port}/keys-${keys}.wav`],
  });

test('answer-and-play.mjs answers and plays its melody to the end.', async () => {
  using example = await Example.start('answer-and-play.mjs', platform, called);
  const session = await dial();
  await example.prints(/playback\.ended/);
  await platform.api(caller, 'DELETE', `/v1/sessions/${session}`);
  await example.prints(/session\.ended \S+ completed/);
}, 40_000);

test('ivr.mjs collects four keys, plays as many notes as the first says, and hangs up.', async () => {
  using example = await Example.start('ivr.mjs', platform, called);
  const session = await dial();
  await example.prints(/session\.answered/);
  await press(session, '2468');
  await example.prints(/keys: 2468/);
  await receiver.event('session.ended', session);
  await example.prints(/playback\.ended[\s\S]*session\.ended/);
}, 40_000);

test('echo-bot.mjs says back what it hears: the caller hears its own key.', async () => {
  using example = await Example.start('echo-bot.mjs', platform, called);
  const session = await dial();
  await example.prints(/websocket\.connected/);
  await press(session, '5');
  const { body } = await receiver.event('dtmf.received', session);
  expect(body.digit).toBe('5');
  await platform.api(caller, 'DELETE', `/v1/sessions/${session}`);
  await example.prints(/room\.deleted/);
}, 40_000);
