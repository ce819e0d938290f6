import { describe, expect, test } from 'bun:test';
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { silentLog } from '../../src/log.ts';
import { PortPool } from '../../src/media/leg/port-pool.ts';
import { createMediaEngine } from '../../src/media/media-engine.ts';
import { native } from '../../src/media/native.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';
import fc from '../support/fast-check.ts';
import { Harness } from './harness.ts';
import { holdsUdpPort } from './held-port.ts';

describe('the ports of a node', () => {
  test('are even, in use once, rest after use, and rest less only while no other is free', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(
          fc.record({
            take: fc.boolean(),
            wait: fc.integer({ min: 0, max: 40_000 }),
            drawn: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
          }),
          {
            maxLength: 200,
          },
        ),
        (pairs, steps) => {
          let drawn = 0;
          const pool = new PortPool({
            firstPort: 20_001,
            lastPort: 20_001 + 2 * pairs,
            restMs: 60_000,
            leastRestMs: 2_000,
            random: (below) => Math.floor(drawn * below),
          });
          const used: number[] = [];
          const freedAt = new Map<number, number>();
          let now = 0;
          const resting = (ms: number) => [...freedAt].filter(([, at]) => now - at < ms);
          for (const step of steps) {
            now += step.wait;
            drawn = step.drawn;
            const free = pairs - used.length - resting(60_000).length;
            const couldServe = pairs - used.length - resting(2_000).length;
            expect(pool.free(now)).toBe(couldServe);
            if (!step.take) {
              const port = used.shift();
              if (port === undefined) continue;
              pool.release(port, now);
              freedAt.set(port, now);
              continue;
            }
            const port = pool.take(now);
            expect(port !== undefined).toBe(couldServe > 0);
            if (port === undefined) continue;
            expect(port % 2).toBe(0);
            expect(used).not.toContain(port);
            const at = freedAt.get(port);
            if (free > 0 && at !== undefined) expect(now - at).toBeGreaterThanOrEqual(60_000);
            if (free === 0) expect(at).toBe(Math.min(...freedAt.values())); // the one that rested longest
            freedAt.delete(port);
            used.push(port);
          }
        },
      ),
    );
  });

  test('are all within the range, each with the one above it', () => {
    const portsOf = (firstPort: number, lastPort: number) => {
      const pool = new PortPool({ firstPort, lastPort, restMs: 1, leastRestMs: 1, random: () => 0 });
      return Array.from({ length: pool.size }, () => pool.take(0)).toSorted();
    };
    expect([portsOf(20_000, 20_003), portsOf(20_001, 20_004), portsOf(20_000, 20_000)]).toEqual([[20_000, 20_002], [20_002], []]);
  });

  test('are given back and taken again without end', () => {
    const pool = new PortPool({ firstPort: 20_000, lastPort: 20_005, restMs: 2, leastRestMs: 1, random: () => 0 });
    for (let now = 0; now < 10_000; now++) {
      const port = pool.take(now);
      expect(port).toBeDefined();
      if (port !== undefined) pool.release(port, now);
      expect(pool.free(now + 2)).toBe(3);
    }
  });

  test('are drawn at random: the ports of the calls so far do not tell the next one', () => {
    const pairs = 5_000;
    const pool = new PortPool({ firstPort: 20_000, lastPort: 29_999, restMs: 60_000, leastRestMs: 2_000, random: randomInt });
    let guessed = 0;
    const ports: number[] = [];
    for (let i = 0; i < 1_000; i++) {
      const port = pool.take(0) ?? 0;
      const last = ports.at(-1) ?? 0;
      if (Math.abs(port - last) <= 20) guessed++; // a spray of the ten pairs on either side of the last one
      ports.push(port);
    }
    expect(new Set(ports).size).toBe(1_000);
    expect(guessed).toBeLessThan(20); // by chance 1,000 times 20 in 5,000 is 4
    for (const half of [0, 1]) {
      const within = ports.filter((port) => Math.floor((port - 20_000) / pairs) === half).length;
      expect(within).toBeGreaterThan(400);
    }
  });

  test('used up, openRtpLeg says so; freed, they come back after their rest', async () => {
    const harness = await Harness.open({ ports: 2, portRestMs: 300 });
    const one = await harness.engine.openRtpLeg(() => {});
    const two = await harness.engine.openRtpLeg(() => {});
    if (one === undefined || two === undefined) throw new Error('no ports');
    expect(await harness.engine.openRtpLeg(() => {})).toBeUndefined();
    expect(harness.engine.load()).toEqual({ legs: 2, ports: 2, portsFree: 0 });
    await one.close();
    expect(harness.engine.load()).toEqual({ legs: 1, ports: 2, portsFree: 0 });
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

  test('that cannot be bound for want of an address are told once in a minute, not once a call', async () => {
    const said: unknown[] = [];
    const engine = await createMediaEngine({
      rtp: { host: '127.0.0.1', firstPort: 15_000, lastPort: 15_019 },
      workers: 1,
      mediaTimeoutSec: 30,
      outbound: createOutbound([]),
      log: { ...silentLog, error: (fields, message) => said.push([fields.errno, message]) },
    });
    const pipe = { atOnce: false, notify: () => {}, onSilent: () => {} };
    for (let n = 0; n < 5; n++) expect(await engine.openPipe({ host: '192.0.2.250', ...pipe })).toBeUndefined();
    expect(said).toEqual([[99, 'an RTP port could not be bound']]);
    await engine.close();
  });
});

