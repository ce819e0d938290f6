/** Answering machine detection of a dialled Session: told exactly once, before its end, whatever ends it. */
import { expect, test } from 'bun:test';
import { MACHINE_DETECTION_GRACE_MS, MACHINE_GREETING_MAX_MS } from '../../src/limits.ts';
import type { SessionInput } from '../../src/machine/session/input.ts';
import { nextDeadline, outbound, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';
import type { MediaNotice } from '../../src/notice/signal.ts';
import fc from '../support/fast-check.ts';

const TIMEOUT_MS = 5_000;
const dialled = (detectMachineMs?: number, seat?: SessionState['seat']): SessionState =>
  outbound(
    {
      sessionUuid: 's',
      appUuid: 'a',
      callerId: '',
      did: '+15550002',
      orphanTimeoutMs: 120_000,
      operationUuid: 'dial',
      ringTimeoutMs: 30_000,
      maxDurationMs: 3_600_000,
      clientState: '',
      detectMachineMs,
      seat,
    },
    0,
  );
const media = (notice: MediaNotice): SessionInput => ({ type: 'leg.media', notice });
const verdict = (result: 'human' | 'machine' | 'unknown') => media({ type: 'machine.detected', result, afterMs: 1_234 });
const greetingEnded = (beep: boolean) => media({ type: 'machine.greeting_ended', beep });
const ANSWERED: SessionInput = { type: 'leg.answered' };
const BYE: SessionInput = { type: 'leg.ended', end: { cause: 'completed', by: 'callee', description: 'bye' } };

/** The events of inputs at their times, and the detections that were ordered. */
function run(begun: SessionState, ...inputs: (readonly [number, SessionInput])[]) {
  let state = begun;
  const told: (string | readonly [string, number | boolean])[] = [];
  for (const [at, input] of [[0, { type: 'begin' }] as const, ...inputs]) {
    const next = step(state, input, at);
    state = next.state;
    for (const effect of next.effects) if (effect.do === 'detect_machine') told.push(['listen', effect.timeoutMs]);
    for (const event of next.events) {
      if (event.event === 'session.machine_detection.completed') told.push([event.result, event.after_ms]);
      else if (event.event === 'session.machine_greeting.ended') told.push(['greeting', event.beep]);
      else if (event.event === 'session.answered' || event.event === 'session.ended') told.push(event.event.slice(8));
    }
  }
  return { told, state };
}

test('A person is told once, with the time that it took, and nothing follows.', () => {
  const { told, state } = run(
    dialled(TIMEOUT_MS),
    [10, ANSWERED],
    [900, verdict('human')],
    [950, verdict('machine')],
    [990, greetingEnded(true)],
  );
  expect(told).toEqual([['listen', TIMEOUT_MS], 'answered', ['human', 1_234]]);
  expect(state.deadlines.detection).toBeUndefined();
});

test('Of a machine the end of its greeting is told too, once, with its beep or without.', () => {
  for (const beep of [true, false]) {
    const { told } = run(
      dialled(TIMEOUT_MS),
      [10, ANSWERED],
      [900, verdict('machine')],
      [5_000, greetingEnded(beep)],
      [5_001, greetingEnded(!beep)],
      [9_000, BYE],
    );
    expect(told.filter((each) => typeof each !== 'string')).toEqual([
      ['listen', TIMEOUT_MS],
      ['machine', 1_234],
      ['greeting', beep],
    ]);
    expect(told.at(-1)).toBe('ended');
  }
});

test('A dial that did not ask, and a call that was not answered, are told nothing.', () => {
  expect(run(dialled(), [10, ANSWERED], [20, verdict('human')], [30, BYE]).told).toEqual(['answered', 'ended']);
  expect(run(dialled(TIMEOUT_MS), [20, verdict('human')], [30, BYE]).told).toEqual(['ended']);
});

test('A plane that says nothing in time leaves it unknown, and a greeting without a beep.', () => {
  const late = 10 + TIMEOUT_MS + MACHINE_DETECTION_GRACE_MS;
  const silent = run(dialled(TIMEOUT_MS), [10, ANSWERED]);
  expect(nextDeadline(silent.state)).toBe(late);
  const over = run(dialled(TIMEOUT_MS), [10, ANSWERED], [late, { type: 'deadline' }], [late + 1, verdict('human')]);
  expect(over.told.slice(-1)).toEqual([['unknown', TIMEOUT_MS + MACHINE_DETECTION_GRACE_MS]]);
  const greeting = 900 + MACHINE_GREETING_MAX_MS + MACHINE_DETECTION_GRACE_MS;
  const endless = run(dialled(TIMEOUT_MS), [10, ANSWERED], [900, verdict('machine')], [greeting, { type: 'deadline' }]);
  expect(endless.told.slice(-1)).toEqual([['greeting', false]]);
});

test('A verdict that comes while the call takes its seat in a Room is told after session.answered.', () => {
  const seat = { roomId: 'r', room: 7, muted: false, voiceActivityEvents: false };
  const { told } = run(
    dialled(TIMEOUT_MS, seat),
    [10, ANSWERED],
    [20, verdict('human')],
    [30, media({ type: 'room.joined', room: 7 })],
  );
  expect(told).toEqual([['listen', TIMEOUT_MS], 'answered', ['human', 1_234]]);
});

test('Whatever comes, each answered call has one verdict, a machine one end of its greeting, both before its end.', () => {
  const inputs = fc.constantFrom<SessionInput>(
    verdict('human'),
    verdict('machine'),
    verdict('unknown'),
    greetingEnded(true),
    greetingEnded(false),
    { type: 'deadline' },
    { type: 'command', operationUuid: 'x', command: { type: 'hangup' } },
    media({ type: 'media.lost' }),
    BYE,
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(20_000), inputs), { maxLength: 12 }), (given) => {
      let now = 10;
      const timed = given.map(([after, input]) => {
        now += after;
        return [now, input] as const;
      });
      const { told } = run(dialled(TIMEOUT_MS), [10, ANSWERED], ...timed, [now + 1, BYE]);
      const named = (...names: string[]) => told.filter((each) => typeof each !== 'string' && names.includes(each[0]));
      const verdicts = named('human', 'machine', 'unknown');
      const greetings = named('greeting');
      expect(verdicts.length).toBe(1);
      expect(greetings.length).toBe(verdicts[0]?.[0] === 'machine' ? 1 : 0);
      expect(told.at(-1)).toBe('ended');
      expect(told.filter((each) => each === 'ended').length).toBe(1);
    }),
  );
});
