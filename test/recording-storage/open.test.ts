import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { gzipSync } from 'node:zlib';
import { ObjectTurns } from '../../src/recording-storage/s3/object-turns.ts';
import type { RecordingStorage, StoredFile } from '../../src/recording-storage/storage.ts';
import fc from '../support/fast-check.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { Bucket } from './bucket.ts';
import { bytesOf, nextUuid, Place, spooled, until, uploaded } from './harness.ts';
import { writeWav } from './wav.ts';

const PART = 64 * 1024;
let bucket: Bucket;
const place = new Place();
beforeAll(async () => {
  bucket = await Bucket.start();
});
afterEach(async () => {
  bucket.misbehave = () => 'reset';
  await place.clear();
  bucket.clear();
});
afterAll(() => bucket.stop());

describe('a recording that is opened', () => {
  test('is the same from the spool and from the store: size, tag and every range', async () => {
    const storage = await place.storage(bucket.settings('o'), await place.folder());
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 700_000);
    bucket.misbehave = () => ({ status: 503 });
    storage.finished(uuid, 'app');
    const spooled = await storage.open(uuid, 'app');
    expect(await bytesOf(spooled)).toEqual(whole);
    bucket.misbehave = () => undefined;
    await uploaded(storage);
    const stored = await storage.open(uuid, 'app');
    expect({ bytes: stored?.bytes, etag: stored?.etag }).toEqual({ bytes: spooled?.bytes, etag: spooled?.etag });
    expect(stored?.etag).not.toContain('"');
    expect((await bytesOf(stored)).equals(whole)).toBe(true);
    const range = fc.tuple(fc.nat(whole.length), fc.nat(whole.length)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
    await fc.assert(
      fc.asyncProperty(range, async ([start, end]) => {
        expect((await bytesOf(stored, start, end)).equals(whole.subarray(start, end))).toBe(true);
      }),
      { numRuns: 15, examples: [[[0, 1]]] },
    );
  });

  test('and whose spool file goes before it is read comes from the store', async () => {
    const storage = await place.storage(bucket.settings('o'), await place.folder());
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 300_000);
    const [early, begun] = [await storage.open(uuid, 'app'), await storage.open(uuid, 'app')];
    const reader = begun?.read(0, whole.length).getReader();
    const first = await reader?.read();
    storage.finished(uuid, 'app');
    await uploaded(storage);
    expect((await bytesOf(early, 1_000, 290_000)).equals(whole.subarray(1_000, 290_000))).toBe(true);
    // What was begun goes on with the file it has.
    const read = [Buffer.from(first?.value ?? new Uint8Array())];
    for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read())
      read.push(Buffer.from(next.value));
    expect(Buffer.concat(read).equals(whole)).toBe(true);
    expect(bucket.asked(/get/).length).toBe(2);
  });

  test('is fetched only as fast as it is read', async () => {
    const { file, whole } = await stored(6_000_000);
    const reader = file.read(0, whole.length).getReader();
    const first = await reader.read();
    expect(first.value?.byteLength).toBe(256 * 1024);
    await bucket.until(() => bucket.asked(/get/).length === 2);
    const second = await reader.read();
    await bucket.until(() => bucket.asked(/get/).length === 3);
    // Two slices are taken, one is ahead; nobody has asked for more.
    expect((first.value?.byteLength ?? 0) + (second.value?.byteLength ?? 0)).toBe(768 * 1024);
    await reader.cancel();
    expect(bucket.asked(/get/)).toHaveLength(3);
  });

  test('is read on over broken connections and answers of 503', async () => {
    const { file, whole } = await stored(1_000_000);
    let count = 0;
    bucket.misbehave = () => [undefined, 'reset' as const, { status: 503 }][count++ % 3];
    expect((await bytesOf(file)).equals(whole)).toBe(true);
  });

  test('breaks off where the store stays away, and is not opened at all', async () => {
    const { file, open } = await stored(1_000_000);
    bucket.misbehave = () => 'reset';
    await expect(bytesOf(file)).rejects.toThrow('object store: away');
    await expect(open()).rejects.toThrow('object store: away');
    expect(bucket.asked(/head/).length).toBeGreaterThanOrEqual(4);
  });

  test('breaks off where the store does not know ranges, and reads no more than was asked for', async () => {
    const { file } = await stored(600_000);
    bucket.misbehave = ({ what }) => (what === 'get' ? { status: 200, body: 'x'.repeat(100_000) } : undefined);
    await expect(bytesOf(file, 0, 1_000)).rejects.toThrow('no ranges');
    bucket.misbehave = ({ what }) => (what === 'get' ? { status: 206, body: 'x'.repeat(100_000) } : undefined);
    await expect(bytesOf(file, 0, 1_000)).rejects.toThrow('other length');
    bucket.misbehave = ({ what }) => (what === 'get' ? { status: 206, body: 'x' } : undefined);
    await expect(bytesOf(file, 0, 1_000)).rejects.toThrow('other length');
  });

  test('breaks off where the store sends another range of it', async () => {
    const { file } = await stored(600_000);
    const answer = (range: string) => {
      bucket.misbehave = ({ what }) => (what === 'get' ? { status: 206, body: 'x'.repeat(1_000), range } : undefined);
    };
    answer('bytes 1000-1999/600000');
    await expect(bytesOf(file, 0, 1_000)).rejects.toThrow('other range');
    answer('bytes 0-999/600000');
    expect((await bytesOf(file, 0, 1_000)).length).toBe(1_000);
  });

  test('breaks off where the store packs what it sends, and unpacks nothing of it', async () => {
    const { file } = await stored(600_000);
    const packed = gzipSync(Buffer.alloc(100_000_000));
    bucket.misbehave = ({ what }) => (what === 'get' ? { status: 206, body: packed, coding: 'gzip' } : undefined);
    await expect(bytesOf(file, 0, packed.length)).rejects.toThrow('other coding');
    expect(bucket.asked(/get/)).toHaveLength(1);
  });

  test('that nobody has is none; with the bucket gone nobody can tell', async () => {
    const storage = await place.storage(bucket.settings('o'), await place.folder());
    expect(await storage.open(nextUuid(), 'app')).toBeUndefined();
    expect(await storage.open('../x', 'app')).toBeUndefined();
    await bucket.loseBucket();
    try {
      await expect(storage.open(nextUuid(), 'app')).rejects.toThrow('NoSuchBucket');
    } finally {
      await bucket.bringBucketBack();
    }
  });
});

