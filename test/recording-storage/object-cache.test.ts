import { afterEach, describe, expect, test } from 'bun:test';
import { link, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { ObjectCache } from '../../src/recording-storage/cache/object-cache.ts';
import { RecordingFolder } from '../../src/recording-storage/file/recording-folder.ts';
import type { Slices } from '../../src/recording-storage/slices.ts';
import { STORAGE_LIMITS, type StorageLimits } from '../../src/recording-storage/storage-limits.ts';
import fc from '../support/fast-check.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { cached, exists, nextUuid, Place, SMALL, spooled, until } from './harness.ts';
import { samples, writeWav } from './wav.ts';

const KB = 1_000;
const DATA = KB - 44;
const place = new Place();
const open: ObjectCache[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((cache) => cache.close()));
  await place.clear();
});

/** A cache over a folder, with room for four recordings of 1,000 bytes unless told otherwise. */
async function cacheOver(dataDir: string, limits: Partial<StorageLimits> = {}, clock = systemClock()) {
  const folder = await RecordingFolder.make(dataDir);
  const all: Record<keyof StorageLimits, number> = {
    ...STORAGE_LIMITS,
    ...SMALL,
    sweepMs: 1e9,
    cacheHoldMs: 0,
    cacheMaxBytes: 4 * KB,
    ...limits,
  };
  const cache = await ObjectCache.make({ folder, clock, log: silentLog, limits: all });
  open.push(cache);
  const kept = async (uuid = nextUuid(), dataBytes = DATA): Promise<string> => {
    await writeWav(folder.wav(uuid), dataBytes);
    await cache.keep(uuid);
    return uuid;
  };
  const here = async (uuids: readonly string[]) =>
    (await Promise.all(uuids.map(async (uuid) => ((await cache.sizeOf(uuid)) === undefined ? [] : [uuid])))).flat();
  return { cache, folder, kept, here, limits: all };
}

/** An object of so many bytes, which counts how often it is fetched. */
function objectOf(bytes: number, meddle: (slice: number) => unknown = () => undefined, appUuid = 'app') {
  const content = samples(bytes);
  const counted = { fetched: 0, closed: 0, now: 0, most: 0 };
  const object = (): Slices => {
    counted.fetched++;
    counted.most = Math.max(counted.most, ++counted.now);
    let at = 0;
    let over = false;
    return {
      async next() {
        const slice = content.subarray(at * 256, (at + 1) * 256);
        await meddle(at++);
        if (over) throw new Error('closed');
        return slice.length === 0 ? undefined : slice;
      },
      async close() {
        if (!over) counted.now--;
        over = true;
        counted.closed++;
      },
    };
  };
  return { source: { bytes, appUuid, object }, content, counted };
}
const never = { appUuid: 'app', object: (): Slices => expect.unreachable('the object is not fetched') };

