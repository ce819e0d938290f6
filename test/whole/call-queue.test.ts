/** The queue of docs/examples, as it is, on Node, with callers and agents over a loopback trunk. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Example } from '../support/example.ts';
import { CALLED, LoopbackCalls } from '../support/loopback-calls.ts';
import type { Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const [QUICK, SLOW, NOBODY] = ['+15550003', '+15550004', '+15550009'];

let calls: LoopbackCalls;
let platform: Platform;
let caller: Credentials;
let called: Credentials;
let quick: Credentials;
const [quickDesk, slowDesk] = [new Receiver(), new Receiver()];

beforeAll(async () => {
  calls = await LoopbackCalls.start();
  ({ platform, caller, called } = calls);
  quick = await platform.application(quickDesk.url, QUICK);
  await platform.application(slowDesk.url, SLOW);
}, 60_000);
afterAll(async () => {
  await calls?.stop();
  await quickDesk.stop();
  await slowDesk.stop();
}, 20_000);

const started = (agents: readonly string[]) =>
  Example.start('call-queue.mjs', platform, called, { FROM: CALLED, AGENTS: agents.join(','), RING_SEC: '10' });
const hangUp = (session: string) => platform.api(caller, 'DELETE', `/v1/sessions/${session}`);

/** The latest call that rings at a desk. */
async function ringsAt(desk: Receiver, after: number): Promise<string> {
  await desk.until(() => desk.count('session.created') > after, 'a call to an agent');
  return String(desk.events.findLast(({ event }) => event === 'session.created')?.body.session_uuid);
}

test('the first agent who answers talks to the caller, and the others are cancelled.', async () => {
  using example = await started([NOBODY, QUICK, SLOW]);
  const session = await calls.dial();
  const [first, second] = await Promise.all([ringsAt(quickDesk, 0), ringsAt(slowDesk, 0)]);
  await platform.api(quick, 'POST', `/v1/sessions/${first}/answer`);
  await example.prints(/agent answered/);
  const cancelled = await slowDesk.event('session.ended', second);
  expect(cancelled.body).toMatchObject({ answered: false, hangup_cause: 'cancelled' });
  await platform.api(quick, 'POST', `/v1/sessions/${first}/playback/play`, { type: 'files', urls: [calls.keys('7')] });
  expect((await calls.receiver.event('dtmf.received', session)).body.digit).toBe('7');
  await hangUp(session);
  await quickDesk.event('session.ended', first);
  await example.prints(/room\.deleted/);
}, 40_000);

test('a caller who hangs up while agents are rung is rung for no more.', async () => {
  using example = await started([QUICK, SLOW]);
  const known = [quickDesk.count('session.created'), slowDesk.count('session.created')] as const;
  const session = await calls.dial();
  const [first, second] = await Promise.all([ringsAt(quickDesk, known[0]), ringsAt(slowDesk, known[1])]);
  await hangUp(session);
  await quickDesk.event('session.ended', first);
  await slowDesk.event('session.ended', second);
  await example.prints(/room\.deleted/);
}, 40_000);

test('a caller for whom nobody is there leaves a message after the beep.', async () => {
  using example = await started([NOBODY]);
  const session = await calls.dial();
  await example.prints(/agent invalid_number[\s\S]*nobody is there[\s\S]*records a message/);
  await platform.api(caller, 'POST', `/v1/sessions/${session}/playback/play`, { type: 'files', urls: [calls.keys('55')] });
  await example.prints(/recording\.became_available/);
  await platform.api(caller, 'POST', `/v1/sessions/${session}/dtmf/send`, { digits: '#' });
  await calls.receiver.event('session.ended', session);
  const [, url] = await example.prints(/message \d+ (\S+)/);
  expect((await fetch(String(url))).status).toBe(200);
}, 40_000);
