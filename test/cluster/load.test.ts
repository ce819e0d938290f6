import { expect, test } from 'bun:test';
import { NodeLoad } from '../../src/cluster/membership/load.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

test('A node is as full as its busiest media thread was in the last second, where nothing else is fuller.', () => {
  let busyUs: readonly number[] = [100_000, 700_000];
  const load = new NodeLoad({ legs: () => 0, portsFree: () => 90, ports: 100, busyUs: () => busyUs }, new VirtualClock());
  expect(load.value).toBeCloseTo(0.7);
  busyUs = [0, 0];
  expect(load.value).toBeCloseTo(0.1);
  load.stop();
});