describe('a recording that is uploaded', () => {
  test('stays as a file of the cache, which only its owner reads, and leaves the spool', async () => {
    const dataDir = await place.folder();
    const { cache, kept, folder } = await cacheOver(dataDir);
    const uuid = await kept();
    expect(await spooled(dataDir)).toEqual([]);
    expect(await cache.sizeOf(uuid)).toBe(KB);
    const path = await cache.hold(uuid, { bytes: KB, ...never });
    expect(path).toStartWith(join(folder.cache, `${uuid}.`));
    expect((await readFile(path ?? '')).subarray(44).equals(samples(DATA))).toBe(true);
    expect((await stat(folder.cache)).mode & 0o777).toBe(0o700);
  });

  test('makes room by the least recently used, in their order, and none of them comes back', async () => {
    const { cache, kept, here } = await cacheOver(await place.folder());
    const [a, b, c, d] = [await kept(), await kept(), await kept(), await kept()];
    await cache.hold(a, { bytes: KB, ...never });
    const e = await kept();
    expect(await here([a, b, c, d, e])).toEqual([a, c, d, e]);
    const f = await kept(nextUuid(), 2 * KB - 44);
    expect(await here([a, b, c, d, e, f])).toEqual([a, e, f]);
  });

  test('of any sizes and in any order keeps the cache within its bounds, and what is in it exact', async () => {
    const step = fc.tuple(fc.constantFrom('keep', 'fetch', 'hold', 'remove'), fc.nat(5), fc.integer({ min: 1, max: 12 }));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const dataDir = await place.folder();
        const limits = { cacheMaxFiles: 3, cacheFetchMaxBytes: 3 * KB };
        const { cache, kept, here } = await cacheOver(dataDir, limits);
        const sizes = new Map<number, number>();
        const names = Array.from({ length: 6 }, nextUuid);
        for (const [what, which, quarters] of steps) {
          const uuid = names[which] ?? '';
          const bytes = sizes.get(which) ?? quarters * 500;
          sizes.set(which, bytes);
          if (what === 'keep') await kept(uuid, bytes - 44);
          else if (what === 'remove') await cache.without(uuid, async () => {});
          else {
            const path = await cache.hold(uuid, objectOf(bytes).source);
            if (path !== undefined) expect((await stat(path)).size).toBe(bytes);
          }
          const files = await cached(dataDir);
          const total = await Promise.all(files.map(async (name) => (await stat(join(dataDir, 'recordings/cache', name))).size));
          expect(files.length).toBeLessThanOrEqual(3);
          expect(total.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(4 * KB);
        }
        // Whatever came before, there is room for one more.
        const last = nextUuid();
        await cache.hold(last, objectOf(3 * KB).source);
        expect(await here([last])).toEqual([last]);
      }),
      { numRuns: 25 },
    );
  });

  test('and is larger than all of the cache, or comes while the disk is full, is not kept and harms no other', async () => {
    const dataDir = await place.folder();
    const { kept, here } = await cacheOver(dataDir);
    const [a, large] = [await kept(), await kept(nextUuid(), 5 * KB)];
    expect(await here([a, large])).toEqual([a]);
    expect(await spooled(dataDir)).toEqual([]);
    const full = await cacheOver(await place.folder(), { cacheDiskFreeMinBytes: Number.MAX_SAFE_INTEGER });
    expect(await full.here([await full.kept(), await full.kept()])).toEqual([]);
    expect(await full.cache.hold(nextUuid(), objectOf(500).source)).toBeUndefined();
  });

  test('and is larger than all of the cache goes as well where it is asked for at that moment', async () => {
    const dataDir = await place.folder();
    const { cache, folder } = await cacheOver(dataDir);
    for (let round = 0; round < 25; round++) {
      const uuid = nextUuid();
      await writeWav(folder.wav(uuid), 5 * KB - 44);
      await Promise.all([cache.keep(uuid), cache.hold(uuid, objectOf(5 * KB).source)]);
    }
    await cache.settle();
    expect(await spooled(dataDir)).toEqual([]);
    expect(await cached(dataDir)).toEqual([]);
  });

  test('gives way by itself when others have filled the disk, but not before it can have been opened', async () => {
    const clock = new VirtualClock();
    const dataDir = await place.folder();
    const { cache, kept, here, limits } = await cacheOver(dataDir, { cacheHoldMs: 5_000, sweepMs: 10_000 }, clock);
    const [a, b, c] = [await kept(), await kept(), await kept()];
    await clock.advance(9_000);
    await cache.hold(b, { bytes: KB, ...never });
    limits.cacheDiskFreeMinBytes = Number.MAX_SAFE_INTEGER;
    await clock.advance(1_000);
    await until(async () => (await cached(dataDir)).length === 1);
    expect(await here([a, b, c])).toEqual([b]);
    await clock.advance(10_000);
    await until(async () => (await cached(dataDir)).length === 0);
  });

  test('whose folder cannot be written to leaves the spool all the same', async () => {
    const dataDir = await place.folder();
    const { kept, here, folder } = await cacheOver(dataDir);
    await rm(folder.cache, { recursive: true });
    expect(await here([await kept()])).toEqual([]);
    expect(await spooled(dataDir)).toEqual([]);
  });
});

