import { describe, expect, test } from 'bun:test';
import { blocker } from '../../src/event/names.ts';
import { isPastDay, nextAttemptAt, RETRY_DELAYS_MS, RETRY_SPAN_MS, retryAfterMs, retryDelayMs } from '../../src/webhook/retry.ts';
import fc from '../support/fast-check.ts';

const HOUR = 3_600_000;

describe('the retry schedule', () => {
  test('is the contract’s: 1, 2, 5, 10, 30 s, 1, 2, 5, 15, 30 min, then hourly within 24 h', () => {
    const first = [1, 2, 5, 10, 30, 60, 120, 300, 900, 1800].map((sec) => sec * 1000);
    expect(RETRY_DELAYS_MS.slice(0, 10)).toEqual(first);
    expect(new Set(RETRY_DELAYS_MS.slice(10))).toEqual(new Set([HOUR]));
    const total = RETRY_DELAYS_MS.reduce((sum, delay) => sum + delay, 0);
    expect(total).toBeLessThanOrEqual(24 * HOUR);
    expect(total).toBeGreaterThan(23 * HOUR);
  });
  test('varies each delay by at most a tenth, scaled, and ends', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        fc.double({ min: 0, max: 10, noNaN: true }),
        (failures, random, scale) => {
          const delay = retryDelayMs(failures, scale, random);
          const planned = RETRY_DELAYS_MS[failures - 1];
          if (planned === undefined) expect(delay).toBeUndefined();
          else expect(Math.abs((delay ?? -1) - planned * scale)).toBeLessThanOrEqual(planned * scale * 0.1 + 1e-6);
        },
      ),
    );
  });
  test('takes the longer of its own delay and Retry-After, up to an hour', () => {
    expect(retryDelayMs(1, 1, 0.5, 7_000)).toBe(7_000);
    expect(retryDelayMs(5, 1, 0.5, 7_000)).toBe(30_000);
    expect(retryDelayMs(1, 1, 0.5, 99 * HOUR)).toBe(HOUR);
    expect(retryDelayMs(RETRY_DELAYS_MS.length + 1, 1, 0.5, 7_000)).toBeUndefined();
  });
  test('ends within 24 h where each answer asks for an hour, and is not cut short where none does', () => {
    const lives = (retryAfter: number, attemptMs: number, random: number, scale: number) => {
      let elapsed = attemptMs;
      for (let failures = 1; ; failures++) {
        const wait = retryDelayMs(failures, scale, random, retryAfter);
        if (wait === undefined || isPastDay(failures, elapsed, wait, 10_000, scale)) return { elapsed, failures };
        elapsed += wait + attemptMs;
      }
    };
    const hourly = lives(HOUR, 50, 0.5, 1);
    expect(hourly.elapsed).toBeGreaterThan(23 * HOUR);
    expect(hourly.elapsed).toBeLessThanOrEqual(24 * HOUR);
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 10_000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.constantFrom(1e-6, 0.0001, 0.01, 1),
        (attemptMs, random, scale) => {
          expect(lives(0, attemptMs, random, scale).failures).toBe(RETRY_DELAYS_MS.length + 1);
        },
      ),
    );
  });
  test('is made at once for the first time, and again at its time, or after its pause where another clock set that', () => {
    expect([nextAttemptAt(undefined, 1_000), nextAttemptAt({ at: 900, retry_at: null }, 1_000)]).toEqual([0, 0]);
    expect(nextAttemptAt({ at: 900, retry_at: 1_900 }, 1_000)).toBe(1_900);
    expect(nextAttemptAt({ at: 900, retry_at: 1_900 }, 5_000)).toBe(1_900);
    // The clock of the attempt was an hour ahead: its pause of a second is kept.
    expect(nextAttemptAt({ at: HOUR, retry_at: HOUR + 1_000 }, 1_000)).toBe(2_000);
  });
  test('spans all of its delays, and is cut short where the day is over only if it was prolonged', () => {
    expect(RETRY_SPAN_MS).toBe(RETRY_DELAYS_MS.reduce((sum, delay) => sum + delay, 0));
    // One failure, whose receiver asked for an hour, at a day less an hour and at a moment more.
    expect([isPastDay(1, 23 * HOUR, HOUR, 0, 1), isPastDay(1, 23 * HOUR + 1, HOUR, 0, 1)]).toEqual([false, true]);
    expect([isPastDay(1, 2.3 * HOUR, 0.1 * HOUR, 0, 0.1), isPastDay(1, 2.3 * HOUR, 0.11 * HOUR, 0, 0.1)]).toEqual([false, true]);
    expect(isPastDay(11, 2.3 * HOUR, 0.2 * HOUR, 0, 0.1)).toBe(true);
    // What took no longer than was planned is not cut short: here every attempt took all of its time.
    expect([isPastDay(2, 24 * HOUR, HOUR, 12 * HOUR, 1), isPastDay(2, 24 * HOUR + 1_101, HOUR, 12 * HOUR, 1)]).toEqual([
      false,
      true,
    ]);
  });
  test('reads Retry-After as seconds or as a date, and nothing else', () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    expect([retryAfterMs('120', now), retryAfterMs(' 120 ', now)]).toEqual([120_000, 120_000]);
    expect([retryAfterMs('5', now), retryAfterMs('1234567890', now)]).toEqual([5_000, 1_234_567_890_000]);
    // A receiver that asks for very long gets the hour, not the shortest delay.
    for (const long of ['1234567890', '9'.repeat(400)]) expect(retryDelayMs(1, 1, 0.5, retryAfterMs(long, now))).toBe(3_600_000);
    expect(retryAfterMs('Thu, 01 Jan 2026 00:00:30 GMT', now)).toBe(30_000);
    for (const each of [null, '', '-5', '1e9', 'soon', 'Wed, 31 Dec 2025 00:00:00 GMT', '2026-01-02'])
      expect(retryAfterMs(each, now)).toBe(0);
  });
});

describe('blocked events', () => {
  test('are names, and prefixes with a trailing .*', () => {
    const blocks = blocker(['session.held', 'playback.*']);
    expect(['session.held', 'playback.started', 'playback.failed'].every(blocks)).toBe(true);
    expect(['session.held.x', 'session.ended', 'playbacks.started', 'playback'].some(blocks)).toBe(false);
  });
});
