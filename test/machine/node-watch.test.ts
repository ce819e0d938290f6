import { describe, expect, test } from 'bun:test';
import { lost, newWatch, read, suspects, type Watch } from '../../src/machine/node/watch.ts';

const BURIAL = 15_000;
const ORPHAN = 120_000;

/** Readings each second from `from` to `to`; `beatAt` gives the beat of the one peer at that time. */
function watched(watch: Watch, from: number, to: number, beatAt: (now: number) => number): Watch {
  let state = watch;
  for (let now = from; now <= to; now += 1_000) state = read(state, new Map([['peer', beatAt(now)]]), now);
  return state;
}

describe('a node that watches another', () => {
  const alive = watched(newWatch(0), 0, 60_000, (now) => now);

  test('suspects it after three seconds without a beat, and may bury it after NODE_BURIAL_SEC', () => {
    const still = (to: number) => watched(alive, 61_000, to, () => 60_000);
    expect(suspects(still(62_000), 62_000)).toEqual([]);
    expect(suspects(still(63_000), 63_000)).toEqual(['peer']);
    expect(lost(still(74_000), BURIAL, ORPHAN, 74_000)).toEqual([]);
    expect(lost(still(75_000), BURIAL, ORPHAN, 75_000)).toEqual([
      { nodeId: 'peer', beat: 60_000, seenAt: 60_000, mayAnswer: true },
    ]);
    expect(lost(still(180_000), BURIAL, ORPHAN, 180_000)[0]).toMatchObject({ mayAnswer: false });
  });

  test('does not suspect it any more once its beat moves', () => {
    const back = watched(alive, 61_000, 70_000, (now) => (now < 68_000 ? 60_000 : now));
    expect(suspects(back, 70_000)).toEqual([]);
  });

  test('buries nobody after a gap of its own, until it has watched for twice NODE_BURIAL_SEC', () => {
    // It was stopped, or cut off from the database, for 40 s, and sees the old beat.
    const back = watched(alive, 100_000, 101_000, () => 60_000);
    expect(lost(back, BURIAL, ORPHAN, 101_000)).toEqual([]);
    const later = watched(back, 102_000, 129_000, () => 60_000);
    expect(lost(later, BURIAL, ORPHAN, 129_000)).toEqual([]);
    const latest = watched(later, 130_000, 130_000, () => 60_000);
    expect(lost(latest, BURIAL, ORPHAN, 130_000)).toHaveLength(1);
  });

  test('buries nobody while its own last reading is old', () => {
    const still = watched(alive, 61_000, 80_000, () => 60_000);
    expect(lost(still, BURIAL, ORPHAN, 83_000)).toEqual([]);
  });

  test('forgets a peer that is not told of any more', () => {
    expect(suspects(read(alive, new Map(), 61_000), 99_000)).toEqual([]);
  });
});