describe('a recording that waits in the spool', () => {
  test('is a file of the cache as soon as someone asks for it, without a copy, and counts when the spool lets it go', async () => {
    const dataDir = await place.folder();
    const { cache, folder, kept, here } = await cacheOver(dataDir);
    const others = [await kept(), await kept(), await kept(), await kept()];
    const uuid = nextUuid();
    await writeWav(folder.wav(uuid), DATA);
    const [path, again] = await Promise.all([1, 2].map(() => cache.hold(uuid, { bytes: KB, ...never })));
    expect(path).toBe(again ?? 'none');
    expect((await stat(path ?? '')).ino).toBe((await stat(folder.wav(uuid))).ino);
    expect(await here(others)).toEqual(others);
    await cache.keep(uuid);
    expect(await exists(folder.wav(uuid))).toBe(false);
    expect(await here([...others, uuid])).toEqual([...others.slice(1), uuid]);
    expect(await exists(path ?? '')).toBe(true);
  });

  test('and is larger than the cache is sent from its file too, which goes once nobody can be about to open it', async () => {
    const clock = new VirtualClock();
    const { cache, folder, kept, here } = await cacheOver(await place.folder(), { cacheHoldMs: 5_000 }, clock);
    const [other, large] = [await kept(), nextUuid()];
    await writeWav(folder.wav(large), 9 * KB - 44);
    const path = await cache.hold(large, { bytes: 9 * KB, ...never });
    await cache.keep(large);
    expect(await exists(path ?? '')).toBe(true);
    await clock.advance(5_001);
    await cache.settle();
    expect(await exists(path ?? '')).toBe(false);
    expect(await here([other, large])).toEqual([other]);
  });

  test('is uploaded and asked for in the same moment, and is one file in the end', async () => {
    const dataDir = await place.folder();
    const { cache, folder } = await cacheOver(dataDir, { cacheMaxBytes: 100 * KB });
    for (let round = 0; round < 30; round++) {
      const uuid = nextUuid();
      await writeWav(folder.wav(uuid), DATA);
      const asked = Array.from({ length: 3 }, () => cache.hold(uuid, { bytes: KB, ...never }));
      await Promise.all([...asked, cache.keep(uuid)]);
      for (const path of await Promise.all(asked)) expect((await stat(path ?? '')).size).toBe(KB);
      await until(async () => (await cached(dataDir)).length === round + 1);
    }
    expect(await spooled(dataDir)).toEqual([]);
  });
});

