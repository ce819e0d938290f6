/** Places that applications share: what one takes, and what it leaves. */
import { describe, expect, test } from 'bun:test';
import { Shares } from '../../src/bounds/shares.ts';
import fc from '../support/fast-check.ts';

const LIMITS = { all: 12, ofApp: 6, reserve: 4, reservedOfApp: 2 };
const app = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const act = fc.oneof(
  { weight: 4, arbitrary: fc.record({ act: fc.constant('take' as const), app }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('give' as const), app }) },
);

describe('places that applications share', () => {
  test('nobody has more than its share, all together no more than there are, and what is given back can be taken', () => {
    fc.assert(
      fc.property(fc.array(act, { maxLength: 80 }), (acts) => {
        const shares = new Shares(LIMITS);
        const taken = new Map<string, number>();
        for (const each of acts) {
          const own = taken.get(each.app) ?? 0;
          if (each.act === 'give') {
            shares.give(each.app);
            taken.set(each.app, Math.max(0, own - 1));
          } else if (shares.take(each.app)) taken.set(each.app, own + 1);
          else {
            const size = [...taken.values()].reduce((sum, count) => sum + count, 0);
            // An application with next to nothing is refused only where the reserve is taken too.
            expect(own >= LIMITS.ofApp || size >= LIMITS.all).toBe(true);
            if (own < LIMITS.reservedOfApp) expect(size).toBe(LIMITS.all + LIMITS.reserve);
          }
          const size = [...taken.values()].reduce((sum, count) => sum + count, 0);
          expect(shares.size).toBe(size);
          expect(shares.of(each.app)).toBe(taken.get(each.app) ?? 0);
          expect(size).toBeLessThanOrEqual(LIMITS.all + LIMITS.reserve);
          expect(Math.max(...taken.values())).toBeLessThanOrEqual(LIMITS.ofApp);
        }
      }),
    );
  });

  test('two applications that take all they can leave a third one its first places', () => {
    const shares = new Shares(LIMITS);
    for (let turn = 0; turn < 20; turn++) for (const each of ['a', 'b']) shares.take(each);
    expect([shares.of('a'), shares.of('b')]).toEqual([6, 6]);
    expect(['c', 'c', 'c', 'd', 'd', 'e'].map((each) => shares.take(each))).toEqual([true, true, false, true, true, false]);
  });
});
