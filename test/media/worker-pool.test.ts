import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { MEDIA_RESTART_LEAST_MS, MEDIA_RESTARTS_A_MINUTE_MAX } from '../../src/limits.ts';
import { RestartLimit } from '../../src/media/worker/restart-limit.ts';
import { Harness } from './harness.ts';
import { holdsUdpPort } from './held-port.ts';

describe('the limit of restarts', () => {
  test('permits one start a second and five a minute, and always permits one in the end', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 60 }), (waits) => {
        const limit = new RestartLimit();
        const starts: number[] = [];
        let now = 0;
        for (const wait of waits) {
          now += wait;
          if (limit.waitMs(now) > 0) continue;
          limit.started(now);
          starts.push(now);
        }
        for (const [i, at] of starts.entries()) {
          if (i > 0) expect(at - (starts[i - 1] ?? 0)).toBeGreaterThanOrEqual(MEDIA_RESTART_LEAST_MS);
          expect(starts.filter((other) => other > at - 60_000 && other <= at).length).toBeLessThanOrEqual(
            MEDIA_RESTARTS_A_MINUTE_MAX,
          );
        }
        expect(limit.waitMs(now)).toBeLessThanOrEqual(60_000);
        expect(limit.waitMs(now + limit.waitMs(now))).toBe(0);
      }),
    );
  });
});

describe('a media worker that is lost', () => {
  const Real = globalThis.Worker;
  const threads: Worker[] = [];
  beforeEach(() => {
    globalThis.Worker = class extends Real {
      constructor(...given: ConstructorParameters<typeof Real>) {
        super(...given);
        threads.push(this);
      }
    };
  });
  afterEach(() => {
    globalThis.Worker = Real;
    threads.length = 0;
  });

  const descriptors = () => readdirSync('/proc/self/fd').length;
  const until = async (what: () => boolean) => {
    for (const began = performance.now(); !what(); ) {
      if (performance.now() - began > 15_000) throw new Error(`never came: ${what}`);
      await new Promise(setImmediate);
    }
  };

  test('is replaced: its calls are told, its ports and descriptors are free again, and the node is ready by itself', async () => {
    const harness = await Harness.open({ workers: 2, portRestMs: 50 });
    const before = descriptors();
    const workers = threads.filter((_, i) => i < 2); // the decoding thread is the third
    for (let round = 0; round < 2; round++) {
      const calls = await Promise.all(Array.from({ length: 6 }, () => harness.call()));
      for (const call of calls) call.leg.negotiate(call.peer.parameters());
      for (const call of calls) expect(holdsUdpPort(call.leg.port)).toBe(true);
      const ticksBefore = harness.engine.ticks().reduce((sum, load) => sum + load.ticks, 0);
      workers[round]?.terminate();
      await until(() => !harness.engine.ready());
      await until(() => harness.engine.ready());
      const lost = calls.filter((call) => call.notices.of('media.lost').length === 1);
      expect(lost.length).toBe(3);
      expect(harness.engine.load().legs).toBe(3);
      for (const call of lost) await until(() => !holdsUdpPort(call.leg.port)); // The thread may still be ending.
      expect(harness.engine.ticks().reduce((sum, load) => sum + load.ticks, 0)).toBeGreaterThanOrEqual(ticksBefore);
      for (const call of calls) await call[Symbol.asyncDispose]();
      const again = await Promise.all(Array.from({ length: 6 }, () => harness.call()));
      expect(harness.engine.load().legs).toBe(6);
      for (const call of again) await call[Symbol.asyncDispose]();
    }
    await until(() => descriptors() <= before + 2);
    await harness.close();
  }, 30_000);
});
