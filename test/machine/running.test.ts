import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { newUuid } from '../../src/id.ts';
import { cutOff, runningOf, runningText } from '../../src/machine/session/running.ts';

const phases = fc.constantFrom(undefined, 'asked', 'listening', 'greeting');

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
