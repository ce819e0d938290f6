/** Which job of the lanes is next: never one twice, never one before its time, and applications in turn. */
import { heapStats } from 'bun:jsc';
import { describe, expect, spyOn, test } from 'bun:test';
import { APP_RESERVED_JOBS, APP_WINDOW_LEAST_JOBS, APP_WINDOW_MAX_JOBS } from '../../src/limits.ts';
import { DueHeap } from '../../src/webhook/due-heap.ts';
import { type LaneJob, Lanes } from '../../src/webhook/lanes.ts';

/** A job in a lane of its own. */
const alone = (appUuid: string, id: number): LaneJob => ({ appUuid, lanes: [`${appUuid} ${id}`], weight: 1 });

/** Everything that may be sent at `now`, in its order. */
function drain(lanes: Lanes<LaneJob>, now: number): LaneJob[] {
  const taken: LaneJob[] = [];
  for (let next = lanes.take(now); next !== undefined; next = lanes.take(now)) taken.push(next);
  return taken;
}

/** Lanes with `count` jobs of one application, all due. */
function filled(count: number, appUuid = 'a'): Lanes<LaneJob> {
  const lanes = new Lanes<LaneJob>();
  for (let id = 0; id < count; id += 1) lanes.add(alone(appUuid, id), 0);
  return lanes;
}

describe('a job in the lanes', () => {
  test('that was hurried and failed rests for its whole pause, although its first time comes before that', () => {
    const lanes = new Lanes<LaneJob>();
    const job = alone('a', 0);
    lanes.add(job, 1_000);
    lanes.hurry('a', 500, () => true);
    expect(lanes.take(500)).toBe(job);
    lanes.retry(job, 5_000, false);
    expect(lanes.take(4_999)).toBeUndefined();
    expect(drain(lanes, 5_000)).toEqual([job]);
  });

  test('that is in flight is not hurried, also when the clock was set back since it was sent', () => {
    const lanes = new Lanes<LaneJob>();
    const job = alone('a', 0);
    lanes.add(job, 1_000);
    expect(lanes.take(1_000)).toBe(job);
    lanes.hurry('a', 500, () => true);
    expect(lanes.take(2_000)).toBeUndefined();
  });

  test('is hurried only if it is among those that are meant', () => {
    const lanes = new Lanes<LaneJob>();
    const [meant, other] = [alone('a', 0), alone('a', 1)];
    lanes.add(meant, 1_000);
    lanes.add(other, 1_000);
    lanes.hurry('a', 10, (job) => job === meant);
    expect(drain(lanes, 10)).toEqual([meant]);
    expect(drain(lanes, 1_000)).toEqual([other]);
  });

  test('sorts nothing of what rests anew when it is looked at and not hurried', () => {
    const lanes = new Lanes<LaneJob>();
    for (const [app, id] of [
      ['many', 0],
      ['many', 1],
      ['few', 0],
    ] as const)
      lanes.add(alone(app, id), 1_000);
    const sorted = spyOn(DueHeap.prototype, 'push');
    try {
      lanes.hurry('few', 10, () => false);
      lanes.hurry('none', 10, () => true);
      expect(sorted).toHaveBeenCalledTimes(0);
      lanes.hurry('few', 10, () => true);
      expect(sorted).toHaveBeenCalledTimes(3);
    } finally {
      sorted.mockRestore();
    }
  });

  test('leaves nothing behind once it is done', () => {
    const heldBytes = (): number => {
      Bun.gc(true);
      return heapStats().heapSize;
    };
    const lanes = new Lanes<LaneJob>();
    const pass = (jobs: number, app: (id: number) => string) => {
      for (let id = 0; id < jobs; id += 1) {
        lanes.add(alone(app(id), id), 0);
        for (const job of drain(lanes, 0)) lanes.done(job, true);
      }
    };
    pass(1_000, () => 'a');
    const before = heldBytes();
    pass(100_000, () => 'a');
    pass(10_000, (id) => `application ${id}`);
    expect(heldBytes() - before).toBeLessThan(500_000);
    expect(lanes.size).toBe(0);
  });

  test('goes on when another one of its application, whose window is full, fails', () => {
    const lanes = filled(APP_WINDOW_MAX_JOBS + 1);
    const [first, ...others] = drain(lanes, 0);
    expect(others.length).toBe(APP_WINDOW_MAX_JOBS - 1);
    if (first !== undefined) lanes.retry(first, 1_000, false);
    expect(drain(lanes, 0).length).toBe(1);
  });
});

