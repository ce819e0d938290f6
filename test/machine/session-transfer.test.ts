/** The transfer of a Session: one at a time, one event for each, and the end that follows. */
import { expect, test } from 'bun:test';
import type { SessionInput } from '../../src/machine/session/input.ts';
import { inbound, nextDeadline, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';

const about = { sessionUuid: 's', appUuid: 'a', callerId: '', did: '+15550002', orphanTimeoutMs: 120_000 };
const ORDER: SessionInput = {
  type: 'command',
  operationUuid: 'op',
  command: { type: 'transfer', target: { number: '+15550111' }, timeoutMs: 30_000 },
};
const BYE: SessionInput = { type: 'leg.ended', end: { cause: 'completed', by: 'caller', description: 'bye' } };

/** Runs inputs at their times, deadlines in between, and returns events and effects in order. */
const run = (...timed: (readonly [at: number, input: SessionInput])[]) => runAs(about, ...timed);
function runAs(call: Parameters<typeof inbound>[0], ...timed: (readonly [at: number, input: SessionInput])[]) {
  let state: SessionState = inbound(call, 0);
  const told: (number | string | undefined)[][] = [];
  const take = (input: SessionInput, now: number) => {
    const next = step(state, input, now);
    if (next.refused !== undefined) told.push([now, 'refused', next.refused.status]);
    state = next.state;
    for (const { event, ...more } of next.events) {
      const reason = 'reason' in more ? [more.reason] : [];
      const status = 'sip_status' in more ? [more.sip_status] : [];
      if (event.startsWith('session.transfer') || event === 'session.ended') told.push([now, event, ...reason, ...status]);
    }
    for (const effect of next.effects) if (effect.do === 'transfer' || effect.do === 'hangup') told.push([now, effect.do]);
  };
  const until = (end: number) => {
    for (let due = nextDeadline(state); due !== undefined && due < end; due = nextDeadline(state))
      take({ type: 'deadline' }, due);
  };
  for (const [at, input] of [[0, { type: 'begin' }], [0, { type: 'leg.answered' }], ...timed] as const) {
    until(at);
    take(input, at);
  }
  until(1_000_000);
  return told;
}
const phase = (name: 'accepted' | 'completed'): SessionInput => ({ type: 'leg.transfer', phase: name });

test('A transfer that completes is told, and the far end hangs up; without its BYE we do after 10 s', () => {
  const start = [
    [1_000, ORDER],
    [2_000, phase('accepted')],
    [5_000, phase('completed')],
  ] as const;
  expect(run(...start, [6_000, BYE])).toEqual([
    [1_000, 'transfer'],
    [5_000, 'session.transfer.completed'],
    [6_000, 'session.ended'],
  ]);
  expect(run(...start).slice(2)).toEqual([
    [15_000, 'hangup'],
    [20_000, 'session.ended'],
  ]);
});

test('A BYE of the far end after it accepted counts as completed; before that, and after our own end, as failed', () => {
  expect(run([1_000, ORDER], [2_000, phase('accepted')], [3_000, BYE]).slice(1)).toEqual([
    [3_000, 'session.transfer.completed'],
    [3_000, 'session.ended'],
  ]);
  expect(run([1_000, ORDER], [3_000, BYE]).slice(1)).toEqual([
    [3_000, 'session.transfer.failed', 'session_ended'],
    [3_000, 'session.ended'],
  ]);
  const end = { cause: 'carrier_congested', by: 'network', description: 'bye' } as const;
  const withCause = (hungUp: boolean): SessionInput => ({ type: 'leg.ended', end: { ...end, hungUp } });
  for (const hungUp of [true, false])
    expect(run([1_000, ORDER], [2_000, phase('accepted')], [3_000, withCause(hungUp)])[1]?.[1]).toBe(
      hungUp ? 'session.transfer.completed' : 'session.transfer.failed',
    );
  const hangup: SessionInput = { type: 'command', operationUuid: 'h', command: { type: 'hangup' } };
  expect(run([1_000, ORDER], [2_000, phase('accepted')], [3_000, hangup], [3_100, BYE]).slice(1)).toEqual([
    [3_000, 'hangup'],
    [3_100, 'session.transfer.failed', 'session_ended'],
    [3_100, 'session.ended'],
  ]);
});

test('A transfer that is refused, that fails, or that has no outcome in time is told once, and the call goes on', () => {
  const refused: SessionInput = { type: 'leg.transfer', phase: 'refused', status: 603 };
  expect(run([1_000, ORDER], [2_000, refused]).slice(1)).toEqual([[2_000, 'session.transfer.failed', 'refused', 603]]);
  const failed: SessionInput = { type: 'leg.transfer', phase: 'failed', status: 486 };
  expect(run([1_000, ORDER], [2_000, phase('accepted')], [3_000, failed]).slice(1)).toEqual([
    [3_000, 'session.transfer.failed', 'failed', 486],
  ]);
  expect(run([1_000, ORDER], [2_000, phase('accepted')], [40_000, phase('completed')]).slice(1)).toEqual([
    [31_000, 'session.transfer.failed', 'timeout'],
  ]);
});

test('A second transfer while one is under way is 409, and one after it is not', () => {
  const refused: SessionInput = { type: 'leg.transfer', phase: 'refused', status: 603 };
  expect(run([1_000, ORDER], [2_000, ORDER], [3_000, refused], [4_000, ORDER]).slice(1, 4)).toEqual([
    [2_000, 'refused', 409],
    [3_000, 'session.transfer.failed', 'refused', 603],
    [4_000, 'transfer'],
  ]);
});

test('A transfer after a completed one is 409 until the call is over', () => {
  const timed = [
    [1_000, ORDER],
    [2_000, phase('accepted')],
    [5_000, phase('completed')],
    [6_000, ORDER],
    [7_000, BYE],
  ] as const;
  expect(run(...timed)).toEqual([
    [1_000, 'transfer'],
    [5_000, 'session.transfer.completed'],
    [6_000, 'refused', 409],
    [7_000, 'session.ended'],
  ]);
});

test('A call from a browser is no SIP call: its transfer is 409', () => {
  expect(runAs({ ...about, inboundType: 'webrtc' }, [1_000, ORDER])).toEqual([[1_000, 'refused', 409]]);
});
