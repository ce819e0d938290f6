import { expect, test } from 'bun:test';
import { beatLoadOf } from '../../src/cluster/membership/beat-load.ts';
import { NodeLoad } from '../../src/cluster/membership/load.ts';
import { NODE_LEGS_FULL, NODE_LOOP_LAG_FULL_MS, NODE_LOOP_LOOK_MS } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

test('A node is as full as its busiest media thread was in the last second, where nothing else is fuller.', () => {
  let busyUs: readonly number[] = [100_000, 700_000];
  const load = new NodeLoad({ legs: () => 0, portsFree: () => 90, ports: 100, busyUs: () => busyUs }, new VirtualClock());
  expect(load.value).toBeCloseTo(0.7);
  busyUs = [0, 0];
  expect(load.value).toBeCloseTo(0.1);
  load.stop();
});

test('A node is as full as the legs that it has, where nothing else is fuller, and a beat of another release says what it can.', () => {
  const load = new NodeLoad(
    { legs: () => NODE_LEGS_FULL / 2, portsFree: () => 9, ports: 10, busyUs: () => [] },
    new VirtualClock(),
  );
  expect(load.value).toBeCloseTo(0.5);
  load.stop();
  const none = { load: 0, channels: {}, registered: {}, serviceRoutes: {} };
  for (const told of [undefined, '{}', 'null', '1', '{"load":"1","channels":null,"registered":1,"serviceRoutes":null}'])
    expect(beatLoadOf(told === undefined ? undefined : { load: told })).toEqual(none);
  const beat = { load: 0.5, channels: { a: 1 }, registered: { b: 2 }, serviceRoutes: { b: ['<sip:x>'] } };
  expect(beatLoadOf({ load: JSON.stringify(beat) })).toEqual(beat);
});

/** A clock whose timers come so much too late, as they do where the event loop is busy. */
class LateClock extends VirtualClock {
  lateMs = 80;

  override at(deadline: number, fire: () => void): () => void {
    return super.at(deadline + this.lateMs, fire);
  }
}

test('A node is as full as its event loop is late, of which an eighth counts with each look', async () => {
  const clock = new LateClock();
  const load = new NodeLoad({ legs: () => 0, portsFree: () => 1, ports: 1, busyUs: () => [] }, clock);
  const lagAfter = async (ms: number) => {
    await clock.advance(ms);
    return load.value * NODE_LOOP_LAG_FULL_MS;
  };
  expect(await lagAfter(NODE_LOOP_LOOK_MS + 80)).toBeCloseTo(10);
  clock.lateMs = 0;
  expect(await lagAfter(NODE_LOOP_LOOK_MS + 80)).toBeCloseTo(18.75);
  expect(await lagAfter(NODE_LOOP_LOOK_MS)).toBeCloseTo(16.40625);
  load.stop();
  expect(clock.armed).toBe(0);
});
