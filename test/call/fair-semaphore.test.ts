/** Turns that applications share: who is next, who is refused, and that no place is lost. */
import { describe, expect, test } from 'bun:test';
import { FairSemaphore } from '../../src/bounds/fair-semaphore.ts';
import { RoundRobin } from '../../src/bounds/round-robin.ts';
import fc from '../support/fast-check.ts';

const LIMITS = { all: 4, ofApp: 3, reserve: 2, reservedOfApp: 1, waitingOfApp: 3 };
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('turns that applications share', () => {
  test('are taken one application after the other, and by each in its order', () => {
    const waiting = new RoundRobin<number>();
    for (const thing of [1, 2, 3]) waiting.add('a', thing);
    for (const thing of [11, 12]) waiting.add('b', thing);
    waiting.add('a', 1);
    expect([waiting.size, waiting.of('a'), waiting.of('b')]).toEqual([5, 3, 2]);
    expect([waiting.take(), waiting.take((owner) => owner !== 'b'), waiting.take()]).toEqual([1, 2, 11]);
    waiting.add('c', 21);
    waiting.delete('b', 12);
    expect([waiting.take(), waiting.take(), waiting.take(), waiting.size]).toEqual([3, 21, undefined, 0]);
  });

  test('call two where one that ends makes room for two: its own has none left, and may take of the reserve', async () => {
    const semaphore = new FairSemaphore(LIMITS);
    const running: string[] = [];
    const jobs = ['c', 'a', 'a', 'd', 'a', 'c'].map((app) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const job = semaphore.run(app, new AbortController().signal, () => {
        running.push(app);
        return promise;
      });
      return { end: resolve, job };
    });
    await settled();
    expect(running).toEqual(['c', 'a', 'a', 'd']);
    jobs[0]?.end();
    await settled();
    expect(running).toEqual(['c', 'a', 'a', 'd', 'a', 'c']);
    for (const { end } of jobs) end();
    await Promise.all(jobs.map(({ job }) => job));
  });

  test('are not for who is aborted, before or while it waits, and it takes nobody’s place', async () => {
    const semaphore = new FairSemaphore({ ...LIMITS, all: 1, reserve: 0 });
    const { promise, resolve: end } = Promise.withResolvers<string>();
    const never = async () => 'ran';
    expect(await semaphore.run('a', AbortSignal.abort(), never)).toBeUndefined();
    const first = semaphore.run('a', new AbortController().signal, () => promise);
    const abort = new AbortController();
    const waiting = semaphore.run('b', abort.signal, never);
    const next = semaphore.run('c', new AbortController().signal, async () => 'next');
    await settled();
    abort.abort();
    expect(await waiting).toBeUndefined();
    end('first');
    expect([await first, await next]).toEqual(['first', 'next']);
  });

  test('are within their limits in any order, and everything that waits is run, refused or aborted', async () => {
    const act = fc.oneof(
      { weight: 4, arbitrary: fc.record({ act: fc.constant('run' as const), app: fc.constantFrom('a', 'b', 'c', 'd') }) },
      { weight: 3, arbitrary: fc.record({ act: fc.constantFrom('end' as const, 'fail' as const), which: fc.nat(20) }) },
      { weight: 1, arbitrary: fc.record({ act: fc.constant('abort' as const), which: fc.nat(20) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 60 }), async (acts) => {
        const semaphore = new FairSemaphore(LIMITS);
        const running: { readonly app: string; readonly end: (fails: boolean) => void }[] = [];
        const aborts: AbortController[] = [];
        const jobs: Promise<unknown>[] = [];
        const waiting = new Map<string, number>();
        const add = (app: string, by: number) => waiting.set(app, (waiting.get(app) ?? 0) + by);
        for (const each of acts) {
          if (each.act === 'run') {
            const { app } = each;
            const abort = new AbortController();
            aborts.push(abort);
            add(app, 1);
            let ran = false;
            const job = semaphore.run(app, abort.signal, async () => {
              ran = true;
              add(app, -1);
              const { promise, resolve, reject } = Promise.withResolvers<string>();
              const mine = { app, end: (fails: boolean) => (fails ? reject(new Error('failed')) : resolve('done')) };
              running.push(mine);
              return await promise.finally(() => running.splice(running.indexOf(mine), 1));
            });
            jobs.push(job.catch(String).finally(() => ran || add(app, -1)));
          } else if (each.act === 'abort') aborts[each.which % aborts.length]?.abort();
          else running[each.which % running.length]?.end(each.act === 'fail');
          await settled();
          const own = (app: string) => running.filter((job) => job.app === app).length;
          expect(running.length).toBeLessThanOrEqual(LIMITS.all + LIMITS.reserve);
          for (const [app, count] of waiting) {
            expect(own(app)).toBeLessThanOrEqual(LIMITS.ofApp);
            expect(count).toBeLessThanOrEqual(LIMITS.waitingOfApp);
            // Nobody waits while there is a place for it.
            if (count > 0) expect(own(app) === LIMITS.ofApp || running.length >= LIMITS.all).toBe(true);
            if (count > 0 && own(app) === 0) expect(running.length).toBe(LIMITS.all + LIMITS.reserve);
          }
        }
        while (running.length > 0) {
          running[0]?.end(false);
          await settled();
        }
        await Promise.all(jobs);
        expect([...waiting.values()].every((count) => count === 0)).toBe(true);
        expect(await semaphore.run('e', new AbortController().signal, async () => 'free')).toBe('free');
      }),
      { numRuns: 60 },
    );
  });
});
