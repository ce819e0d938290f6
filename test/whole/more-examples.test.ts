/**
 * More programs of docs/examples, as they are, on Node: conferences, cards, recordings, a campaign and a transfer, each
 * with callers of another application over a loopback trunk.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { Bucket } from '../recording-storage/bucket.ts';
import { Example } from '../support/example.ts';
import { CALLED, LoopbackCalls } from '../support/loopback-calls.ts';
import type { Credentials, Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';

const COLLEAGUE = '+15550003';
const NOBODY = '+15550009';
const TERMINAL = '7654321';

let calls: LoopbackCalls;
let platform: Platform;
let caller: Credentials;
let called: Credentials;
let colleague: Credentials;
let bucket: Bucket;
let receiver: Receiver;
const desk = new Receiver();

beforeAll(async () => {
  [calls, bucket] = await Promise.all([LoopbackCalls.start(), Bucket.start()]);
  ({ platform, caller, called, receiver } = calls);
  colleague = await platform.application(desk.url, COLLEAGUE);
  await platform.operator('PUT', `/apps/${called.appUuid}/payment-terminals/${TERMINAL}`, {});
  // The colleague's telephone answers.
  platform.answerEveryCall(colleague, desk);
}, 60_000);
afterAll(async () => {
  await calls?.stop();
  await bucket?.stop();
  await desk.stop();
}, 20_000);

const dial = () => calls.dial();

const send = (session: string, digits: string) => platform.api(caller, 'POST', `/v1/sessions/${session}/dtmf/send`, { digits });
const hangUp = (session: string) => platform.api(caller, 'DELETE', `/v1/sessions/${session}`);

/** The latest call that the colleague answered. */
const latestOfDesk = () => String(desk.events.findLast(({ event }) => event === 'session.answered')?.body.session_uuid);

test('conference.mjs brings two callers together, tells who talks, and mutes by a key.', async () => {
  using example = await Example.start('conference.mjs', platform, called);
  const [first, second] = [await dial(), await dial()];
  await example.prints(/room\.member\.joined[\s\S]*room\.member\.joined/);
  await platform.api(caller, 'POST', `/v1/sessions/${first}/playback/play`, {
    type: 'files',
    urls: [calls.keys('2'), calls.voice],
  });
  // The other one hears the tones, through the Room.
  expect((await receiver.event('dtmf.received', second)).body.digit).toBe('2');
  await example.prints(/\+15550001 talks[\s\S]*\+15550001 is silent/);
  await send(second, '*');
  await example.prints(/room\.member\.muted/);
  await hangUp(first);
  await hangUp(second);
  await example.prints(/room\.deleted/);
}, 40_000);