describe('applications that ask a slow store', () => {
  test('leave each other their turns, and the connections of this process to others', async () => {
    const storage = await place.storage(bucket.settings('o'), await place.folder(), { cacheMaxBytes: 0 });
    const [one, other] = [nextUuid(), nextUuid()];
    const whole = await writeWav(storage.path(one), 200_000);
    await writeWav(storage.path(other), 100_000);
    storage.finished(one, 'a');
    storage.finished(other, 'b');
    await uploaded(storage);
    const seen = (what: string) => bucket.seen.filter((each) => each.what === what && each.target.includes(one)).length;
    // Bun sends 256 requests at once: 300 of one application would be all of them.
    for (const [what, atOnce, ask] of [
      ['head', 24, async () => (await storage.open(one, 'a'))?.bytes],
      ['get', 48, async () => (await bytesOf(await storage.open(one, 'a'))).length],
    ] as const) {
      bucket.clear();
      const gate = Promise.withResolvers<undefined>();
      bucket.misbehave = (each) => (each.what === what && each.target.includes(one) ? gate.promise : undefined);
      const many = Array.from({ length: 300 }, ask);
      await until(() => seen(what) === atOnce);
      expect(await bytesOf(await storage.open(other, 'b'))).toHaveLength(100_044);
      expect(await (await fetch(bucket.direct)).text()).toContain('ListAllMyBucketsResult');
      expect(seen(what)).toBe(atOnce);
      gate.resolve(undefined);
      expect(await Promise.all(many)).toEqual(Array.from({ length: 300 }, () => whole.length));
    }
  }, 30_000);

  test('are told so where their turn does not come in time, or too many wait', async () => {
    const clock = new VirtualClock();
    const turns = new ObjectTurns(clock);
    const gate = Promise.withResolvers<string>();
    const looks = Array.from({ length: 24 + 1_000 }, () => turns.look('a', () => gate.promise));
    await expect(turns.look('a', async () => 'looked')).rejects.toThrow('no turn');
    expect(await turns.look('b', async () => 'looked')).toBe('looked');
    const settled = Promise.allSettled(looks);
    await clock.advance(15_000);
    gate.resolve('looked');
    const done = await settled;
    expect(done.filter(({ status }) => status === 'fulfilled')).toHaveLength(24);
    expect(await turns.look('a', async () => 'looked')).toBe('looked');
  });
});

