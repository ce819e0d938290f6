/** Many Sessions with inputs at once: how many take one in a turn of the event loop, and whose turn is next. */
import { expect, test } from 'bun:test';
import { TurnBudget } from '../../src/bounds/turn-budget.ts';
import type { Leg } from '../../src/call/ports/leg.ts';
import { SessionRegistry } from '../../src/call/session/session-registry.ts';
import { bareRegistry } from '../support/bare-registry.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

/** Calls of applications, at most `ofTurn` of which take an input in one turn. */
function calls(ofTurn: number) {
  let afterTurn: (() => void)[] = [];
  const hungUp: string[] = [];
  const registry = new SessionRegistry({
    journal: { commit: async () => true, wasStored: async () => false },
    ...bareRegistry(),
    clock: new VirtualClock(),
    turns: new TurnBudget(ofTurn, (then) => afterTurn.push(then)),
  });
  const endTurn = async () => {
    const waiting = afterTurn;
    afterTurn = [];
    for (const go of waiting) go();
    await settle();
  };
  const come = async (appUuid: string) => {
    const orders = { start() {}, ring() {}, startEarlyMedia() {}, answer() {}, reject() {}, cancel() {} };
    const leg: Leg = { audio: undefined, ...orders, hangup: () => hungUp.push(appUuid) };
    const coming = registry.incoming({ callerId: '+15550009', did: '+15550002', appUuid, leg, refuse() {}, listen() {} });
    await endTurn();
    await coming;
    await endTurn();
  };
  return { registry, hungUp, endTurn, come };
}

test('Of calls that all end at once so many are ended in a turn of the event loop, and the others in those after it', async () => {
  const { registry, hungUp, endTurn, come } = calls(2);
  for (let call = 0; call < 5; call++) await come('app');
  registry.endAll();
  await settle();
  const after = [hungUp.length];
  for (let turn = 0; turn < 3; turn++) {
    await endTurn();
    after.push(hungUp.length);
  }
  expect(after).toEqual([2, 4, 5, 5]);
});

test('The calls of an application that all end at once hold up those of another one by a turn, not by all', async () => {
  const { registry, hungUp, endTurn, come } = calls(2);
  for (let call = 0; call < 6; call++) await come('busy');
  await come('other');
  registry.endAll();
  await settle();
  await endTurn();
  expect(hungUp).toEqual(['busy', 'busy', 'busy', 'other']);
});

test('A Session that has ended before its turn comes takes nothing more, and no turn from others', async () => {
  const { registry, hungUp, endTurn, come } = calls(1);
  for (let call = 0; call < 3; call++) await come('app');
  registry.endAll();
  await settle();
  expect(hungUp).toHaveLength(1);
  // This node was declared dead: its calls are hung up on, and nothing is taken any more.
  registry.abandon();
  expect(hungUp).toHaveLength(4);
  await endTurn();
  await endTurn();
  expect([hungUp.length, registry.size]).toEqual([4, 0]);
});
