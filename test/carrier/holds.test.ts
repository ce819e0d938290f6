/** The holds of a call, of either side, and what is told of them. */
import { expect, test } from 'bun:test';
import { Holds } from '../../src/carrier/leg/holds.ts';

/** Holds, and what they have told since it was last asked. */
function observed() {
  const told: string[] = [];
  const holds = new Holds((signal) => told.push('on' in signal ? `${signal.type} ${signal.on}` : signal.type));
  return { holds, told: () => told.splice(0) };
}

test('a hold of the far end is told once, and not before the answer', () => {
  const { holds, told } = observed();
  holds.far(true);
  expect(told()).toEqual([]);
  holds.answered(() => expect(holds.isAnswered).toBeTrue());
  expect(told()).toEqual(['leg.held']);
  holds.far(true);
  expect(told()).toEqual([]);
  holds.far(false);
  expect(told()).toEqual(['leg.resumed']);
});

test('a hold of the far end that is over by the answer is not told', () => {
  const { holds, told } = observed();
  holds.far(true);
  holds.far(false);
  holds.answered(() => {});
  expect(told()).toEqual([]);
});

test('the answer is told before the hold that came with it', () => {
  const { holds, told } = observed();
  holds.far(true);
  const before: string[][] = [];
  holds.answered(() => before.push(told()));
  expect(before).toEqual([[]]);
  expect(told()).toEqual(['leg.held']);
  expect(holds.isAny).toBeTrue();
});

test('a call that goes on from another node tells whether it is held, as the other may have told otherwise', () => {
  const { holds, told } = observed();
  expect(holds.isAny).toBeFalse();
  holds.resumed();
  expect(told()).toEqual(['leg.resumed']);
  holds.far(true);
  expect([holds.isAnswered, ...told()]).toEqual([true, 'leg.held']);
});

test('our hold waits for the far end, and one that is taken back meanwhile is told all the same', () => {
  const { holds, told } = observed();
  holds.answered(() => {});
  holds.order(true);
  holds.order(true);
  expect([holds.isOwn, holds.isAny, ...told()]).toEqual([true, true]);
  holds.order(false);
  expect([holds.isOwn, holds.isAny, ...told()]).toEqual([false, true, 'leg.own_hold true']);
  expect(holds.settle()).toBeTrue();
  expect(holds.settle()).toBeFalse();
  expect(holds.isAny).toBeFalse();
  holds.order(true);
  holds.settle();
  expect(holds.isAny).toBeTrue();
});
