import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { native } from '../../src/media/native.ts';
import { mediaReadings } from '../../src/media/worker/readings.ts';
import { LATENESS_STEPS_US, TickLateness, ticksOver } from '../../src/media/worker/tick-lateness.ts';
import { Harness } from './harness.ts';

describe('how late ticks begin', () => {
  test('is counted for each tick of a run, those that are made up for too', () => {
    const lateness = new TickLateness();
    lateness.add(1, 40);
    lateness.add(1, 5_000);
    lateness.add(3, 45_001); // 45, 25 and 5 ms late
    lateness.add(0, 9_999_999);
    lateness.add(1, 250_000);
    const counts = lateness.counts();
    expect(counts.length).toBe(LATENESS_STEPS_US.length + 1);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(6);
    expect(ticksOver(counts, 5_000)).toBe(4);
    expect(ticksOver(counts, 20_000)).toBe(3);
    expect(ticksOver(counts, 100_000)).toBe(1);
    expect(ticksOver([], 1_000)).toBe(0);
  });

  test('stands in the metrics, with the ticks that were run and left out', () => {
    const load = { ticks: 50, skippedTicks: 2, latenessMaxUs: 0, lateness: [44, 0, 2, 3, 0, 0, 0, 1], busyUs: 400_000 };
    const readings = mediaReadings({ ticks: () => [load, { ...load, busyUs: 500_000 }] });
    expect(Object.fromEntries(readings.map(({ name, read }) => [name, read()]))).toEqual({
      media_ticks_total: 100,
      media_ticks_late_2ms_total: 12,
      media_ticks_late_total: 8,
      media_ticks_skipped_total: 4,
      media_busy_ratio: 0.5,
      threads_stuck: 0,
    });
    expect(mediaReadings({ ticks: () => [] }).map(({ read }) => read())).toEqual([0, 0, 0, 0, 0, 0]);
  });
});

describe('the thread of a media worker', () => {
  /** The policies of all threads of this process, as `/proc/…/stat` has them: 2 is round robin. */
  const policies = () =>
    readdirSync('/proc/self/task').map((task) => {
      const stat = readFileSync(`/proc/self/task/${task}/stat`, 'utf8');
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38]);
    });

  /** Resolves with the number of real-time threads once it is `expected`, or has not become it for five seconds. */
  const realTime = async (expected: number): Promise<number> => {
    const count = () => policies().filter((policy) => policy === 2).length;
    for (let looks = 0; looks < 1_000 && count() !== expected; looks++) await new Promise((resolve) => setTimeout(resolve, 5));
    return count();
  };

  test('is real-time where the system permits it, it alone, and only for as long as it is one', async () => {
    // Threads of the tests before may still be ending.
    const before = await realTime(0);
    const plane = native.planeCreate(1_000);
    const permitted = native.planePriority(plane) === 2;
    native.planeDestroy(plane);
    expect(await realTime(before)).toBe(before);
    const harness = await Harness.open();
    const workers = permitted ? harness.engine.ticks().length : 0;
    expect(await realTime(before + workers)).toBe(before + workers);
    await harness.close();
    expect(await realTime(before)).toBe(before);
  });
});
