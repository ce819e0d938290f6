import { afterAll, beforeAll, expect, test } from 'bun:test';
import { openSecondStore, openTestStore, type TestStore } from './open.ts';

let first: TestStore;
beforeAll(async () => {
  first = await openTestStore();
});
afterAll(() => first.close());

test('A process that ends drains in the mode that was ordered, and waits where nothing is ordered any more', async () => {
  const { nodes } = first.store;
  const drained = async (mode: 'wait' | 'move' | 'as_ordered', sec?: number) => {
    expect(await nodes.drain(nodes.nodeId, sec, mode)).toBe(true);
    const row = await nodes.get(nodes.nodeId);
    return [row?.drainMode, row?.drainSec];
  };
  expect(await drained('as_ordered', 30)).toEqual(['wait', 30]);
  expect(await drained('move')).toEqual(['move', undefined]);
  expect(await drained('as_ordered', 30)).toEqual(['move', 30]);
  expect(await drained('wait', 20)).toEqual(['wait', 20]);
  expect(await drained('move')).toEqual(['move', undefined]);
  expect(await nodes.undrain(nodes.nodeId)).toBe(true);
  expect(await drained('as_ordered', 30)).toEqual(['wait', 30]);
});

test('A drain that is ordered again keeps its beginning, and none is ordered of a node that is dead', async () => {
  const { nodes } = first.store;
  const begun = async () => (await nodes.get(nodes.nodeId))?.drainingAt;
  await nodes.undrain(nodes.nodeId);
  expect(await begun()).toBeUndefined();
  await nodes.drain(nodes.nodeId, 30, 'wait');
  const at = await begun();
  while (Date.now() <= (at ?? 0)) await new Promise(setImmediate);
  await nodes.drain(nodes.nodeId, 20, 'move');
  expect(await begun()).toBe(at ?? 0);
  const second = await openSecondStore(first);
  expect(await nodes.bury(second.nodes.nodeId, undefined)).toBe(true);
  expect(await nodes.drain(second.nodes.nodeId, 20, 'wait')).toBe(false);
  expect(await nodes.undrain(second.nodes.nodeId)).toBe(false);
  await second.close();
});
