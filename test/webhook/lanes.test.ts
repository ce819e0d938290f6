import { describe, expect, test } from 'bun:test';
import { APP_RESERVED_JOBS } from '../../src/limits.ts';
import { Lanes } from '../../src/webhook/lanes.ts';
import fc from '../support/fast-check.ts';
import { seeded } from '../support/random.ts';

interface Job {
  readonly id: number;
  readonly appUuid: string;
  readonly lanes: readonly string[];
  readonly weight: number;
}

const jobs = fc
  .array(
    fc.record({
      app: fc.integer({ min: 0, max: 2 }),
      lanes: fc.uniqueArray(fc.integer({ min: 0, max: 4 }), { minLength: 0, maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 60 },
  )
  .map((drafts): Job[] =>
    drafts.map(({ app, lanes }, id) => ({
      id,
      appUuid: `app ${app}`,
      lanes: lanes.map((lane) => `${app}/${lane}`),
      weight: 1 + (id % 3),
    })),
  );

/**
 * Plays a random world on virtual time: jobs arrive, are taken, fail for a while and land in any order. Returns who was
 * delivered when.
 */
function play(all: readonly Job[], luck: () => number) {
  const lanes = new Lanes<Job>();
  const flying: Job[] = [];
  const delivered: Job[] = [];
  const arriving = [...all];
  let now = 0;
  for (let turn = 0; turn < 100_000 && delivered.length < all.length; turn += 1) {
    const roll = luck();
    if (arriving.length > 0 && roll < 0.3) {
      const job = arriving.shift();
      if (job !== undefined) lanes.add(job, 0);
    } else if (roll < 0.6) {
      const job = lanes.take(now);
      if (job !== undefined) {
        for (const other of flying) expect(other.lanes.some((lane) => job.lanes.includes(lane))).toBe(false);
        flying.push(job);
      }
    } else if (flying.length > 0 && roll < 0.95) {
      const [job] = flying.splice(Math.floor(luck() * flying.length), 1);
      if (job === undefined) continue;
      if (luck() < 0.3) lanes.retry(job, now + Math.ceil(luck() * 50), luck() < 0.5);
      else {
        delivered.push(job);
        lanes.done(job, true);
      }
    } else now += 7;
  }
  return { lanes, delivered };
}

describe('lanes', () => {
  test('deliver every job, in each lane in the order of arrival, whatever fails and lands when', () => {
    fc.assert(
      fc.property(jobs, fc.integer(), (all, seed) => {
        const { lanes, delivered } = play(all, seeded(seed));
        expect(delivered.length).toBe(all.length);
        expect([lanes.size, lanes.weight, lanes.weightOf('app 0')]).toEqual([0, 0, 0]);
        expect(lanes.nextDue).toBeUndefined();
        for (const lane of new Set(all.flatMap((job) => job.lanes))) {
          const ids = delivered.filter((job) => job.lanes.includes(lane)).map((job) => job.id);
          expect(ids).toEqual([...ids].sort((a, b) => a - b));
        }
      }),
      { numRuns: 150 },
    );
  });

  test('keep a reserve: an application with little under way is served when others may start nothing more', () => {
    const lanes = new Lanes<Job>();
    const job = (id: number, appUuid: string): Job => ({ id, appUuid, lanes: [`${appUuid} ${id}`], weight: 1 });
    for (let id = 0; id < 50; id += 1) lanes.add(job(id, 'hangs'), 0);
    for (let id = 0; id < 50; id += 1) expect(lanes.take(0)?.appUuid).toBe('hangs');
    for (let id = 50; id < 60; id += 1) lanes.add(job(id, 'hangs'), 0);
    for (let id = 100; id < 110; id += 1) lanes.add(job(id, 'well'), 0);
    const taken: (string | undefined)[] = [];
    for (let next = lanes.take(0, 'reserve'); next !== undefined; next = lanes.take(0, 'reserve')) taken.push(next.appUuid);
    expect(taken).toEqual(new Array(APP_RESERVED_JOBS).fill('well'));
    expect(lanes.take(0)).toBeDefined();
  });

  test('weigh the jobs that are not done, of all and of one application', () => {
    const lanes = new Lanes<Job>();
    const heavy: Job = { id: 0, appUuid: 'a', lanes: ['x'], weight: 50 };
    lanes.add(heavy, 0);
    lanes.add({ id: 1, appUuid: 'b', lanes: ['y'], weight: 1 }, 0);
    expect([lanes.size, lanes.weight, lanes.weightOf('a'), lanes.weightOf('b')]).toEqual([2, 51, 50, 1]);
    expect(lanes.take(0)).toBe(heavy);
    lanes.done(heavy, true);
    expect([lanes.size, lanes.weight, lanes.weightOf('a'), lanes.weightOf('b')]).toEqual([1, 1, 0, 1]);
  });

  test('hurry what rests for one application, once, and leave the others to their time', () => {
    const lanes = new Lanes<Job>();
    const mine: Job = { id: 0, appUuid: 'a', lanes: ['x'], weight: 1 };
    const others: Job = { id: 1, appUuid: 'b', lanes: ['y'], weight: 1 };
    lanes.add(mine, 1_000);
    lanes.add(others, 1_000);
    lanes.hurry('a', 10, () => true);
    expect([lanes.take(10), lanes.take(10)]).toEqual([mine, undefined]);
    lanes.done(mine, true);
    expect([lanes.take(1_000), lanes.take(1_000)]).toEqual([others, undefined]);
  });

  test('keep a failed job at the head until it is due', () => {
    const lanes = new Lanes<Job>();
    const first: Job = { id: 0, appUuid: 'a', lanes: ['x'], weight: 1 };
    const second: Job = { id: 1, appUuid: 'a', lanes: ['x'], weight: 1 };
    lanes.add(first, 0);
    lanes.add(second, 0);
    expect(lanes.take(0)).toBe(first);
    expect(lanes.take(0)).toBeUndefined();
    lanes.retry(first, 100, false);
    expect([lanes.nextDue, lanes.take(99)]).toEqual([100, undefined]);
    expect(lanes.take(100)).toBe(first);
    lanes.done(first, true);
    expect(lanes.take(100)).toBe(second);
  });

  test('give an application whose endpoint times out fewer and fewer at once, and others their turn', () => {
    const lanes = new Lanes<Job>();
    const job = (id: number, appUuid: string): Job => ({ id, appUuid, lanes: [`${appUuid} ${id}`], weight: 1 });
    for (let id = 0; id < 500; id += 1) lanes.add(job(id, 'hangs'), 0);
    lanes.add(job(1000, 'well'), 0);
    const drain = (now: number) => {
      const taken: Job[] = [];
      for (let next = lanes.take(now); next !== undefined; next = lanes.take(now)) taken.push(next);
      return taken;
    };
    const first = drain(0);
    expect(first.filter((each) => each.appUuid === 'hangs').length).toBe(64);
    expect(first.slice(0, 3).some((each) => each.appUuid === 'well')).toBe(true);
    let hanging = first.filter((each) => each.appUuid === 'hangs');
    for (let round = 1; round < 8; round += 1) {
      for (const each of hanging) lanes.retry(each, round * 1000, true);
      hanging = drain(round * 1000);
    }
    expect(hanging.length).toBe(2);
    for (let round = 0; round < 5; round += 1) {
      for (const each of hanging) lanes.done(each, true);
      hanging = drain(100_000);
    }
    expect(hanging.length).toBe(64);
  });
});
