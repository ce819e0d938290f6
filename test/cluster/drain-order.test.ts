/** The drain of a node by order of the operator: what it refuses, and when it ends what is left. */
import { expect, test } from 'bun:test';
import { Drain } from '../../src/compose/drain.ts';
import { silentLog } from '../../src/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

function world() {
  const clock = new VirtualClock();
  const told: string[] = [];
  const drain = new Drain(
    { drain: (on) => void told.push(`carrier ${on}`) },
    { size: 3, refuseNew: (on) => void told.push(`sessions ${on}`), endAll: () => void told.push('ended') },
    { clock, log: silentLog },
  );
  const order = (drainingAt: number | undefined, drainSec?: number, drainMode: 'wait' | 'move' = 'wait') =>
    drain.ordered({ drainingAt, drainSec, drainMode });
  return { clock, drain, order, told: () => told.splice(0) };
}

test('A drain with a deadline ends what is left then, and not before; without one it waits for ever.', async () => {
  const { clock, drain, order, told } = world();
  order(1);
  expect([drain.isOn, told()]).toEqual([true, ['carrier true', 'sessions true']]);
  await clock.advance(24 * 3_600_000);
  expect(told()).toEqual([]);
  order(1, 60);
  await clock.advance(59_999);
  expect(told()).toEqual([]);
  await clock.advance(1);
  expect(told()).toEqual(['ended']);
});

test('A node that is undrained takes calls again, and its deadline is forgotten.', async () => {
  const { clock, drain, order, told } = world();
  order(1, 60);
  order(undefined);
  expect([drain.isOn, told()]).toEqual([false, ['carrier true', 'sessions true', 'carrier false', 'sessions false']]);
  await clock.advance(120_000);
  expect(told()).toEqual([]);
});

test('Calls are handed to other nodes while the order says move, and no longer.', () => {
  const { drain, order } = world();
  const moves: boolean[] = [];
  drain.mover = { moveAll: (on) => void moves.push(on) };
  order(1, undefined, 'move');
  order(1, undefined, 'wait');
  order(undefined, undefined, 'move');
  expect(moves).toEqual([true, false, false]);
});

test('A process that ends hands its calls over where an order says so that is read after it began to end, and heeds no deadline.', async () => {
  const { clock, drain, order, told } = world();
  const moves: boolean[] = [];
  drain.mover = { moveAll: (on) => void moves.push(on) };
  drain.last();
  // Its row is read before it has the drain of the end.
  order(undefined);
  order(1, 30, 'move');
  await clock.advance(60_000);
  order(1, 30, 'wait');
  expect([moves, told()]).toEqual([[false, true, false], []]);
});
