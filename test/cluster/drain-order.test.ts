/** The drain of a node by order of the operator: what it refuses, and when it ends what is left. */
import { expect, test } from 'bun:test';
import { Drain, operatorNodes } from '../../src/compose/drain.ts';
import type { NodeRow } from '../../src/database/node/nodes.ts';
import { silentLog } from '../../src/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

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

test('A deadline counts from its order, however often that is read, and another one from when it is read.', async () => {
  const { clock, order, told } = world();
  const readFor = async (seconds: number, drainSec: number | undefined) => {
    for (let second = 0; second < seconds; second++) {
      order(1, drainSec);
      await clock.advance(1_000);
    }
  };
  await readFor(59, 60);
  expect(told()).toEqual(['carrier true', 'sessions true']);
  await readFor(1, 60);
  expect(told()).toEqual(['ended']);
  await readFor(20, 30);
  expect(told()).toEqual([]);
  await readFor(10, 30);
  expect(told()).toEqual(['ended']);
  await readFor(29, 50);
  // It is to be empty at any time from here on.
  await readFor(60, undefined);
  expect([told(), clock.armed]).toEqual([[], 0]);
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

test('A process that ends has its own time for that, and not what is left of the deadline of a drain.', async () => {
  const { clock, drain, order, told } = world();
  order(1, 30);
  told();
  drain.last();
  await clock.advance(60_000);
  expect([drain.isOn, told()]).toEqual([true, []]);
});

test('An order for this node is heeded at once, one for another node by that, and both are listed.', async () => {
  const rows = new Map(['own', 'other'].map((nodeId) => [nodeId, nodeRow(nodeId)]));
  const heeded: (readonly [string, number | undefined])[] = [];
  const asked: (readonly [string, number | undefined, string])[] = [];
  const ordered = (nodeId: string, drainingAt: number | undefined) => {
    const row = rows.get(nodeId);
    return row !== undefined && rows.set(nodeId, { ...row, drainingAt }).size > 0;
  };
  const operator = operatorNodes({
    store: {
      nodes: {
        ...{ nodeId: 'own', join: async () => {}, announce: async () => {}, beat: async () => [], onVolume: async () => [] },
        ...{ bury: async () => false, buryOthers: async () => {}, leave: async () => {}, onDead() {} },
        ...{ tell() {}, fact: async () => '', list: async () => [...rows.values()], get: async (nodeId) => rows.get(nodeId) },
        drain: async (...order) => asked.push(order) > 0 && ordered(order[0], 7),
        undrain: async (nodeId) => ordered(nodeId, undefined),
      },
    },
    cluster: undefined,
    drain: { ordered: ({ drainingAt, nodeId }: NodeRow) => void heeded.push([nodeId, drainingAt]) },
  });
  const done = [
    await operator.drain('own', 30, 'move'),
    await operator.drain('other', undefined, 'wait'),
    await operator.drain('nobody', undefined, 'wait'),
    await operator.undrain('own'),
    await operator.undrain('nobody'),
  ];
  expect([done, asked[0], heeded]).toEqual([
    [true, true, false, true, false],
    ['own', 30, 'move'],
    [
      ['own', 7],
      ['own', undefined],
    ],
  ]);
  const alone = { suspect: false, unreached: false, settingsApart: [] };
  expect(await operator.list()).toMatchObject([
    { nodeId: 'own', drainingAt: undefined, here: true, ...alone },
    { nodeId: 'other', drainingAt: 7, here: false, ...alone },
  ]);
});