describe('a recording that is in the store only', () => {
  test('is fetched once, however many ask for it at once, and is then there', async () => {
    const { cache } = await cacheOver(await place.folder());
    const { source, content, counted } = objectOf(3 * KB);
    const uuid = nextUuid();
    const paths = await Promise.all(Array.from({ length: 20 }, () => cache.hold(uuid, source)));
    expect(new Set(paths).size).toBe(1);
    expect((await readFile(paths[0] ?? '')).equals(content)).toBe(true);
    expect((await stat(paths[0] ?? '')).mode & 0o777).toBe(0o600);
    expect(await cache.hold(uuid, source)).toBe(paths[0] ?? 'none');
    expect(counted).toEqual({ fetched: 1, closed: 1, now: 0, most: 1 });
  });

  test('and breaks off, or is not as long as was told, leaves nothing, and may be asked for again', async () => {
    const dataDir = await place.folder();
    const { cache } = await cacheOver(dataDir);
    const broken = objectOf(2 * KB, (slice) => {
      if (slice === 3) throw new Error('gone');
    });
    const uuid = nextUuid();
    expect(await cache.hold(uuid, broken.source)).toBeUndefined();
    for (const off of [-1, 1]) {
      const { source } = objectOf(2 * KB);
      expect(await cache.hold(uuid, { ...source, bytes: 2 * KB + off })).toBeUndefined();
    }
    expect(await cached(dataDir)).toEqual([]);
    expect(broken.counted).toEqual({ fetched: 1, closed: 1, now: 0, most: 1 });
    expect(await cache.hold(uuid, objectOf(2 * KB).source)).toBeDefined();
  });

  test('and is too large is not fetched', async () => {
    const { cache } = await cacheOver(await place.folder(), { cacheFetchMaxBytes: KB });
    expect(await cache.hold(nextUuid(), { bytes: KB + 1, ...never })).toBeUndefined();
    expect(await cache.hold(nextUuid(), objectOf(KB).source)).toBeDefined();
  });

  test('waits for its turn: only so many are fetched at once, only so many wait, and the others are not fetched', async () => {
    const gate = Promise.withResolvers<void>();
    const { source, counted } = objectOf(300, () => gate.promise);
    const limits = { cacheFetches: 2, cacheFetchesWaiting: 3 };
    const { cache } = await cacheOver(await place.folder(), limits);
    const asked = Array.from({ length: 8 }, () => cache.hold(nextUuid(), source));
    await until(() => counted.fetched === 2);
    const refused = await Promise.race(asked);
    expect(refused).toBeUndefined();
    gate.resolve();
    expect((await Promise.all(asked)).filter((path) => path !== undefined)).toHaveLength(5);
    expect(counted).toEqual({ fetched: 5, closed: 5, now: 0, most: 2 });
  });

  test('is fetched in the turn of its application: one that asks for many leaves the others theirs', async () => {
    const limits = { cacheFetches: 2, cacheFetchesReserve: 1, cacheFetchesWaiting: 3, cacheMaxBytes: 100 * KB };
    const { cache } = await cacheOver(await place.folder(), limits);
    const gate = Promise.withResolvers<void>();
    const begun: string[] = [];
    let refused = 0;
    const ask = async (appUuid: string) => {
      const { source } = objectOf(300, () => gate.promise, appUuid);
      const object = () => {
        begun.push(appUuid);
        return source.object();
      };
      const path = await cache.hold(nextUuid(), { ...source, object });
      if (path === undefined) refused++;
      return path;
    };
    const many = Array.from({ length: 8 }, () => ask('a'));
    // Two run, three wait, and the rest is refused.
    await until(() => begun.length === 2 && refused === 3);
    // An application that has none under way finds a place in reserve at once; a third one waits, but for one end only.
    const few = [ask('b')];
    await until(() => begun.length === 3);
    few.push(ask('c'), ask('b'));
    gate.resolve();
    await Promise.all([...few, ...many]);
    expect([begun.length, refused]).toEqual([8, 3]);
    expect(begun.slice(0, 3)).toEqual(['a', 'a', 'b']);
    expect(begun.slice(3, 6).toSorted()).toEqual(['a', 'b', 'c']);
  });

  test('and is slow is not waited for for ever, and is there for who asks later; one that never ends is given up', async () => {
    const clock = new VirtualClock();
    const gate = Promise.withResolvers<void>();
    const slow = objectOf(KB, (slice) => (slice === 2 ? gate.promise : undefined));
    const dataDir = await place.folder();
    const { cache } = await cacheOver(dataDir, { cacheWaitMs: 10_000, cacheFetchMaxMs: 60_000 }, clock);
    const uuid = nextUuid();
    const asked = cache.hold(uuid, slow.source);
    await until(async () => (await cached(dataDir)).length === 1);
    await clock.advance(10_000);
    expect(await asked).toBeUndefined();
    gate.resolve();
    expect(await cache.hold(uuid, slow.source)).toBeDefined();
    expect(slow.counted.fetched).toBe(1);

    const end = Promise.withResolvers<void>();
    const stuck = objectOf(KB, () => end.promise);
    const given = cache.hold(nextUuid(), stuck.source);
    await until(async () => (await cached(dataDir)).length === 2);
    await clock.advance(60_000);
    expect(stuck.counted.closed).toBe(1);
    end.resolve();
    expect(await given).toBeUndefined();
    await until(async () => (await cached(dataDir)).length === 1);
  });

  test('is given up at the close, which leaves nothing half', async () => {
    const dataDir = await place.folder();
    const gate = Promise.withResolvers<void>();
    const { source, counted } = objectOf(KB, (slice) => (slice === 1 ? gate.promise : undefined));
    const { cache } = await cacheOver(dataDir);
    const asked = cache.hold(nextUuid(), source);
    await until(async () => (await cached(dataDir)).length === 1);
    const closed = cache.close();
    await until(() => counted.closed > 0);
    gate.resolve();
    await closed;
    expect(await asked).toBeUndefined();
    expect(await cached(dataDir)).toEqual([]);
    expect(await cache.hold(nextUuid(), source)).toBeUndefined();
  });
});

