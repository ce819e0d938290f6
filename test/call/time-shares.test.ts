import { expect, test } from 'bun:test';
import { TimeShares } from '../../src/bounds/time-shares.ts';
import fc from '../support/fast-check.ts';

interface Job {
  readonly owner: string;
  readonly ms: number;
}

test('one that has asked for much waits for one job of each other at most, however long its own take', () => {
  const shares = new TimeShares<Job>();
  for (let count = 0; count < 50; count++) shares.add('heavy', { owner: 'heavy', ms: 1_000 });
  const order: string[] = [];
  for (let turn = 0; turn < 40; turn++) {
    const job = shares.take();
    if (job === undefined) break;
    order.push(job.owner);
    // It asks for its next short job once it has had the one before.
    if (turn === 0 || job.owner === 'light') shares.add('light', { owner: 'light', ms: 100 });
    shares.spend(job.owner, job.ms);
  }
  const heavy = order.filter((owner) => owner === 'heavy').length;
  expect(order.slice(0, 2)).toEqual(['heavy', 'light']);
  expect(order.length - heavy).toBeGreaterThanOrEqual(9 * heavy);
});

test('one that comes late has saved no time up, and what each has had is forgotten when nobody waits', () => {
  const shares = new TimeShares<Job>();
  const add = (owner: string, count: number) => {
    for (let job = 0; job < count; job++) shares.add(owner, { owner, ms: 1_000 });
  };
  const taken = (count: number) =>
    Array.from({ length: count }, () => {
      const { owner, ms } = shares.take() ?? { owner: 'nobody', ms: 0 };
      shares.spend(owner, ms);
      return owner;
    });
  add('heavy', 13);
  expect(new Set(taken(10))).toEqual(new Set(['heavy']));
  add('light', 3);
  expect(taken(6)).toEqual(['light', 'heavy', 'light', 'heavy', 'light', 'heavy']);
  add('heavy', 4);
  expect(taken(4)).toEqual(['heavy', 'heavy', 'heavy', 'heavy']);
  add('heavy', 2);
  add('light', 2);
  expect(taken(4)).toEqual(['heavy', 'light', 'heavy', 'light']);
});

test('jobs of one are taken in their order, each once, and nothing is left', () => {
  const jobs = fc.array(fc.record({ owner: fc.constantFrom('a', 'b', 'c'), ms: fc.nat(100) }), { maxLength: 50 });
  fc.assert(
    fc.property(jobs, (all) => {
      const shares = new TimeShares<Job>();
      for (const job of all) shares.add(job.owner, job);
      const taken: Job[] = [];
      for (let job = shares.take(); job !== undefined; job = shares.take()) {
        taken.push(job);
        shares.spend(job.owner, job.ms);
      }
      expect(shares.isEmpty).toBe(true);
      for (const owner of ['a', 'b', 'c']) {
        const own = (list: readonly Job[]) => list.filter((job) => job.owner === owner);
        expect(own(taken)).toEqual(own(all));
      }
    }),
  );
});