describe('an application with many jobs', () => {
  test('has no more turns than one with few', () => {
    const lanes = filled(20, 'many');
    lanes.add(alone('few', 0), 1);
    lanes.add(alone('few', 1), 1);
    const takers = Array.from({ length: 4 }, () => lanes.take(1)?.appUuid);
    expect(takers.filter((each) => each === 'few').length).toBe(2);
  });

  test('has no more turns in the reserve either, and no more in flight from there than the reserve allows', () => {
    const lanes = filled(20, 'many');
    lanes.add(alone('few', 0), 1);
    lanes.add(alone('few', 1), 1);
    const takers = Array.from({ length: 4 }, () => lanes.take(1, 'reserve')?.appUuid);
    expect(takers.filter((each) => each === 'few').length).toBe(2);
    for (let id = 2; id < APP_RESERVED_JOBS; id += 1) expect(lanes.take(0, 'reserve')?.appUuid).toBe('many');
    expect(lanes.take(0, 'reserve')).toBeUndefined();
    expect(lanes.take(0)?.appUuid).toBe('many');
  });

  test('has no more turns in the reserve when all its jobs were done many times before', () => {
    const lanes = filled(0);
    for (let id = 0; id < 3; id += 1) {
      lanes.add(alone('many', id), 0);
      for (const job of drain(lanes, 0)) lanes.done(job, true);
    }
    for (let id = 0; id < 20; id += 1) lanes.add(alone('many', id), 0);
    for (let id = 0; id < 2; id += 1) lanes.add(alone('few', id), 0);
    const takers = Array.from({ length: 4 }, () => lanes.take(1, 'reserve')?.appUuid);
    expect(takers).toEqual(['many', 'few', 'many', 'few']);
  });

  test('has no more turns in the round of all when its jobs were done from the reserve many times before', () => {
    const lanes = filled(0);
    for (let id = 0; id < 3; id += 1) {
      lanes.add(alone('many', id), 0);
      const job = lanes.take(0, 'reserve');
      if (job !== undefined) lanes.done(job, true);
    }
    expect(lanes.size).toBe(0);
    for (let id = 0; id < 20; id += 1) lanes.add(alone('many', id), 0);
    for (let id = 0; id < 2; id += 1) lanes.add(alone('few', id), 0);
    const takers = Array.from({ length: 4 }, () => lanes.take(1)?.appUuid);
    expect(takers).toEqual(['many', 'few', 'many', 'few']);
  });

  test('has none in flight from the reserve beyond what it allows after its turn in the other round', () => {
    const lanes = filled(20);
    for (let id = 1; id < APP_RESERVED_JOBS; id += 1) lanes.take(0);
    expect(lanes.take(0)).toBeDefined();
    expect(lanes.take(0, 'reserve')).toBeUndefined();
  });

  test('whose receiver hangs has no more in flight from the reserve than its window allows', () => {
    const lanes = filled(APP_WINDOW_MAX_JOBS + APP_RESERVED_JOBS);
    for (const job of drain(lanes, 0)) lanes.retry(job, 10, true);
    expect(drain(lanes, 10)).toHaveLength(APP_WINDOW_LEAST_JOBS);
    expect(lanes.take(10, 'reserve')).toBeUndefined();
  });

  test('has half as many at once after a timeout, one more after a success, and keeps that when it has no more jobs', () => {
    const lanes = filled(APP_WINDOW_MAX_JOBS);
    const flying = drain(lanes, 0);
    const [late] = flying;
    if (late !== undefined) lanes.retry(late, 10, true);
    for (const job of flying.slice(1)) lanes.done(job, false);
    expect(drain(lanes, 10)).toEqual(flying.slice(0, 1));
    if (late !== undefined) lanes.done(late, true);
    expect(lanes.size).toBe(0);
    for (let id = 0; id < APP_WINDOW_MAX_JOBS; id += 1) lanes.add(alone('a', id), 10);
    expect(drain(lanes, 10).length).toBe(APP_WINDOW_MAX_JOBS / 2 + 1);
  });
});