describe('a file that is held', () => {
  test('is not evicted for some seconds, whatever comes, and nothing is fetched into its place', async () => {
    const clock = new VirtualClock();
    const { cache, kept, here } = await cacheOver(await place.folder(), { cacheHoldMs: 5_000 }, clock);
    const all = [await kept(), await kept(), await kept(), await kept()];
    for (const uuid of all) await cache.hold(uuid, { bytes: KB, ...never });
    expect(await cache.hold(nextUuid(), { bytes: KB, ...never })).toBeUndefined();
    const late = await kept();
    expect(await here([...all, late])).toEqual(all);
    await clock.advance(5_001);
    const later = await kept();
    expect(await here([...all, later])).toEqual([...all.slice(1), later]);
  });

  test('goes later, by itself, where it was held when it should have gone', async () => {
    const clock = new VirtualClock();
    const limits = { cacheHoldMs: 5_000, sweepMs: 10_000, cacheMaxBytes: KB };
    const dataDir = await place.folder();
    const { cache, folder } = await cacheOver(dataDir, limits, clock);
    const uuids = [nextUuid(), nextUuid()];
    for (const uuid of uuids) {
      await writeWav(folder.wav(uuid), DATA);
      expect(await cache.hold(uuid, { bytes: KB, ...never })).toBeDefined();
      await cache.keep(uuid);
    }
    expect(await cached(dataDir)).toHaveLength(2);
    await clock.advance(10_000);
    await until(async () => (await cached(dataDir)).length === 1);
  });

  test('is removed with its recording, but not before it can have been opened; it is not to be found from the first', async () => {
    const clock = new VirtualClock();
    const { cache, kept } = await cacheOver(await place.folder(), { cacheHoldMs: 5_000 }, clock);
    const uuid = await kept();
    const path = (await cache.hold(uuid, { bytes: KB, ...never })) ?? '';
    let gone = false;
    const removed = cache.without(uuid, async () => {
      gone = true;
      expect(await cache.hold(uuid, { bytes: KB, ...never })).toBeUndefined();
    });
    expect(await cache.sizeOf(uuid)).toBeUndefined();
    expect([await exists(path), gone]).toEqual([true, false]);
    await clock.advance(5_000);
    await removed;
    expect([await exists(path), gone]).toEqual([false, true]);
  });

  test('is not brought back by a download that was under way when its recording was removed', async () => {
    const dataDir = await place.folder();
    const gate = Promise.withResolvers<void>();
    const { source, counted } = objectOf(KB, (slice) => (slice === 1 ? gate.promise : undefined));
    const { cache } = await cacheOver(dataDir);
    const uuid = nextUuid();
    const asked = cache.hold(uuid, source);
    await until(async () => (await cached(dataDir)).length === 1);
    const removed = cache.without(uuid, async () => {});
    await until(() => counted.closed > 0);
    gate.resolve();
    await removed;
    expect(await asked).toBeUndefined();
    expect(await cached(dataDir)).toEqual([]);
  });
});

