import { describe, expect, test } from 'bun:test';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import fc from 'fast-check';
import { silentLog } from '../../src/log.ts';
import { PortPool } from '../../src/media/leg/port-pool.ts';
import { createMediaEngine } from '../../src/media/media-engine.ts';
import { native } from '../../src/media/native.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';
import { Harness } from './harness.ts';

describe('the ports of a node', () => {
  test('are even, in use once, and rest after use', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.record({ take: fc.boolean(), wait: fc.integer({ min: 0, max: 40_000 }) }), { maxLength: 200 }),
        (pairs, steps) => {
          const pool = new PortPool(20_001, 20_001 + 2 * pairs, 60_000);
          const used: number[] = [];
          const freedAt = new Map<number, number>();
          let now = 0;
          for (const { take, wait } of steps) {
            now += wait;
            if (take) {
              const port = pool.take(now);
              const rested = [...freedAt.values()].filter((at) => at + 60_000 <= now).length;
              const untouched = pairs - used.length - freedAt.size;
              if (port === undefined) {
                expect(rested + untouched).toBe(0);
                continue;
              }
              expect(port % 2).toBe(0);
              expect(used).not.toContain(port);
              const at = freedAt.get(port);
              if (at !== undefined) expect(now - at).toBeGreaterThanOrEqual(60_000);
              freedAt.delete(port);
              used.push(port);
            } else {
              const port = used.shift();
              if (port === undefined) continue;
              pool.release(port, now);
              freedAt.set(port, now);
            }
            expect(pool.free(now)).toBe(pairs - used.length - [...freedAt.values()].filter((at) => at + 60_000 > now).length);
          }
        },
      ),
    );
  });

  test('used up, openRtpLeg says so; freed, they come back after their rest', async () => {
    const harness = await Harness.open({ ports: 2, portRestMs: 300 });
    const one = await harness.engine.openRtpLeg(() => {});
    const two = await harness.engine.openRtpLeg(() => {});
    if (one === undefined || two === undefined) throw new Error('no ports');
    expect(await harness.engine.openRtpLeg(() => {})).toBeUndefined();
    expect(harness.engine.load()).toEqual({ legs: 2, portsFree: 0 });
    await one.close();
    expect(harness.engine.load()).toEqual({ legs: 1, portsFree: 0 });
    expect(await harness.engine.openRtpLeg(() => {})).toBeUndefined();
    const before = performance.now();
    while (harness.engine.load().portsFree === 0 && performance.now() - before < 5_000) await new Promise(setImmediate);
    const again = await harness.engine.openRtpLeg(() => {});
    expect(again?.port).toBe(one.port);
    await harness.close();
  });

  test('that another process holds are passed over', async () => {
    const taken = createSocket('udp4');
    taken.bind(0, '127.0.0.1');
    await once(taken, 'listening');
    const held = taken.address().port;
    const engine = await createMediaEngine({
      rtp: { host: '127.0.0.1', firstPort: held & ~1, lastPort: (held & ~1) + 9 },
      workers: 1,
      mediaTimeoutSec: 30,
      outbound: createOutbound([]),
      log: silentLog,
    });
    const leg = await engine.openRtpLeg(() => {});
    expect(leg?.port).toBeGreaterThan(held);
    expect((leg?.port ?? 1) % 2).toBe(0);
    await engine.close();
    taken.close();
  });
});

