import { expect, test } from 'bun:test';
import { runningOf, runningText } from '../../src/machine/session/operation/running.ts';
import { type SessionState, takenOver } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';

const idle = {
  ...{ type: 'phone_in', phase: 'answered', hasLeg: true },
  ...{ playback: undefined, collect: undefined, sending: [], setting: [], untold: [], transfer: undefined },
  ...{ held: false, toldHolding: false, collection: undefined, detection: undefined, membership: undefined, deadlines: {} },
};
const NOW = 1_000_000;

/** A call as another node takes it up from what was stored. */
const goneOn = (stored: string): SessionState =>
  takenOver(
    {
      ...{ sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1_000, type: 'phone_in', phase: 'answered' },
      ...{ createdAt: 0, answered: true, answeredAt: 0, clientState: '', roomId: '', running: runningOf(stored) },
      maxDurationMs: 2_000_000,
    },
    NOW,
  );

test('A call that the far end holds is held at the node that goes on with it, and is told as resumed once.', () => {
  const state = goneOn(runningText({ ...idle, held: true }, 'the call'));
  const begun = step(state, { type: 'begin' }, NOW);
  expect(begun.events).toEqual([]);
  expect(step(begun.state, { type: 'leg.held' }, NOW).events).toEqual([]);
  const resumed = step(begun.state, { type: 'leg.resumed' }, NOW);
  expect(resumed.events).toEqual([{ event: 'session.resumed', session_uuid: 's', by: 'far_end' }]);
  expect(step(resumed.state, { type: 'leg.resumed' }, NOW).events).toEqual([]);
});

test('A call that the far end holds is watched for silence at the node that goes on with it, and one that it does not hold is not.', () => {
  const held = step(goneOn(runningText({ ...idle, held: true }, 'the call')), { type: 'begin' }, NOW);
  expect(step(held.state, { type: 'deadline' }, NOW + 500).effects).toEqual([{ do: 'probe' }]);
  const silent = step(held.state, { type: 'deadline' }, NOW + 1_000);
  expect(silent.effects).toEqual([{ do: 'hangup' }]);
  expect(silent.state.ending).toMatchObject({ cause: 'timeout', by: 'system' });
  const { state } = step(goneOn(runningText(idle, 'the call')), { type: 'begin' }, NOW);
  expect(Object.keys(state.deadlines)).toEqual(['duration']);
});

test('A call that we held is held no longer at the node that goes on with it, which tells so.', () => {
  const begun = step(goneOn(runningText({ ...idle, toldHolding: true }, 'the call')), { type: 'begin' }, NOW);
  expect(begun.events).toEqual([{ event: 'session.resumed', session_uuid: 's', by: 'application' }]);
  expect([begun.state.holding, begun.state.toldHolding]).toEqual([false, false]);
});

test('A transfer under way is told as failed without an outcome in time, since the call goes on; with the call, as ended with it.', () => {
  const stored = runningText({ ...idle, transfer: { operationUuid: 'transfer' } }, 'the call');
  const failed = { event: 'session.transfer.failed', session_uuid: 's', operation_uuid: 'transfer' } as const;
  expect(step(goneOn(stored), { type: 'begin' }, NOW).events).toEqual([{ ...failed, reason: 'timeout' }]);
  const lost = step({ ...goneOn(stored), hasLeg: false }, { type: 'begin' }, NOW);
  expect(lost.events).toEqual([{ ...failed, reason: 'session_ended' }]);
});

test('A call in which a card is keyed in is stored so that no node takes it over.', () => {
  expect(runningText({ ...idle, collection: {} }, 'the call')).toContain('"secure":true');
  expect(runningText({ ...idle, collection: {} })).toBe('');
  expect(runningText({ ...idle, transfer: { operationUuid: '"secure":' } }, '{"secure":true}')).not.toContain('"secure":');
});
