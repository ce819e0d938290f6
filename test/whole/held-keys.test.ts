/**
 * Keys that are held for longer than the timeouts of a collection: telephone-events of a loopback trunk, each a second
 * long, sent by the media plane, which keeps their pace on a busy machine.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { LoopbackCalls } from '../support/loopback-calls.ts';

let calls: LoopbackCalls;
beforeAll(async () => {
  calls = await LoopbackCalls.start();
}, 60_000);
afterAll(() => calls?.stop(), 20_000);

test('Keys held for longer than first_digit_timeout_ms and inter_digit_timeout_ms are collected, and a prompt stops at the press.', async () => {
  const { platform, caller, called, receiver } = calls;
  platform.answerEveryCall(called, receiver);
  const session = await calls.dial();
  const { body } = await receiver.event('session.created');
  const uuid = String(body.session_uuid);
  await receiver.event('session.answered', uuid);
  const terms = {
    ...{ first_digit_timeout_ms: 600, inter_digit_timeout_ms: 600, max_digits: 2 },
    prompt_files: Array.from({ length: 60 }, () => calls.voice),
  };
  const collect = await platform.api(called, 'POST', `/v1/sessions/${uuid}/dtmf/collect`, terms);
  expect(collect.status).toBe(202);
  const keys = { digits: 'w56', duration_ms: 1_000, gap_ms: 100 };
  expect((await platform.api(caller, 'POST', `/v1/sessions/${session}/dtmf/send`, keys)).status).toBe(202);

  const entered = await receiver.event('digits.collected', uuid);
  expect(entered.body).toMatchObject({ operation_uuid: collect.body.operation_uuid, status: 'success', digits: '56' });
  const told = receiver.of(uuid).filter(({ event }) => event === 'dtmf.received');
  expect(told.map(({ body: { digit, duration_ms, method } }) => [digit, duration_ms, method])).toEqual([
    ['5', 1_000, 'rfc4733'],
    ['6', 1_000, 'rfc4733'],
  ]);
  const timeline = await platform.operator('GET', `/sessions/${uuid}/timeline`);
  const entries = (timeline.body.entries as { what?: string }[]).map(({ what }) => what);
  const heard = entries.filter((what) => what === 'digit' || what === 'playback_stopped');
  expect(heard).toEqual(['playback_stopped', 'digit', 'digit']);
  await platform.api(caller, 'DELETE', `/v1/sessions/${session}`);
  await receiver.event('session.ended', uuid);
}, 60_000);