describe('the pool of workers', () => {
  test('spreads legs evenly, is ready while it ticks, and closes without leaving a thread or a port', async () => {
    const harness = await Harness.open({ workers: 3 });
    expect(harness.engine.ready()).toBe(true);
    const legs = await Promise.all(Array.from({ length: 9 }, () => harness.engine.openRtpLeg(() => {})));
    expect(new Set(legs.map((leg) => leg?.port)).size).toBe(9);
    const port = legs[0]?.port ?? 0;
    await harness.close();
    expect(harness.engine.ready()).toBe(false);
    expect(harness.engine.load().legs).toBe(0);
    const probe = createSocket('udp4');
    probe.bind(port, '127.0.0.1');
    await once(probe, 'listening'); // the port is free again
    probe.close();
    expect(await harness.engine.openRtpLeg(() => {})).toBeUndefined();
  });

  test('refuses a host that is no address', async () => {
    const refused = createMediaEngine({
      rtp: { host: 'localhost', firstPort: 1, lastPort: 2 },
      workers: 1,
      mediaTimeoutSec: 30,
      outbound: createOutbound([]),
      log: silentLog,
    });
    await expect(refused).rejects.toThrow('no address');
  });

  test('lets a process end by itself once closed', async () => {
    const program = `
      import { createMediaEngine } from './src/media/media-engine.ts';
      import { createOutbound } from './src/outbound/safe-fetch.ts';
      import { silentLog } from './src/log.ts';
      const engine = await createMediaEngine({ rtp: { host: '127.0.0.1', firstPort: 29000, lastPort: 29999 }, workers: 2,
        mediaTimeoutSec: 30, outbound: createOutbound([]), log: silentLog });
      const leg = await engine.openRtpLeg(() => {});
      if (leg === undefined) throw new Error('no leg');
      await engine.close();
      console.log('closed');`;
    const child = Bun.spawn([process.execPath, '-e', program], {
      cwd: `${import.meta.dir}/../..`,
      stdout: 'pipe',
      stderr: 'pipe',
      timeout: 20_000,
    });
    expect(await child.exited).toBe(0);
    expect(await new Response(child.stdout).text()).toBe('closed\n');
    expect(await new Response(child.stderr).text()).toBe('');
  });
});

describe('the addon', () => {
  test('is loaded by the main thread and by every worker at once, each with its own state', async () => {
    const a = native.planeCreate(1000);
    const harness = await Harness.open({ workers: 2 });
    const leg = await harness.engine.openRtpLeg(() => {});
    expect(native.legClose(a, 1, new Uint32Array(8))).toBe(false); // the leg of that number lives in another environment
    expect(leg).toBeDefined();
    await harness.close();
    native.planeDestroy(a);
  });

  test('throws on bad arguments and never crashes', () => {
    const plane = native.planeCreate(1000);
    const wrong: unknown[] = [
      undefined,
      null,
      -1,
      1.5e300,
      Number.NaN,
      '',
      {},
      [],
      new Uint8Array(1),
      'x'.repeat(1000),
      plane,
      () => {},
    ];
    for (const [name, call] of Object.entries(native)) {
      // What sleeps, or touches a file descriptor that a number names, is not for random arguments.
      if (['wake', 'planeCreate', 'wavProbe', 'planeFrames', 'inboxOpen', 'inboxClose', 'inboxClear'].includes(name)) continue;
      expect(() => Reflect.apply(call, undefined, [])).toThrow(TypeError);
      for (const first of wrong) {
        if (
          first === plane &&
          (name === 'planeDestroy' || name === 'planeWakeFd' || name === 'planeNumber' || name === 'planePriority')
        )
          continue;
        for (const second of wrong) {
          expect(() => Reflect.apply(call, undefined, [first, second, second, second, second, first, first])).toThrow(TypeError);
        }
      }
    }
    expect(() => native.legNegotiate(plane, 1, '127.0.0.1', 1, 2, 3, 0, 101, 20, true, true)).toThrow(TypeError);
    expect(() => native.legNegotiate(plane, 1, 'localhost', 1, 2, 0, 0, 101, 20, true, true)).toThrow(TypeError);
    expect(() => native.legNegotiate(plane, 1, '127.0.0.1', 70_000, 2, 0, 0, 101, 20, true, true)).toThrow(TypeError);
    expect(native.legNegotiate(plane, 1, '127.0.0.1', 1, 2, 0, 0, -1, 20, true, true)).toBe(false);
    native.planeDestroy(plane);
    expect(() => native.planeWakeFd(plane)).toThrow(TypeError);
  });
});
