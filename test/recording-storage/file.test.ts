import { afterEach, describe, expect, test } from 'bun:test';
import { mkdir, stat, truncate, writeFile } from 'node:fs/promises';
import { systemClock } from '../../src/clock.ts';
import { RECORDING_READ_SLICE_BYTES } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { createStorage } from '../../src/recording-storage/create.ts';
import { DiskSpace } from '../../src/recording-storage/file/disk-space.ts';
import { isWholeWav } from '../../src/recording-storage/upload/spool-file.ts';
import fc from '../support/fast-check.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { bytesOf, exists, nextUuid, Place, spooled, until } from './harness.ts';
import { writeWav } from './wav.ts';

const FILE = { kind: 'file' } as const;
const place = new Place();
afterEach(() => place.clear());

describe('recordings in files', () => {
  test('with recordings off there is no storage, and no folder', async () => {
    const dataDir = await place.folder();
    expect(await createStorage({ kind: 'off' }, { dataDir, clock: systemClock(), log: silentLog })).toBeUndefined();
    expect(await exists(`${dataDir}/recordings`)).toBe(false);
  });

  test('the folder is made at start and nobody else may look into it', async () => {
    const dataDir = await place.folder();
    const storage = await place.storage(FILE, dataDir);
    const uuid = nextUuid();
    expect(storage.path(uuid)).toBe(`${dataDir}/recordings/${uuid}.wav`);
    expect((await stat(`${dataDir}/recordings`)).mode & 0o777).toBe(0o700);
  });

  test('nor into one that was there before', async () => {
    const dataDir = await place.folder();
    await mkdir(`${dataDir}/recordings`, { mode: 0o755 });
    await place.storage(FILE, dataDir);
    expect((await stat(`${dataDir}/recordings`)).mode & 0o777).toBe(0o700);
  });

  test('a recording is removed with what was known of its upload to an object store', async () => {
    const dataDir = await place.folder();
    const storage = await place.storage(FILE, dataDir);
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 100);
    await writeFile(`${dataDir}/recordings/${uuid}.upload`, '{}');
    await storage.remove(uuid);
    expect(await spooled(dataDir)).toEqual([]);
  });

  test('a file is whole where its header says so, and is right', async () => {
    const path = `${await place.folder()}/a.wav`;
    const whole = await writeWav(path, 100);
    expect(await isWholeWav(path)).toBe(true);
    // The first letters of RIFF and of data, and the last bytes of either size.
    for (const at of [0, 7, 36, 43]) {
      const other = Buffer.from(whole);
      other[at] = 0xff;
      await writeFile(path, other);
      expect([at, await isWholeWav(path)]).toEqual([at, false]);
    }
    for (const bytes of [whole.subarray(0, 43), whole.subarray(0, 143), Buffer.concat([whole, whole])]) {
      await writeFile(path, bytes);
      expect(await isWholeWav(path)).toBe(false);
    }
  });

  test('a recording is opened with its size, a stable tag, and any range of its bytes', async () => {
    const storage = await place.storage(FILE, await place.folder());
    const uuid = nextUuid();
    storage.begun(uuid, 'app');
    const whole = await writeWav(storage.path(uuid), 200_000);
    storage.finished(uuid, 'app');
    const file = await storage.open(uuid, 'app');
    expect(file?.bytes).toBe(200_044);
    expect(file?.etag).toBe((await storage.open(uuid, 'app'))?.etag ?? 'none');
    expect(await bytesOf(file)).toEqual(whole);
    const range = fc.tuple(fc.nat(200_044), fc.nat(200_044)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
    await fc.assert(
      fc.asyncProperty(range, async ([start, end]) => {
        expect((await bytesOf(file, start, end)).equals(whole.subarray(start, end))).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test('a range that is none of the file is refused', async () => {
    const storage = await place.storage(FILE, await place.folder());
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 100);
    const file = await storage.open(uuid, 'app');
    for (const [start, end] of [
      [-1, 5],
      [0, 145],
      [9, 8],
      [0.5, 3],
    ] as const)
      expect(() => file?.read(start, end)).toThrow(RangeError);
  });

  test('a reader who stops reading leaves nothing open and reads nothing ahead', async () => {
    const storage = await place.storage(FILE, await place.folder());
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 1_000_000);
    const reader = (await storage.open(uuid, 'app'))?.read(0, 1_000_044).getReader();
    const first = await reader?.read();
    expect(first?.value?.byteLength).toBe(64 * 1024);
    expect(await openFiles(storage.path(uuid))).toBe(1);
    await reader?.cancel();
    expect(await openFiles(storage.path(uuid))).toBe(0);
  });

  test('what is read to its end is closed too', async () => {
    const storage = await place.storage(FILE, await place.folder());
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 1_000);
    await bytesOf(await storage.open(uuid, 'app'));
    expect(await openFiles(storage.path(uuid))).toBe(0);
  });

  test('there is no recording of another name, least of all one outside the folder', async () => {
    const storage = await place.storage(FILE, await place.folder());
    expect(await storage.open(nextUuid(), 'app')).toBeUndefined();
    for (const name of ['../secret', 'a/b', '', '.', 'x'.repeat(65), 'rec_\u0000']) {
      expect(await storage.open(name, 'app')).toBeUndefined();
      await storage.remove(name);
      expect(() => storage.path(name)).toThrow();
    }
  });

  test('a recording that is removed is gone, and removing it again is no error', async () => {
    const storage = await place.storage(FILE, await place.folder());
    const uuid = nextUuid();
    await writeWav(storage.path(uuid), 100);
    await storage.remove(uuid);
    expect(await storage.open(uuid, 'app')).toBeUndefined();
    await storage.remove(uuid);
  });

  test('a recording whose file was cut while it is read breaks off, and its descriptor is closed', async () => {
    const storage = await place.storage(FILE, await place.folder());
    const uuid = nextUuid();
    const path = storage.path(uuid);
    const { length } = await writeWav(path, 3 * RECORDING_READ_SLICE_BYTES);
    const reader = (await storage.open(uuid, 'app'))?.read(0, length).getReader();
    expect((await reader?.read())?.value).toHaveLength(RECORDING_READ_SLICE_BYTES);
    await truncate(path, RECORDING_READ_SLICE_BYTES + 10);
    expect((await reader?.read())?.value).toHaveLength(10);
    await expect(reader?.read()).rejects.toThrow('shorter than it was');
    await until(async () => (await openFiles(path)) === 0);
  });

  test('a recording may begin while the disk has room, and not when it has not', async () => {
    expect(await (await place.storage(FILE, await place.folder())).admits('app')).toBe(true);
    const full = await place.storage(FILE, await place.folder(), { diskFreeMinBytes: Number.MAX_SAFE_INTEGER });
    expect(await full.admits('app')).toBe(false);
  });

  test('a disk that cannot be asked has no room, and is asked once a second', async () => {
    const clock = new VirtualClock();
    const folder = await place.folder();
    const space = new DiskSpace(`${folder}/none`, clock, { diskFreeMinBytes: 0, admissionCacheMs: 1_000 });
    const first = space.hasRoom();
    expect(await first).toBe(false);
    expect(space.hasRoom()).toBe(first);
    await clock.advance(1_000);
    expect(space.hasRoom()).not.toBe(first);
  });
});

/** File descriptors of this process on a file. */
async function openFiles(path: string): Promise<number> {
  const { readdir, readlink } = await import('node:fs/promises');
  const names = await readdir('/proc/self/fd');
  const targets = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
  return targets.filter((target) => target === path).length;
}