describe('a recording that is removed', () => {
  test('is gone from the store, and removing it again is no error', async () => {
    const storage = await place.storage(bucket.settings('r'), await place.folder());
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 1_000);
    storage.finished(uuid, 'app');
    await uploaded(storage);
    await storage.remove(uuid);
    expect(await bucket.object(`r/${uuid}.wav`)).toBeUndefined();
    expect(await storage.open(uuid, 'app')).toBeUndefined();
    await storage.remove(uuid);
    await storage.remove('../x');
  });

  test('in the middle of its upload is gone here and there, with the parts the store has', async () => {
    const dataDir = await place.folder();
    const storage = await place.storage(bucket.settings('r'), dataDir);
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 5 * PART);
    const before = bucket.uploads;
    let removed: Promise<void> | undefined;
    bucket.misbehave = ({ what }) => {
      if (what === 'part 4') removed ??= storage.remove(uuid);
      return undefined;
    };
    storage.finished(uuid, 'app');
    await until(() => removed !== undefined);
    await removed;
    expect(bucket.asked(/part|abort|delete|complete/)).toEqual(['part 2', 'part 3', 'part 4', 'abort', 'delete']);
    expect(bucket.uploads).toBe(before);
    expect(storage.load()).toEqual({ waiting: 0, waitingBytes: 0 });
    expect(await storage.open(uuid, 'app')).toBeUndefined();
    expect(await spooled(dataDir)).toEqual([]);
  });

  /** A recording whose PUT is under way until `held` is resolved. */
  const beingSent = async (limits: Parameters<typeof place.storage>[2] = {}) => {
    const storage = await place.storage(bucket.settings('r'), await place.folder(), limits);
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), 1_000);
    const held = Promise.withResolvers<undefined>();
    bucket.misbehave = ({ what }) => (what === 'put' ? held.promise : undefined);
    storage.finished(uuid, 'app');
    await until(() => bucket.seen.length === 1);
    return { storage, uuid, whole, held };
  };

  test('while it is being sent is removed after it has arrived', async () => {
    const { storage, uuid, held } = await beingSent();
    const removed = storage.remove(uuid);
    expect(await storage.open(nextUuid(), 'app')).toBeUndefined(); // two requests' time
    expect(bucket.asked(/delete/)).toEqual([]);
    held.resolve(undefined);
    await removed;
    expect(await bucket.object(`r/${uuid}.wav`)).toBeUndefined();
  });

  test('while the store does not answer what it is sent stays as it is, and goes on being sent', async () => {
    const { storage, uuid, whole, held } = await beingSent({ stepWaitMs: 20 });
    await expect(storage.remove(uuid)).rejects.toThrow('object store: away');
    held.resolve(undefined);
    await uploaded(storage);
    expect(await bucket.object(`r/${uuid}.wav`)).toEqual(whole);
    await storage.remove(uuid);
    expect(await bucket.object(`r/${uuid}.wav`)).toBeUndefined();
  });

  test('by two at once is removed for both or for none, as what is being sent may still arrive', async () => {
    const { storage, uuid, held } = await beingSent({ stepWaitMs: 20 });
    const both = () => Promise.allSettled([storage.remove(uuid), storage.remove(uuid)]);
    expect((await both()).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    held.resolve(undefined);
    await uploaded(storage);
    expect((await both()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    expect(await bucket.object(`r/${uuid}.wav`)).toBeUndefined();
  });

  test('is not sent any more meanwhile, though it waited for its turn, and the folder is looked through', async () => {
    // A second one has no place in memory while two are there, and is looked for in the folder when one of them goes.
    const storage = await place.storage(bucket.settings('r'), await place.folder(), { uploads: 1, spoolMaxFiles: 2 });
    const [staying, removed, found] = [nextUuid(), nextUuid(), nextUuid()];
    bucket.misbehave = () => 'reset';
    for (const uuid of [staying, removed, found]) {
      await writeWav(storage.path(uuid), 1_000);
      storage.finished(uuid, 'app');
    }
    const asked = Promise.withResolvers<undefined>();
    bucket.misbehave = ({ what, target }) => {
      if (what === 'delete') return asked.promise;
      return target.includes(staying) ? 'reset' : undefined;
    };
    const puts = (uuid: string) => bucket.seen.filter(({ what, target }) => what === 'put' && target.includes(uuid)).length;
    const removal = storage.remove(removed);
    await bucket.until(() => bucket.asked(/delete/).length === 1);
    const before = puts(removed);
    await bucket.until(() => puts(found) > 0 && bucket.asked(/head/).length > 0);
    const turns = puts(staying);
    await bucket.until(() => puts(staying) >= turns + 5);
    expect(puts(removed)).toBe(before);
    asked.resolve(undefined);
    await removal;
    expect(await bucket.object(`r/${removed}.wav`)).toBeUndefined();
  });

  /** Removes a recording whose file is whole, has it finished meanwhile, and then has the store refuse. */
  const finishedMeanwhile = async (begin: (storage: RecordingStorage, uuid: string) => void) => {
    const storage = await place.storage(bucket.settings('r'), await place.folder(), { sweepMs: 20 });
    const uuid = nextUuid();
    begin(storage, uuid);
    const whole = await writeWav(storage.path(uuid), 1_000);
    const asked = Promise.withResolvers<{ readonly status: number }>();
    bucket.misbehave = ({ what }) => (what === 'delete' ? asked.promise : undefined);
    const removal = storage.remove(uuid);
    await until(() => bucket.asked(/delete/).length === 1);
    storage.finished(uuid, 'app');
    asked.resolve({ status: 403 });
    await expect(removal).rejects.toThrow('object store');
    await until(() => bucket.asked(/head/).length > 0);
    await uploaded(storage);
    expect(await bucket.object(`r/${uuid}.wav`)).toEqual(whole);
  };

  test('and could not be, and has come to its end meanwhile, is sent', async () => {
    await finishedMeanwhile((storage, uuid) => storage.begun(uuid, 'app'));
  });

  test('and could not be, and was found in the folder meanwhile, is sent', async () => {
    await finishedMeanwhile(() => {});
  });

  test('while the store is away stays as it is, in the spool or in the cache, until it can be removed there', async () => {
    const storage = await place.storage(bucket.settings('r'), await place.folder());
    const [here, there] = [nextUuid(), nextUuid()];
    const wholes = [await writeWav(storage.path(there), 1_000), await writeWav(storage.path(here), 2_000)];
    storage.finished(there, 'app');
    await uploaded(storage);
    bucket.misbehave = () => ({ status: 500 });
    storage.finished(here, 'app');
    for (const uuid of [there, here]) await expect(storage.remove(uuid)).rejects.toThrow('object store: away');
    for (const [at, uuid] of [there, here].entries()) {
      const local = await (await storage.open(uuid, 'app'))?.local?.();
      expect(await local?.(0, 4_000).bytes()).toEqual(new Uint8Array(wholes[at] ?? []));
    }
    bucket.misbehave = () => undefined;
    await uploaded(storage);
    expect(await bucket.object(`r/${here}.wav`)).toEqual(wholes[1]);
    for (const uuid of [there, here]) {
      await storage.remove(uuid);
      expect(await storage.open(uuid, 'app')).toBeUndefined();
      expect(await bucket.object(`r/${uuid}.wav`)).toBeUndefined();
    }
  });
});

test('the recordings that have a file here are told, in the spool and in the cache', async () => {
  const storage = await place.storage(bucket.settings('r'), await place.folder());
  const [here, there] = [nextUuid(), nextUuid()];
  for (const each of [here, there]) await writeWav(storage.path(each), 1_000);
  storage.finished(there, 'app');
  await uploaded(storage);
  const names: string[] = [];
  for await (const name of storage.names()) names.push(name);
  expect(names.toSorted()).toEqual([here, there].toSorted());
});

describe('the spool', () => {
  test('that is full lets no recording begin until there is room again', async () => {
    const limits = { spoolMaxBytes: 250_000 };
    const storage = await place.storage(bucket.settings('s'), await place.folder(), limits);
    bucket.misbehave = () => 'reset';
    expect(await storage.admits('app')).toBe(true);
    const uuids = Array.from({ length: 3 }, nextUuid);
    for (const uuid of uuids) {
      await writeWav(storage.path(uuid), 100_000);
      storage.finished(uuid, 'app');
    }
    await until(async () => !(await storage.admits('app')));
    expect(storage.load()).toEqual({ waiting: 3, waitingBytes: 300_132 });
    bucket.misbehave = () => undefined;
    await uploaded(storage);
    await until(() => storage.admits('app'));
  });

  test('that one application has filled, with bytes or files, has a little room for those that have next to none', async () => {
    const fewBytes = { spoolMaxBytes: 250_000, spoolReserveBytes: 120_000, spoolReservedOfAppBytes: 50_000 };
    const fewFiles = { spoolMaxFiles: 3, spoolReserveFiles: 1, spoolReservedOfAppFiles: 1 };
    bucket.misbehave = () => 'reset';
    for (const limits of [fewBytes, fewFiles]) {
      const storage = await place.storage(bucket.settings('s'), await place.folder(), limits);
      const record = async (appUuid: string, bytes: number) => {
        const uuid = nextUuid();
        storage.begun(uuid, appUuid);
        sum += (await writeWav(storage.path(uuid), bytes)).length;
        storage.finished(uuid, appUuid);
        // A file that was looked at while it grew counts with less at first.
        await until(() => storage.load().waitingBytes === sum);
      };
      let sum = 0;
      for (let file = 0; file < 3; file++) await record('a', 100_000);
      expect(await Promise.all([storage.admits('a'), storage.admits('b')])).toEqual([false, true]);
      await record('b', 60_000);
      expect(await Promise.all([storage.admits('b'), storage.admits('c')])).toEqual([false, limits === fewBytes]);
    }
  });

  test('that a former process left full is full at the first question', async () => {
    const dataDir = await place.folder();
    const limits = { spoolMaxBytes: 250_000 };
    bucket.misbehave = () => 'reset';
    const first = await place.storage(bucket.settings('s'), dataDir, limits);
    for (let at = 0; at < 3; at++) await writeWav(first.path(nextUuid()), 100_000);
    await first.close();
    // What was counted before the folder was looked through would be believed for so long.
    const second = await place.storage(bucket.settings('s'), dataDir, { ...limits, admissionCacheMs: 3_600_000 });
    expect(await second.admits('app')).toBe(false);
  });

  test('counts what is finished while the store is left alone', async () => {
    const limits = { spoolMaxBytes: 150_000, retryMinMs: 60_000, retryMaxMs: 60_000 };
    const storage = await place.storage(bucket.settings('s'), await place.folder(), limits);
    bucket.misbehave = () => 'reset';
    for (const expected of [true, false]) {
      const uuid = nextUuid();
      await writeWav(storage.path(uuid), 100_000);
      storage.finished(uuid, 'app');
      await until(() => place.lines.length > 0);
      await until(async () => (await storage.admits('app')) === expected);
    }
  });

  test('counts what grows', async () => {
    const storage = await place.storage(bucket.settings('s'), await place.folder(), { spoolMaxBytes: 50_000 });
    const uuid = nextUuid();
    storage.begun(uuid, 'app');
    await writeWav(storage.path(uuid), 60_000);
    await until(async () => !(await storage.admits('app')));
    expect(storage.load().waiting).toBe(0);
    expect(bucket.seen).toEqual([]);
  });

  test('with more files than are kept in mind is full, and yet everything gets to the store', async () => {
    const dataDir = await place.folder();
    const limits = { spoolMaxFiles: 4 };
    bucket.misbehave = () => 'reset';
    const first = await place.storage(bucket.settings('n'), dataDir, limits);
    const uuids = Array.from({ length: 12 }, nextUuid);
    for (const uuid of uuids) {
      await writeWav(first.path(uuid), 500);
      first.finished(uuid, 'app');
    }
    expect(first.load().waiting).toBe(4);
    expect(await first.admits('app')).toBe(false);
    bucket.misbehave = () => undefined;
    await until(async () =>
      (await Promise.all(uuids.map((uuid) => bucket.object(`n/${uuid}.wav`)))).every((object) => object !== undefined),
    );
    await uploaded(first);
    await until(() => first.admits('app'));
  });

  test('on a disk without room lets no recording begin', async () => {
    const limits = { diskFreeMinBytes: Number.MAX_SAFE_INTEGER };
    expect(await (await place.storage(bucket.settings('s'), await place.folder(), limits)).admits('app')).toBe(false);
  });
});

/** A recording that is in the store only. */
async function stored(
  dataBytes: number,
): Promise<{ file: StoredFile; whole: Buffer; open: () => Promise<StoredFile | undefined> }> {
  const storage = await place.storage(bucket.settings('o'), await place.folder(), {
    partBytes: 8 * 1024 * 1024,
    cacheMaxBytes: 0,
  });
  const uuid = nextUuid();
  const whole = await writeWav(storage.path(uuid), dataBytes);
  storage.finished(uuid, 'app');
  await uploaded(storage);
  const file = await storage.open(uuid, 'app');
  if (file === undefined) throw new Error('it is not there');
  return { file, whole, open: () => storage.open(uuid, 'app') };
}