test('card-payment.mjs takes a card and its CVV by keys, charges it, and never sees the digits.', async () => {
  using example = await Example.start('card-payment.mjs', platform, called, { TERMINAL });
  const session = await dial();
  await example.prints(/session\.answered/);
  // The keys wait a second, in which the collection begins.
  await send(session, 'W4111111111111111#');
  await example.prints(/card: visa that ends in 1111/);
  await send(session, 'W123#');
  await example.prints(/charge: succeeded/);
  expect(example.output).not.toMatch(/4111111|123#/);
  await receiver.event('session.ended', session);
}, 40_000);

test('recordings-to-s3.mjs records a call and puts the recording into a bucket.', async () => {
  using example = await Example.start('recordings-to-s3.mjs', platform, called, {
    BUCKET: `${bucket.direct}/calls`,
    AWS_ACCESS_KEY_ID: 'S3RVER',
    AWS_SECRET_ACCESS_KEY: 'S3RVER',
  });
  const session = await dial();
  await example.prints(/recording\.became_available/);
  await hangUp(session);
  const [, name = ''] = await example.prints(/stored (rec_[0-9a-f-]+\.wav) 200/);
  const stored = await bucket.object(name);
  expect(stored?.subarray(0, 4).toString()).toBe('RIFF');
  expect(stored?.readUInt32LE(4)).toBe((stored?.length ?? 0) - 8);
}, 40_000);

test('recordings-to-s3.mjs leaves the recording to the next delivery when the bucket refuses it.', async () => {
  using example = await Example.start('recordings-to-s3.mjs', platform, called, {
    BUCKET: `${bucket.endpoint}/calls`,
    AWS_ACCESS_KEY_ID: 'S3RVER',
    AWS_SECRET_ACCESS_KEY: 'S3RVER',
  });
  let refusals = 1;
  bucket.misbehave = () => (refusals-- > 0 ? { status: 503, body: 'SlowDown' } : undefined);
  const session = await dial();
  await example.prints(/recording\.became_available/);
  await hangUp(session);
  const [, name = ''] = await example.prints(/failed: the bucket answered 503: SlowDown[\s\S]*stored (rec_[0-9a-f-]+\.wav) 200/);
  expect((await bucket.object(name))?.subarray(0, 4).toString()).toBe('RIFF');
}, 40_000);

test('card-payment.mjs says why there is no card, and hangs up.', async () => {
  using example = await Example.start('card-payment.mjs', platform, called, { TERMINAL });
  const session = await dial();
  await example.prints(/session\.answered/);
  // Two attempts, each with a number that is no card's.
  await send(session, 'W4111111111111112#W4111111111111112#');
  await example.prints(/no card: \w+/);
  await receiver.event('session.ended', session);
}, 40_000);

test('card-payment.mjs hangs up when the charge is refused, because its terminal is not assigned.', async () => {
  using example = await Example.start('card-payment.mjs', platform, called, { TERMINAL: '1111111' });
  const session = await dial();
  await example.prints(/session\.answered/);
  await send(session, 'W4111111111111111#');
  await example.prints(/card: visa/);
  await send(session, 'W123#');
  await example.prints(/\/payment\/charges 403/);
  const { body } = await receiver.event('session.ended', session);
  expect(body).toMatchObject({ hangup_by: 'callee' });
}, 40_000);

test('campaign.mjs calls a list of numbers once each, with what became of them.', async () => {
  const environment = { FROM: CALLED, NUMBERS: `${COLLEAGUE},${NOBODY},12`, AT_ONCE: '1', PER_SECOND: '50' };
  {
    using example = await Example.start('campaign.mjs', platform, called, environment);
    await desk.event('session.answered');
    // The one who answers says something short, and waits.
    await platform.api(colleague, 'POST', `/v1/sessions/${latestOfDesk()}/playback/play`, {
      type: 'files',
      urls: [calls.keys('9')],
    });
    await example.prints(/result \+15550003 answered by (human|machine|unknown)/);
    await example.prints(/result \+15550009 invalid_number/);
    await example.prints(/result 12 .*must be an E\.164 number[\s\S]*the list is done/);
  }
  // After a crash the same list begins at its head, and rings nobody again.
  const before = desk.count('session.created');
  using again = await Example.start('campaign.mjs', platform, called, environment);
  await again.prints(/result \+15550003 was called before\nresult \+15550009 was called before[\s\S]*the list is done/);
  expect(desk.count('session.created')).toBe(before);
}, 60_000);

test('warm-transfer.mjs asks a colleague, and brings both together at the key 1.', async () => {
  using example = await Example.start('warm-transfer.mjs', platform, called, { FROM: CALLED, COLLEAGUE });
  const known = desk.count('session.answered');
  const session = await dial();
  await desk.until(() => desk.count('session.answered') > known, 'the call of the colleague');
  const other = latestOfDesk();
  await platform.api(colleague, 'POST', `/v1/sessions/${other}/dtmf/send`, { digits: 'W1' });
  await example.prints(/both talk/);
  await platform.api(colleague, 'POST', `/v1/sessions/${other}/playback/play`, {
    type: 'files',
    urls: [calls.keys('7')],
  });
  await receiver.until(
    () => receiver.of(session).some(({ event, body }) => event === 'dtmf.received' && body.digit === '7'),
    'what the colleague says',
  );
  await hangUp(session);
  await desk.event('session.ended', other);
  await example.prints(/room\.deleted/);
}, 40_000);

test('warm-transfer.mjs tells the caller when the colleague does not want to.', async () => {
  using example = await Example.start('warm-transfer.mjs', platform, called, { FROM: CALLED, COLLEAGUE });
  const known = desk.count('session.answered');
  const session = await dial();
  await desk.until(() => desk.count('session.answered') > known, 'the call of the colleague');
  const other = latestOfDesk();
  await platform.api(colleague, 'POST', `/v1/sessions/${other}/dtmf/send`, { digits: 'W2' });
  await example.prints(/nobody is there/);
  await receiver.event('session.ended', session);
}, 40_000);

test('desk-phones.mjs calls the agent also for a caller who withholds the number.', async () => {
  await platform.operator('PUT', `/apps/${called.appUuid}/devices/alice`, { password: 'open-sesame' });
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:', from_user: 'anonymous' });
  using example = await Example.start('desk-phones.mjs', platform, called, { FROM: CALLED, AGENT: 'sip:alice' });
  const session = await dial();
  await platform.operator('PUT', '/trunks/loop', { uri: 'loopback:' });
  // Her telephone is off.
  await example.prints(/over: not_answered[\s\S]*room\.deleted/);
  await receiver.event('session.ended', session);
}, 30_000);
