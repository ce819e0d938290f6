/** The clocks of other nodes, as far as pings tell them. */
import { expect, test } from 'bun:test';
import { Offsets } from '../../src/cluster/bus/offset.ts';
import { NODE_OFFSET_KEPT_MS } from '../../src/limits.ts';

/** A ping of node `b`, whose clock is 1,000 ms ahead, that took so long there and back. */
function pinged(offsets: Offsets, at: number, there: number, back: number, nodeId = 'b') {
  offsets.measured(nodeId, at, at + there + 1_000, at + there + back);
}

test('The clock of another node is known to half of the round trip of the fastest ping, until that is old.', () => {
  const offsets = new Offsets();
  expect([offsets.theirs('b', 0, 0), offsets.lead('b')]).toEqual([undefined, undefined]);
  pinged(offsets, 0, 10, 0);
  expect(offsets.theirs('b', 50, 50)).toEqual({ earliest: 1_050, latest: 1_060 });
  // A slower one tells less, and one as slow no more.
  for (const [there, back] of [
    [20, 0],
    [0, 10],
  ] as const)
    pinged(offsets, 100, there, back);
  expect(offsets.theirs('b', 200, 200)).toEqual({ earliest: 1_200, latest: 1_210 });
  pinged(offsets, 200, 2, 2);
  expect(offsets.theirs('b', 300, 300)).toEqual({ earliest: 1_298, latest: 1_302 });
  expect(offsets.theirs('b', 0, 203 + NODE_OFFSET_KEPT_MS)).toBeDefined();
  expect(offsets.theirs('b', 0, 204 + NODE_OFFSET_KEPT_MS)).toBeUndefined();
  pinged(offsets, 200 + NODE_OFFSET_KEPT_MS, 0, 40);
  expect(offsets.theirs('b', 0, 300 + NODE_OFFSET_KEPT_MS)).toEqual({ earliest: 960, latest: 1_000 });
});

test('A node that has not answered is pinged anew, and the next ping counts however slow it is.', () => {
  const offsets = new Offsets();
  offsets.doubt('b');
  pinged(offsets, 0, 1, 1);
  offsets.doubt('b');
  expect([offsets.theirs('b', 2, 2), offsets.lead('b')]).toEqual([undefined, 1_000]);
  pinged(offsets, 10, 30, 30);
  expect(offsets.theirs('b', 100, 100)).toEqual({ earliest: 1_070, latest: 1_130 });
});

test('What a lost node told last is kept until its calls were taken over, though others are pinged meanwhile.', () => {
  const offsets = new Offsets();
  pinged(offsets, 0, 0, 0);
  // It told the same in its last sign of life, less surely.
  pinged(offsets, NODE_OFFSET_KEPT_MS - 100, 0, 40);
  pinged(offsets, NODE_OFFSET_KEPT_MS, 0, 0, 'c');
  expect([offsets.theirs('b', 0, NODE_OFFSET_KEPT_MS), offsets.lead('b')]).toEqual([undefined, 1_000]);
  pinged(offsets, 2 * NODE_OFFSET_KEPT_MS - 1, 0, 0, 'd');
  expect(offsets.lead('b')).toBe(1_000);
  pinged(offsets, 2 * NODE_OFFSET_KEPT_MS, 0, 0, 'e');
  expect([offsets.lead('b'), offsets.lead('c'), offsets.lead('d')]).toEqual([undefined, 1_000, 1_000]);
});
