/** The time of the platform, on clocks of our own. */
import { describe, expect, test } from 'bun:test';
import { SlewedTime, systemClock } from '../../src/clock.ts';
import fc from '../support/fast-check.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const HOUR_MS = 3_600_000;

describe('the time of the platform', () => {
  test('is within a second of the machine’s hours after that was set by ten seconds, forwards or backwards', () => {
    for (const stepMs of [10_000, -10_000]) {
      const time = new SlewedTime(0, START);
      let off = stepMs;
      // It is asked each 10 ms for a minute, then each second.
      for (let at = 0; at <= 6 * HOUR_MS; at += at < 60_000 ? 10 : 1_000) {
        const wall = START + at + stepMs;
        const before = off;
        off = wall - time.at(at, wall);
        expect(Math.abs(off)).toBeLessThanOrEqual(Math.abs(before) + 1e-3);
      }
      expect(Math.abs(off)).toBeLessThan(1);
    }
  });

  test('never steps backwards, and never runs faster or slower by more than half a millisecond a second', () => {
    const look = fc.record({
      passed: fc.double({ min: 0, max: 5_000, noNaN: true }),
      off: fc.integer({ min: -HOUR_MS, max: HOUR_MS }),
    });
    fc.assert(
      fc.property(fc.array(look, { maxLength: 100 }), (looks) => {
        const time = new SlewedTime(0, START);
        let monotonic = 0;
        let last = time.at(0, START);
        for (const { passed, off } of looks) {
          monotonic += passed;
          const now = time.at(monotonic, START + monotonic + off);
          expect(now).toBeGreaterThanOrEqual(last);
          expect(Math.abs(now - last - passed)).toBeLessThanOrEqual(passed * 0.0005 + 1e-3);
          last = now;
        }
      }),
    );
  });

  test('calls nobody before the deadline, and at once where that is over', async () => {
    const clock = systemClock();
    for (const ms of [-1_000, 0, 20, 50]) {
      const deadline = clock.now() + ms;
      await new Promise<void>((resolve) => {
        clock.at(deadline, resolve);
      });
      expect(clock.now()).toBeGreaterThanOrEqual(deadline);
    }
    let fired = false;
    const cancel = clock.at(clock.now() + 5, () => {
      fired = true;
    });
    cancel();
    await new Promise<void>((resolve) => {
      clock.at(clock.now() + 20, resolve);
    });
    expect(fired).toBe(false);
  });
});
