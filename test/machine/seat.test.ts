import { describe, expect, test } from 'bun:test';
import type { SessionInput } from '../../src/machine/session/input.ts';
import { runningOf, runningText } from '../../src/machine/session/operation/running.ts';
import { connecting, outbound, recovered, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';

const seat = { roomId: 'room', room: 7, muted: true, voiceActivityEvents: false };
const dialled = (): SessionState =>
  outbound(
    {
      sessionUuid: 's',
      appUuid: 'a',
      callerId: '+15550001',
      did: '+15550002',
      orphanTimeoutMs: 120_000,
      operationUuid: 'op',
      ringTimeoutMs: 30_000,
      maxDurationMs: 3_600_000,
      clientState: '',
      seat,
    },
    0,
  );

/** Gives inputs one after the other. Returns the names of all events, and the effects. */
function run(...inputs: readonly (readonly [SessionInput, number])[]) {
  let state = dialled();
  const names: string[] = [];
  const effects: string[] = [];
  for (const [input, now] of inputs) {
    const next = step(state, input, now);
    state = next.state;
    names.push(...next.events.map(({ event }) => event));
    effects.push(...next.effects.map((effect) => effect.do));
  }
  return { state, names, effects };
}
const begin = [{ type: 'begin' }, 0] as const;
const answered = [{ type: 'leg.answered' }, 1_000] as const;
const joined = [{ type: 'leg.media', notice: { type: 'room.joined', room: 7 } }, 1_040] as const;

describe('A dial into a Room', () => {
  test('joins at the answer, muted as it was asked, and is told as joined before it is told as answered.', () => {
    const before = run(begin, answered);
    expect(before.names).toEqual([]);
    expect(before.effects).toEqual(['start', 'member_join']);
    expect(before.state.membership).toMatchObject({ roomId: 'room', phase: 'joining', muted: true });
    expect(run(begin, answered, joined).names).toEqual(['room.member.joined', 'session.answered']);
  });

  test('goes on outside the Room when that is gone before the answer, or before it is heard there.', () => {
    const closed: SessionInput = { type: 'room_closed', roomId: 'room' };
    expect(run(begin, [closed, 500], answered).names).toEqual(['session.answered']);
    expect(run(begin, answered, [closed, 1_010]).names).toEqual(['session.answered']);
  });

  test('joins where its Room is mixed when it is answered, though another node mixed that when it was placed.', () => {
    const moved: SessionInput = { type: 'room_moved', roomId: 'room', room: 9 };
    const elsewhere: SessionInput = { type: 'room_moved', roomId: 'another', room: 8 };
    const there = run(begin, [moved, 500], [elsewhere, 600], answered);
    expect(there.state.membership).toMatchObject({ roomId: 'room', room: 9, muted: true });
    const heard = { type: 'leg.media', notice: { type: 'room.joined', room: 9 } } as const;
    expect(run(begin, [moved, 500], answered, joined).names).toEqual([]);
    expect(run(begin, [moved, 500], answered, [heard, 1_040]).names).toEqual(['room.member.joined', 'session.answered']);
  });

  test('that leaves and joins again is still a member when the media plane tells that it has left.', () => {
    const operationUuid = 'op';
    const leave: SessionInput = { type: 'command', command: { type: 'member_leave', roomId: 'room' }, operationUuid };
    const join: SessionInput = { type: 'command', command: { type: 'member_join', ...seat }, operationUuid };
    const left: SessionInput = { type: 'leg.media', notice: { type: 'room.left', room: 7, isAsked: true } };
    const again = run(begin, answered, joined, [leave, 2_000], [join, 2_003], [left, 2_010], [joined[0], 2_040]);
    expect(again.names.slice(2)).toEqual(['room.member.left', 'room.member.joined']);
    expect(again.state.membership).toMatchObject({ phase: 'joined' });
    const lost: SessionInput = { type: 'leg.media', notice: { type: 'room.left', room: 7 } };
    expect(run(begin, answered, joined, [lost, 2_000]).names.slice(2)).toEqual(['room.member.left']);
  });

  test('is told as answered after a second, whatever the Room does.', () => {
    const late = run(begin, answered, [{ type: 'deadline' }, 2_000]);
    expect(late.names).toEqual(['session.answered']);
    expect(run(begin, answered, [{ type: 'deadline' }, 2_000], joined).names).toEqual(['session.answered', 'room.member.joined']);
  });

  test('is told as answered after a crash that came before it was heard in the Room.', () => {
    const { state } = run(begin, answered);
    const remains = { ...state, roomId: '', answered: true, running: runningOf(runningText(state)), orphanTimeoutMs: 120_000 };
    const after = step(recovered(remains, 5_000), { type: 'begin' }, 5_000);
    expect(after.events).toMatchObject([{ event: 'session.answered', session_uuid: 's', operation_uuid: 'op' }]);
  });

  test('that is held, or in which a key is pressed, before it is heard there is told so after it is told as answered.', () => {
    const held: SessionInput = { type: 'leg.held' };
    const key: SessionInput = { type: 'leg.digit', digit: '5', durationMs: 100 };
    const told = ['session.answered', 'session.held', 'dtmf.received'];
    const waiting = [begin, answered, [held, 1_010], [key, 1_020]] as const;
    expect(run(...waiting).names).toEqual([]);
    expect(run(...waiting, joined).names).toEqual(['room.member.joined', ...told]);
    expect(run(...waiting, [{ type: 'deadline' }, 2_000]).names).toEqual(told);
    const resumed: SessionInput = { type: 'leg.resumed' };
    expect(run(...waiting, joined, [resumed, 1_050]).names).toEqual(['room.member.joined', ...told, 'session.resumed']);
    const bye: SessionInput = { type: 'leg.ended', end: { cause: 'completed', by: 'callee', description: '' } };
    expect(run(...waiting, [bye, 1_030]).names).toEqual([...told, 'session.ended']);
  });

  test('by a bot waits for nothing, since there is nothing to tell: no deadline stays due for ever.', () => {
    const about = { sessionUuid: 's', appUuid: 'a', orphanTimeoutMs: 120_000, operationUuid: 'op', clientState: '', seat };
    const { state } = step(connecting(about, 0), { type: 'leg.connected' }, 1_000);
    expect(state.membership).toMatchObject({ phase: 'joining' });
    expect(state.deadlines.seat).toBeUndefined();
  });

  test('that is hung up at once was answered before it ended.', () => {
    const bye: SessionInput = { type: 'leg.ended', end: { cause: 'completed', by: 'callee', description: '' } };
    expect(run(begin, answered, [bye, 1_010]).names).toEqual(['session.answered', 'session.ended']);
  });
});
