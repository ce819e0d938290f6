import { describe, expect, test } from 'bun:test';
import { NODE_POLL_GAP_MAX_MS, NODE_SUSPECT_MS } from '../../src/limits.ts';
import { forsaken, lost, newWatch, read, suspects, type Watch } from '../../src/machine/node/watch.ts';
import fc from '../support/fast-check.ts';

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

  test('takes the calls of a suspect over only where it has itself watched without a gap for six seconds', () => {
    const still = watched(alive, 61_000, 63_000, () => 60_000);
    expect(
      forsaken(
        watched(alive, 61_000, 62_000, () => 60_000),
        62_000,
      ),
    ).toEqual([]);
    expect(forsaken(still, 63_000)).toEqual(['peer']);
    // Its own last reading may be two and a half seconds old, and no older.
    expect([forsaken(still, 65_500), forsaken(still, 65_501)]).toEqual([['peer'], []]);
    expect(forsaken(newWatch(0), 99_000)).toEqual([]);
    const back = (to: number) => watched(alive, 100_000, to, () => 60_000);
    expect([forsaken(back(105_000), 105_999), forsaken(back(105_000), 106_000)]).toEqual([[], ['peer']]);
  });

  test('takes two readings that are two and a half seconds apart for unbroken, and no more', () => {
    const after = (gap: number) => read(alive, new Map([['peer', 60_000]]), 60_000 + gap).unbrokenSince;
    expect([after(2_500), after(2_501)]).toEqual([0, 62_501]);
    const still = watched(alive, 61_000, 80_000, () => 60_000);
    expect([lost(still, BURIAL, ORPHAN, 82_500).length, lost(still, BURIAL, ORPHAN, 82_501).length]).toEqual([1, 0]);
  });

  test('takes none for dead that beats, and each that is dead for long, whatever was away meanwhile', () => {
    const TICK_MS = 250;
    const spans = (most: number) => fc.array(fc.tuple(fc.nat(150_000), fc.integer({ min: 1, max: most })), { maxLength: 4 });
    const isIn = (list: readonly (readonly [number, number])[], now: number) =>
      list.some(([from, ms]) => now >= from && now < from + ms);
    fc.assert(
      fc.property(spans(50_000), spans(50_000), spans(50_000), fc.nat(3), (away, stopped, dead, phase) => {
        let state = newWatch(0);
        let beat = 0;
        /** When the peer has beaten last, and when this node has read: what both did, not what the watch believes. */
        let beatenAt = 0;
        let reads: number[] = [];
        let deadAt = -Infinity;
        const advance = (now: number, isDead: boolean, isAway: boolean, isStopped: boolean) => {
          if (isDead) deadAt = now;
          if (!isDead && !isAway && now % 1_000 === phase * TICK_MS) {
            beat += 1;
            beatenAt = now;
          }
          if (!isStopped && !isAway && now % 1_000 === 0) {
            state = read(state, new Map([['peer', beat]]), now);
            reads = [...reads, now].slice(-40);
          }
        };
        const hasWatched = (since: number, now: number) =>
          [...reads.filter((at) => at >= since), now].every(
            (at, index, all) => at - (all[index - 1] ?? since) <= NODE_POLL_GAP_MAX_MS,
          );
        const judge = (now: number) => {
          for (const [found, ms] of [
            [forsaken(state, now), NODE_SUSPECT_MS],
            [lost(state, BURIAL, ORPHAN, now), BURIAL],
          ] as const) {
            if (found.length === 0) continue;
            // Nobody can know what it has done since the last reading.
            expect(beatenAt <= now - ms || beatenAt > (reads.at(-1) ?? 0)).toBe(true);
            // A peer that could not be heard, as where the database was away, is not buried. One that is forsaken for
            // that is asked first.
            if (ms === BURIAL) expect(deadAt).toBeGreaterThanOrEqual(now - ms - 1_000);
            expect(hasWatched(now - 2 * ms, now)).toBe(true);
          }
        };
        let now = 0;
        for (; now < 200_000; now += TICK_MS) {
          advance(now, isIn(dead, now), isIn(away, now), isIn(stopped, now));
          if (!isIn(stopped, now)) judge(now);
        }
        for (const isDead of [false, true]) {
          for (const end = now + 2 * BURIAL + 5_000; now < end; now += TICK_MS) {
            advance(now, isDead, false, false);
            judge(now);
          }
          expect([forsaken(state, now).length, lost(state, BURIAL, ORPHAN, now).length]).toEqual(isDead ? [1, 1] : [0, 0]);
        }
      }),
    );
  });
});