describe('the pool of workers', () => {
  test('spreads legs evenly, is ready while it ticks, and closes without leaving a thread or a port', async () => {
    const harness = await Harness.open({ workers: 3 });
    expect(harness.engine.ready()).toBe(true);
    const legs = await Promise.all(Array.from({ length: 9 }, () => harness.engine.openRtpLeg(() => {})));
    expect(new Set(legs.map((leg) => leg?.port)).size).toBe(9);
    const port = legs[0]?.port ?? 0;
    expect(holdsUdpPort(port)).toBe(true);
    await harness.close();
    expect(harness.engine.ready()).toBe(false);
    expect(harness.engine.load().legs).toBe(0);
    expect(holdsUdpPort(port)).toBe(false);
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
    expect(native.legClose(a, 1, new Uint32Array(10))).toBe(false); // the leg of that number lives in another environment
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
      // What sleeps is not for random arguments; what takes none throws at none.
      if (
        [
          'planeCreate',
          'planeFrames',
          'inboxOpen',
          'inboxClose',
          'inboxClear',
          'inboxPause',
          'webrtcSupported',
          'opusSupported',
          'aacAvailable',
          'aacCreate',
          'mpegCreate',
        ].includes(name)
      )
        continue;
      expect(() => Reflect.apply(call, undefined, [])).toThrow(TypeError);
      for (const first of wrong) {
        if (first === plane && (name === 'planeDestroy' || name === 'planeNumber' || name === 'planePriority')) continue;
        for (const second of wrong) {
          expect(() => Reflect.apply(call, undefined, [first, second, second, second, second, first, first])).toThrow(TypeError);
        }
      }
    }
    const none = new Uint8Array();
    /** Agrees on audio with a leg that is not there; `wrong` are the arguments that are no good. */
    const negotiate = (wrong: {
      host?: string;
      port?: number;
      codec?: number;
      own?: number;
      first?: number;
      suite?: number;
      key?: Uint8Array;
    }) => {
      const { host = '127.0.0.1', port = 1, codec = 0, own = -1, first = -1, suite = 0, key = none } = wrong;
      const ways = [true, true, false, false, false] as const;
      const numbersAndKeys = [first, 0, suite, key, key] as const;
      return native.legNegotiate(plane, 1, host, port, 2, codec, 0, -1, 8000, -1, own, 20, 0, ...ways, '', ...numbersAndKeys);
    };
    for (const wrong of [
      { codec: 7 },
      { host: 'localhost' },
      { port: 70_000 },
      { suite: 1, key: new Uint8Array(29) },
      { suite: 5 },
      { own: 128 },
      { first: -2 },
      { first: 65_536 },
    ])
      expect(() => negotiate(wrong)).toThrow(TypeError);
    expect(negotiate({ own: 127 })).toBe(false);
    native.planeDestroy(plane);
    expect(() => native.planeNumber(plane)).toThrow(TypeError);
  });

  test('an order for a plane that has ended is written to no file that has its descriptor since', () => {
    const plane = native.planeCreate(1000);
    const number = native.planeNumber(plane);
    expect(native.wake(number)).toBe(true);
    native.planeDestroy(plane);
    const path = join(mkdtempSync(join(tmpdir(), 'wake-')), 'other');
    const descriptors = Array.from({ length: 12 }, () => openSync(path, 'w')); // the least that are free, its own with them
    expect(native.wake(number)).toBe(false);
    for (const descriptor of descriptors) closeSync(descriptor);
    expect(statSync(path).size).toBe(0);
    rmSync(dirname(path), { recursive: true });
  });
});
