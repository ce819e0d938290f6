import { expect, test } from 'bun:test';
import { newUuid } from '../../src/id.ts';
import type { Membership } from '../../src/machine/room/membership.ts';
import { cutOff, runningOf, runningText } from '../../src/machine/session/operation/running.ts';
import { takenOver } from '../../src/machine/session/session.ts';
import fc from '../support/fast-check.ts';

const phases = fc.constantFrom(undefined, 'asked', 'listening', 'greeting');

const CALL = { type: 'phone_in', phase: 'answered', hasLeg: true, deadlines: {} };

test('Whatever ran when a process died has exactly one end of its own, from what was stored.', () => {
  fc.assert(
    fc.property(
      fc.boolean(),
      fc.boolean(),
      fc.nat(9),
      fc.nat(3),
      fc.boolean(),
      phases,
      (plays, collects, strings, volumes, transfers, phase) => {
        const operation = () => ({ operationUuid: newUuid() });
        const playback = { ...operation(), kind: 'files', urls: ['http://a/'], phase: 'playing' } as const;
        const collect = operation();
        const sending = Array.from({ length: strings }, () => ({ ...operation(), digits: '1' }));
        const setting = Array.from({ length: volumes }, () => ({
          ...operation(),
          roomId: 'room',
          volume: 1,
          direction: 'both' as const,
        }));
        const answered = { event: 'session.answered', session_uuid: 'session' } as const;
        const transfer = operation();
        const stored = runningText({
          ...CALL,
          playback: plays ? playback : undefined,
          collect: collects ? collect : undefined,
          sending,
          setting,
          untold: plays ? [answered] : [],
          transfer: transfers ? transfer : undefined,
          held: plays,
          toldHolding: plays,
          collection: undefined,
          detection: phase === undefined ? undefined : { phase },
          membership: undefined,
        });
        const ends = cutOff('session', runningOf(stored)).map((event) => [
          event.event,
          'operation_uuid' in event ? event.operation_uuid : undefined,
        ]);
        expect(ends).toEqual([
          ...(plays ? [['session.answered', undefined]] : []),
          ...setting.map(({ operationUuid }) => ['room.member.volume_change_failed', operationUuid]),
          ...(collects ? [['digits.collected', collect.operationUuid]] : []),
          ...(plays ? [['playback.failed', playback.operationUuid]] : []),
          ...sending.map(({ operationUuid }) => ['dtmf.sent', operationUuid]),
          ...(transfers ? [['session.transfer.failed', transfer.operationUuid]] : []),
          ...(phase === 'listening' ? [['session.machine_detection.completed', undefined]] : []),
          ...(phase === 'greeting' ? [['session.machine_greeting.ended', undefined]] : []),
        ]);
        expect(stored === '').toBe(ends.length === 0);
      },
    ),
  );
});

test('Where another node may go on with a call, how it is a member of its Room is stored, and is so again there.', () => {
  const about = { roomId: 'room', room: 3, phase: 'joined' } as const;
  const terms = { muted: true, voiceActivityEvents: true, talking: false, coach: 'agent', volumes: { from_member: 0 } };
  const membership: Membership = { ...about, ...terms };
  const idle = {
    ...CALL,
    ...{ playback: undefined, collect: undefined, sending: [], setting: [], untold: [], transfer: undefined },
    ...{ held: false, toldHolding: false, collection: undefined, detection: undefined, membership },
  };
  expect(runningText(idle)).toBe('');
  const running = runningOf(runningText(idle, 'the call'));
  const remains = {
    ...{ sessionUuid: 's', appUuid: 'a', callerId: '', did: '', orphanTimeoutMs: 1, clientState: '', createdAt: 0 },
    ...({ type: 'phone_in', phase: 'answered' } as const),
    ...{ answered: true, answeredAt: 0, maxDurationMs: 9, roomId: 'room', running },
  };
  expect(takenOver(remains, 1).membership).toEqual({ ...membership, room: 0 });
  expect(runningText({ ...idle, membership: { ...membership, phase: 'joining' } }, 'the call')).not.toContain('member');
});
