/**
 * The programs of docs/examples, as they are, on Node, each with a caller of another application over a loopback trunk.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Example } from '../support/example.ts';
import { LoopbackCalls } from '../support/loopback-calls.ts';
import type { Credentials, Platform } from '../support/platform.ts';
import type { Receiver } from '../support/receiver.ts';

let calls: LoopbackCalls;
let platform: Platform;
let caller: Credentials;
let called: Credentials;
let receiver: Receiver;

beforeAll(async () => {
  calls = await LoopbackCalls.start();
  ({ platform, caller, called, receiver } = calls);
}, 60_000);
afterAll(async () => {
  await calls?.stop();
}, 20_000);

const dial = () => calls.dial();
const press = (session: string, keys: string) => calls.press(session, keys);

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
