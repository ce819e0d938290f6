/** Calls that go on at another node: which can be handed over, and the state as that node takes it up. */
import { expect, test } from 'bun:test';
import { forsaken, newWatch, read } from '../../src/machine/node/watch.ts';
import { carriedOver, isMovable } from '../../src/machine/session/movable.ts';
import { inbound, type SessionState, takenOver } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';

const begin = { sessionUuid: 's', appUuid: 'a', callerId: '', did: '', orphanTimeoutMs: 1000 };
const up: SessionState = { ...inbound(begin, 0), phase: 'answered', answeredAt: 50, deadlines: { duration: 5_000 } };

test('A call that is up and does nothing can be handed over; one that rings, ends, holds or plays cannot.', () => {
  expect(isMovable(up)).toBe(true);
  const playback = { operationUuid: 'p' } as unknown;
  const hindered: Partial<Record<keyof SessionState, unknown>>[] = [
    { phase: 'ringing' },
    { held: true },
    { holding: true },
    { hasLeg: false },
    { type: 'websocket' },
    { playback },
    { collect: playback },
    { collection: playback },
    { transfer: playback },
    { detection: playback },
    { recordings: [playback] },
    { sending: [playback] },
    { membership: { phase: 'joining' } },
  ];
  for (const change of hindered) expect(isMovable(Object.assign({ ...up }, change))).toBe(false);
});

test('Its deadlines are told by the clock of the node that goes on.', () => {
  expect(carriedOver(up, -30)).toMatchObject({ answeredAt: 20, deadlines: { duration: 4_970 } });
  expect(carriedOver(carriedOver(up, 700), -700)).toEqual(up);
});

test('A call that is taken over from a lost node tells what was cut off there, once, and lives on.', () => {
  const running = { playback: { operationUuid: 'p', kind: 'files', urls: ['http://x/a.wav'] }, call: '{}' } as const;
  const remains = {
    ...begin,
    roomId: 'room',
    type: 'phone_in',
    phase: 'answered',
    answered: true,
    clientState: '',
    createdAt: 1,
  } as const;
  const state = takenOver({ ...remains, running, answeredAt: 90, maxDurationMs: 1_000 }, 100);
  const first = step(state, { type: 'begin' }, 100);
  expect(first.events.map(({ event }) => event)).toEqual(['playback.failed']);
  expect(first.state).toMatchObject({ phase: 'answered', hasLeg: true, membership: { roomId: 'room', phase: 'joined' } });
  expect(step(first.state, { type: 'begin' }, 100).events.map(({ event }) => event)).not.toContain('playback.failed');
  expect(step(first.state, { type: 'deadline' }, 1_090).effects).toEqual([{ do: 'hangup' }]);
});

test('Calls are taken over only by a node that has watched without a gap for twice as long as it takes to suspect.', () => {
  let watch = newWatch(0);
  for (let now = 0; now <= 10_000; now += 1_000) {
    watch = read(
      watch,
      new Map([
        ['lost', Math.min(now, 2_000)],
        ['alive', now],
      ]),
      now,
    );
    expect(forsaken(watch, now)).toEqual(now >= 6_000 ? ['lost'] : []);
  }
  // A gap of its own: everyone's beats are old, and nobody is forsaken.
  watch = read(
    watch,
    new Map([
      ['lost', 2_000],
      ['alive', 10_000],
    ]),
    20_000,
  );
  expect(forsaken(watch, 20_000)).toEqual([]);
});
