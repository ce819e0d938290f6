import { expect, test } from 'bun:test';
import { StrangerLimit } from '../../src/carrier/socket/stranger-limit.ts';
import { SIP_TURN_STRANGER_DATAGRAMS } from '../../src/limits.ts';

test('A turn takes a few datagrams of strangers and every one of a trunk, and the next turn a few more.', () => {
  let endTurn = () => {};
  const limit = new StrangerLimit(
    (address) => address === '192.0.2.1',
    (done) => {
      endTurn = done;
    },
  );
  const taken = (address: string, datagrams: number) =>
    Array.from({ length: datagrams }, () => limit.admits(address)).filter(Boolean).length;
  expect(taken('198.51.100.7', 1_000)).toBe(SIP_TURN_STRANGER_DATAGRAMS);
  expect(taken('203.0.113.9', 1_000)).toBe(0);
  expect(taken('192.0.2.1', 1_000)).toBe(1_000);
  endTurn();
  expect(taken('203.0.113.9', 1_000)).toBe(SIP_TURN_STRANGER_DATAGRAMS);
});