describe('at the next start', () => {
  test('the cache is taken over, with the order of use; what was half is gone, and what is not ours is left alone', async () => {
    const dataDir = await place.folder();
    const first = await cacheOver(dataDir);
    const all = [await first.kept(), await first.kept(), await first.kept(), await first.kept()];
    const paths = await Promise.all(all.map((uuid) => first.cache.hold(uuid, { bytes: KB, ...never })));
    // Used in this order: 2, 0, 3, 1.
    const used = [20, 40, 10, 30];
    for (const [at, path] of paths.entries()) await utimes(path ?? '', used[at] ?? 0, used[at] ?? 0);
    await first.cache.close();
    const folder = join(dataDir, 'recordings', 'cache');
    await writeFile(join(folder, `${nextUuid()}.0123abcd.new`), 'half');
    await writeFile(join(folder, 'README'), 'not ours');
    const second = await cacheOver(dataDir);
    expect(await second.here(all)).toEqual(all);
    expect(await cached(dataDir)).toHaveLength(5);
    await second.kept();
    await second.kept();
    expect(await second.here(all)).toEqual([all[1] ?? '', all[3] ?? '']);
  });

  test('its bounds hold at once, where they are tighter than they were', async () => {
    const dataDir = await place.folder();
    const first = await cacheOver(dataDir);
    for (let count = 0; count < 4; count++) await first.kept();
    await first.cache.close();
    await cacheOver(dataDir, { cacheMaxFiles: 1 });
    expect(await cached(dataDir)).toHaveLength(1);
  });

  test('a file that a crash has cut is not served, whatever its size', async () => {
    const dataDir = await place.folder();
    const first = await cacheOver(dataDir);
    const [cut, whole] = [await first.kept(), await first.kept()];
    await truncate((await first.cache.hold(cut, { bytes: KB, ...never })) ?? '', 700);
    await first.cache.close();
    const second = await cacheOver(dataDir);
    expect(await second.here([cut, whole])).toEqual([whole]);
    expect(await cached(dataDir)).toHaveLength(1);
  });

  test('what the spool still has counts as the spool’s', async () => {
    const dataDir = await place.folder();
    const first = await cacheOver(dataDir);
    const uuid = nextUuid();
    await writeWav(first.folder.wav(uuid), DATA);
    await first.cache.hold(uuid, { bytes: KB, ...never });
    await first.cache.close();
    const second = await cacheOver(dataDir);
    const others = [await second.kept(), await second.kept(), await second.kept(), await second.kept()];
    expect(await second.here([uuid, ...others])).toEqual([uuid, ...others]);
    await second.cache.keep(uuid);
    expect(await second.here([uuid, ...others])).toEqual(others);
    // A link of someone else, such as a backup, does not make it the spool's.
    const [name = ''] = await cached(dataDir);
    await second.cache.close();
    await link(join(dataDir, 'recordings/cache', name), join(dataDir, 'backup.wav'));
    const third = await cacheOver(dataDir, { cacheMaxBytes: 4 * KB - 1 });
    expect(await third.here(others)).toHaveLength(3);
  });
});

describe('a file that someone has deleted', () => {
  test('is fetched again', async () => {
    const dataDir = await place.folder();
    const { cache, kept } = await cacheOver(dataDir);
    const uuid = await kept();
    const { source, counted } = objectOf(KB);
    await rm((await cache.hold(uuid, source)) ?? '');
    expect(await cache.sizeOf(uuid)).toBeUndefined();
    expect(await cache.hold(uuid, source)).toBeDefined();
    await rm((await cache.hold(uuid, source)) ?? '');
    expect(await cache.hold(uuid, source)).toBeDefined();
    expect(counted.fetched).toBe(2);
    expect(await cached(dataDir)).toHaveLength(1);
  });
});
