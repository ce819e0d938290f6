/** Digits that a Session sends: queued, told once each, and never during secure collection. */
import { expect, test } from 'bun:test';
import type { SessionInput } from '../../src/machine/session/input.ts';
import { inbound, outbound, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';

const about = { sessionUuid: 's', appUuid: 'a', callerId: '', did: '+15550002', orphanTimeoutMs: 120_000 };
const send = (operationUuid: string, digits = '12#'): SessionInput => ({
  type: 'command',
  operationUuid,
  command: { type: 'send_digits', digits, durationMs: 100, gapMs: 100 },
});
const sent = (keysOf: string): SessionInput => ({ type: 'leg.media', notice: { type: 'keys.sent', keysOf } });
const BYE: SessionInput = { type: 'leg.ended', end: { cause: 'completed', by: 'caller', description: 'bye' } };

/** What came of inputs: events of digits and of the end, effects, and refusals. */
function run(begun: SessionState, ...inputs: SessionInput[]) {
  let state = begun;
  const told: (string | number)[][] = [];
  for (const input of inputs) {
    const next = step(state, input, 0);
    state = next.state;
    if (next.refused !== undefined) told.push(['refused', next.refused.status]);
    for (const effect of next.effects) if (effect.do === 'send_digits') told.push(['send', effect.operationUuid, effect.digits]);
    for (const event of next.events) {
      if (event.event === 'dtmf.sent') told.push(['dtmf.sent', event.operation_uuid, event.digits, event.status]);
      if (event.event === 'session.ended') told.push(['session.ended']);
    }
  }
  return told;
}
const answered = (...inputs: SessionInput[]) => run(inbound(about, 0), { type: 'begin' }, { type: 'leg.answered' }, ...inputs);

test('Digits are told as sent when their last key is, in the order in which they were asked for', () => {
  expect(answered(send('a'), send('b', '9w9'), sent('a'), sent('b'), sent('b'))).toEqual([
    ['send', 'a', '12#'],
    ['send', 'b', '9w9'],
    ['dtmf.sent', 'a', '12#', 'completed'],
    ['dtmf.sent', 'b', '9w9', 'completed'],
  ]);
});

test('Eight strings wait behind the one that is sent, a tenth is 409', () => {
  const all = Array.from({ length: 10 }, (_, i) => send(String(i)));
  expect(answered(...all).at(-1)).toEqual(['refused', 409]);
  expect(answered(...all, sent('0'), send('x')).at(-1)).toEqual(['send', 'x', '12#']);
});

test('The end of the call stops what was not sent whole, before session.ended', () => {
  expect(answered(send('a'), send('b'), sent('a'), BYE).slice(2)).toEqual([
    ['dtmf.sent', 'a', '12#', 'completed'],
    ['dtmf.sent', 'b', '12#', 'stopped'],
    ['session.ended'],
  ]);
});

test('A call that is not answered cannot send digits', () => {
  expect(run(inbound(about, 0), { type: 'begin' }, send('a'))).toEqual([['refused', 409]]);
});

test('A dial sends its digits after the answer, under its own operation', () => {
  const dialled = outbound(
    { ...about, operationUuid: 'dial', ringTimeoutMs: 30_000, maxDurationMs: 3_600_000, clientState: '', sendDigits: '1w2' },
    0,
  );
  expect(run(dialled, { type: 'begin' }, { type: 'leg.ringing' }, { type: 'leg.answered' }, sent('dial'))).toEqual([
    ['send', 'dial', '1w2'],
    ['dtmf.sent', 'dial', '1w2', 'completed'],
  ]);
});
