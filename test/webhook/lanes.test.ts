import { describe, expect, test } from 'bun:test';
import { APP_RESERVED_JOBS, APP_WINDOW_LEAST_JOBS, APP_WINDOW_MAX_JOBS } from '../../src/limits.ts';
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
      app: fc.constantFrom(0, 0, 0, 1, 2),
      // Most have lanes of their own, so that many are under way at once.
      lanes: fc.uniqueArray(fc.oneof(fc.nat(4), fc.nat(400)), { minLength: 0, maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 120 },
  )
  .map((drafts): Job[] =>
    drafts.map(({ app, lanes }, id) => ({
      id,
      appUuid: `app ${app}`,
      lanes: lanes.map((lane) => `${app}/${lane}`),
      weight: 1 + (id % 3),
    })),
  );

/** What is known of a job from outside, to judge what may be taken. */
class Watched {
  readonly #waiting = new Map<string, Job[]>();
  readonly #due = new Map<Job, number>();
  readonly #windows = new Map<string, number>();
  readonly flying: Job[] = [];

  add(job: Job, dueAt: number): void {
    this.#due.set(job, dueAt);
    for (const lane of job.lanes) this.#waiting.set(lane, [...(this.#waiting.get(lane) ?? []), job]);
  }

  /** Whether a job is the head of its lanes, due, and one that its application may have under way besides. */
  mayBeTaken(job: Job, now: number, reserve: boolean): boolean {
    const window = this.#windows.get(job.appUuid) ?? APP_WINDOW_MAX_JOBS;
    const inFlight = this.flying.filter(({ appUuid }) => appUuid === job.appUuid).length;
    const isDue = (this.#due.get(job) ?? Infinity) <= now && !this.flying.includes(job);
    return this.#isHead(job) && isDue && inFlight < (reserve ? Math.min(window, APP_RESERVED_JOBS) : window);
  }

  anyMayBeTaken(now: number, reserve: boolean): boolean {
    return [...this.#due.keys()].some((job) => this.mayBeTaken(job, now, reserve));
  }

  /** Heads alone are hurried: what waits behind them has not been tried. */
  hurry(appUuid: string, now: number): void {
    for (const [job, due] of this.#due)
      if (job.appUuid === appUuid && due > now && this.#isHead(job) && !this.flying.includes(job)) this.#due.set(job, now);
  }

  retry(job: Job, dueAt: number, timedOut: boolean): void {
    this.#due.set(job, dueAt);
    if (timedOut) this.#window(job, (window) => Math.max(APP_WINDOW_LEAST_JOBS, Math.floor(window / 2)));
  }

  done(job: Job, delivered: boolean): void {
    this.#due.delete(job);
    for (const lane of job.lanes) this.#waiting.get(lane)?.shift();
    if (delivered) this.#window(job, (window) => Math.min(APP_WINDOW_MAX_JOBS, window + 1));
  }

  #isHead(job: Job): boolean {
    return job.lanes.every((lane) => this.#waiting.get(lane)?.[0] === job);
  }

  #window({ appUuid }: Job, change: (window: number) => number): void {
    this.#windows.set(appUuid, change(this.#windows.get(appUuid) ?? APP_WINDOW_MAX_JOBS));
  }
}

/**
 * Plays a random world on virtual time: jobs arrive, are taken, fail for a while, are hurried, given up and land in any
 * order. Returns who was through when. `patience` is the share of attempts that succeed.
 */
function play(all: readonly Job[], luck: () => number, patience: number) {
  const lanes = new Lanes<Job>();
  const watched = new Watched();
  const { flying } = watched;
  const through: Job[] = [];
  const arriving = [...all];
  let now = 0;
  for (let turn = 0; turn < 100_000 && through.length < all.length; turn += 1) {
    const roll = luck();
    if (arriving.length > 0 && roll < 0.3) {
      const job = arriving.shift();
      const dueAt = luck() < 0.2 ? now + Math.ceil(luck() * 50) : 0;
      if (job === undefined) continue;
      watched.add(job, dueAt);
      lanes.add(job, dueAt);
    } else if (roll < 0.65) {
      const reserve = luck() < 0.3;
      const may = watched.anyMayBeTaken(now, reserve);
      const job = lanes.take(now, reserve ? 'reserve' : 'any');
      expect(job !== undefined && watched.mayBeTaken(job, now, reserve)).toBe(may);
      if (job !== undefined) flying.push(job);
    } else if (flying.length > 0 && roll < 0.85) {
      const [job] = flying.splice(Math.floor(luck() * flying.length), 1);
      if (job === undefined) continue;
      if (luck() >= patience) {
        const again = [now + Math.ceil(luck() * 50), luck() < 0.5] as const;
        watched.retry(job, ...again);
        lanes.retry(job, ...again);
      } else {
        const delivered = luck() < 0.8;
        through.push(job);
        watched.done(job, delivered);
        lanes.done(job, delivered);
      }
    } else if (roll < 0.88) {
      const appUuid = `app ${Math.floor(luck() * 3)}`;
      watched.hurry(appUuid, now);
      lanes.hurry(appUuid, now, () => true);
    } else now += 7;
  }
  return { lanes, through };
}

describe('lanes', () => {
  test('deliver every job, in each lane in the order of arrival, and let none wait that may be sent, whatever fails', () => {
    fc.assert(
      fc.property(jobs, fc.integer(), fc.constantFrom(0.2, 0.7), (all, seed, patience) => {
        const { lanes, through } = play(all, seeded(seed), patience);
        expect(through.length).toBe(all.length);
        expect([lanes.size, lanes.weight, lanes.weightOf('app 0')]).toEqual([0, 0, 0]);
        expect(lanes.nextDue).toBeUndefined();
        for (const lane of new Set(all.flatMap((job) => job.lanes))) {
          const ids = through.filter((job) => job.lanes.includes(lane)).map((job) => job.id);
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
    // Nothing is kept of it, nor is there a time to wake up for.
    lanes.done(others, true);
    lanes.add(mine, 5_000);
    lanes.hurry('a', 1_000, () => true);
    expect(lanes.take(1_000)).toBe(mine);
    lanes.done(mine, true);
    expect([lanes.size, lanes.nextDue]).toEqual([0, undefined]);
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
