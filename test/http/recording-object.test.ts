/** Recordings of an object store under their URLs: a real store, the cache, and a real server. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RecordingMedia } from '../../src/call/ports/recordings.ts';
import { systemClock } from '../../src/clock.ts';
import { RecordingMediaDoor } from '../../src/http/route/recording-media.ts';
import { silentLog } from '../../src/log.ts';
import { createRecordingUrls } from '../../src/recording-storage/signed-url.ts';
import type { RecordingStorage } from '../../src/recording-storage/storage.ts';
import type { StorageLimits } from '../../src/recording-storage/storage-limits.ts';
import { Bucket } from '../recording-storage/bucket.ts';
import { cached, nextUuid, Place, until, uploaded } from '../recording-storage/harness.ts';
import { writeWav } from '../recording-storage/wav.ts';
import { RawHttp, type RawResponse, rawRequest } from './raw-http.ts';

const MIB = 1024 * 1024;
let bucket: Bucket;
const media = new Map<string, RecordingMedia>();
const recordingUrls = createRecordingUrls({ masterKey: new Uint8Array(32).fill(3), publicUrl: '', ttlSec: 3600 });
const door = new RecordingMediaDoor({
  recordings: { media: async (uuid) => media.get(uuid) },
  recordingUrls,
  clock: systemClock(),
  log: silentLog,
  metrics: { request() {} },
});
// The platform gives a recording all the time it takes, as this server does.
const server = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: (request) => door.answer(request) });
const port = server.port ?? 0;
const pullOf = (uuid: string): string => recordingUrls.sign(uuid, Date.now()).mediaUrl;
const place = new Place();
beforeAll(async () => {
  bucket = await Bucket.start();
}, 30_000);
afterEach(async () => {
  bucket.misbehave = () => 'reset';
  await place.clear();
  bucket.clear();
});
afterAll(async () => {
  await server.stop(true);
  await bucket.stop();
}, 30_000);

/** A storage whose recordings the server has. */
async function storageOf(limits: Partial<StorageLimits> = {}, dataDir?: string) {
  const folder = dataDir ?? (await place.folder());
  const storage = await place.storage(bucket.settings('h'), folder, { partBytes: 8 * MIB, ...limits });
  const record = async (bytes: number, seed = 1) => {
    const uuid = nextUuid();
    const whole = await writeWav(storage.path(uuid), bytes - 44, seed);
    return { uuid, whole };
  };
  const stored = async (bytes: number, seed = 1) => {
    const made = await record(bytes, seed);
    storage.finished(made.uuid, 'app');
    await uploaded(storage);
    return made;
  };
  return { folder, storage, record, stored };
}

/** The recording as a client of its pull URL finds it now. */
async function ask(
  storage: RecordingStorage,
  uuid: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<RawResponse> {
  const file = await storage.open(uuid, 'app');
  if (file === undefined) throw new Error('there is no such recording');
  media.set(uuid, { state: 'finished', appUuid: 'app', file });
  const response = await rawRequest(port, method, pullOf(uuid), headers);
  if (response === undefined) throw new Error('the connection was closed');
  return response;
}
const emptied = async (folder: string): Promise<void> => {
  const cache = join(folder, 'recordings', 'cache');
  for (const name of await readdir(cache)) await rm(join(cache, name));
};
const told = ({ status, headers }: RawResponse) => [status, headers.get('content-length'), headers.get('transfer-encoding')];

describe('a recording of an object store', () => {
  test('comes with its length, exact and in ranges, from the spool, from the cache, and fetched; its tag is the same', async () => {
    const { folder, storage, record } = await storageOf();
    const { uuid, whole } = await record(300_000);
    const same = async () => {
      const response = await ask(storage, uuid);
      expect(told(response)).toEqual([200, '300000', undefined]);
      expect(whole.equals(response.body)).toBe(true);
      for (const [range, start, end] of [
        ['bytes=0-0', 0, 1],
        ['bytes=44-200043', 44, 200_044],
        ['bytes=-100000', 200_000, 300_000],
      ] as const) {
        const part = await ask(storage, uuid, { range });
        expect(told(part)).toEqual([206, String(end - start), undefined]);
        expect(part.headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/300000`);
        expect(whole.subarray(start, end).equals(part.body)).toBe(true);
      }
      return response.headers.get('etag');
    };
    bucket.misbehave = () => ({ status: 503 });
    storage.finished(uuid, 'app');
    const etag = await same();
    expect(etag).toBe(`"${uuid}-300000"`);
    bucket.misbehave = () => undefined;
    await uploaded(storage);
    bucket.seen.length = 0;
    expect(await same()).toBe(etag ?? 'none');
    // It was never away.
    expect(bucket.seen).toEqual([]);
    await emptied(folder);
    expect(await same()).toBe(etag ?? 'none');
    expect(bucket.asked(/./)).toEqual(['head', 'get', 'get']);
  });

  test('is fetched by the first who gets it, once for all who ask at once, and not to tell its headers', async () => {
    const { folder, storage, stored } = await storageOf();
    const { uuid, whole } = await stored(2 * MIB);
    await emptied(folder);
    const head = await ask(storage, uuid, {}, 'HEAD');
    expect(told(head)).toEqual([200, String(2 * MIB), undefined]);
    const etag = head.headers.get('etag') ?? '';
    expect((await ask(storage, uuid, { 'if-none-match': etag })).status).toBe(304);
    expect((await ask(storage, uuid, { range: `bytes=${2 * MIB}-` })).status).toBe(416);
    expect(bucket.asked(/get/)).toEqual([]);
    const all = await Promise.all(Array.from({ length: 12 }, () => ask(storage, uuid)));
    for (const response of all) {
      expect(told(response)).toEqual([200, String(2 * MIB), undefined]);
      expect(whole.equals(response.body)).toBe(true);
    }
    // 256 KiB, 512, then 1 MiB at most at a time.
    expect(bucket.asked(/get/)).toHaveLength(4);
  });

  test('is served without the store once it is here, also by the next process', async () => {
    const { folder, storage, stored } = await storageOf();
    const [kept, fetched] = [await stored(100_000, 1), await stored(200_000, 2)];
    await emptied(folder);
    await ask(storage, fetched.uuid);
    await ask(storage, kept.uuid);
    bucket.misbehave = () => 'reset';
    await storage.close();
    const next = await storageOf({}, folder);
    for (const { uuid, whole } of [kept, fetched]) {
      const response = await ask(next.storage, uuid);
      expect(told(response)).toEqual([200, String(whole.length), undefined]);
      expect(whole.equals(response.body)).toBe(true);
    }
  });

  test('that is too large to be fetched is streamed, whole and in part', async () => {
    const { folder, storage, stored } = await storageOf({ cacheFetchMaxBytes: MIB });
    const { uuid, whole } = await stored(2 * MIB);
    await emptied(folder);
    const response = await ask(storage, uuid);
    expect(told(response)).toEqual([200, undefined, 'chunked']);
    expect(whole.equals(response.body)).toBe(true);
    const part = await ask(storage, uuid, { range: 'bytes=1000-1500000' });
    expect(part.status).toBe(206);
    expect(whole.subarray(1000, 1_500_001).equals(part.body)).toBe(true);
    expect(await cached(folder)).toEqual([]);
  });

  test('that cannot be fetched in time, or has no room on the disk, is streamed', async () => {
    const full = await storageOf({ cacheDiskFreeMinBytes: Number.MAX_SAFE_INTEGER });
    const { uuid, whole } = await full.stored(400_000);
    const response = await ask(full.storage, uuid);
    expect(told(response)).toEqual([200, undefined, 'chunked']);
    expect(whole.equals(response.body)).toBe(true);

    const busy = await storageOf({ cacheFetches: 1, cacheFetchesWaiting: 0, cacheWaitMs: 50 });
    const [one, other] = [await busy.stored(400_000, 1), await busy.stored(400_000, 2)];
    await emptied(busy.folder);
    const gate = Promise.withResolvers<undefined>();
    let held = 0;
    // The download of the one does not get on; who is streamed to does.
    bucket.misbehave = ({ what, target }) =>
      what === 'get' && target.includes(one.uuid) && held++ < 1 ? gate.promise : undefined;
    const slow = await ask(busy.storage, one.uuid);
    expect(told(slow)).toEqual([200, undefined, 'chunked']);
    expect(one.whole.equals(slow.body)).toBe(true);
    const refused = await ask(busy.storage, other.uuid);
    expect(told(refused)).toEqual([200, undefined, 'chunked']);
    expect(other.whole.equals(refused.body)).toBe(true);
    gate.resolve(undefined);
    await until(async () => told(await ask(busy.storage, one.uuid))[1] === '400000');
  });

  test('whose download breaks off is streamed; with the store gone for good it is 503', async () => {
    const { folder, storage, stored } = await storageOf();
    const { uuid, whole } = await stored(400_000);
    await emptied(folder);
    let broken = 0;
    bucket.misbehave = ({ what }) =>
      what === 'get' && broken++ < 1 ? { status: 416, body: '<Error><Code>InvalidRange</Code></Error>' } : undefined;
    const response = await ask(storage, uuid);
    expect(told(response)).toEqual([200, undefined, 'chunked']);
    expect(whole.equals(response.body)).toBe(true);
    expect((await cached(folder)).length).toBe(0);
    bucket.misbehave = ({ what }) => (what === 'get' ? 'reset' : undefined);
    const away = await ask(storage, uuid);
    expect([away.status, away.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await cached(folder)).toEqual([]);
  });

  test('is sent to its end although it is evicted, or removed, while it is being sent', async () => {
    const { folder, storage, stored } = await storageOf({ cacheMaxFiles: 2 });
    for (const how of ['evicted', 'removed']) {
      const { uuid, whole } = await stored(16 * MIB);
      const file = await storage.open(uuid, 'app');
      if (file !== undefined) media.set(uuid, { state: 'finished', appUuid: 'app', file });
      const connection = new RawHttp(port);
      connection.send('GET', pullOf(uuid));
      const head = await connection.head();
      expect(head?.headers.get('content-length')).toBe(String(whole.length));
      connection.socket.pause();
      if (how === 'removed') await storage.remove(uuid);
      await until(async () => {
        if (how === 'evicted') await stored(1_000);
        return !(await cached(folder)).some((name) => name.startsWith(uuid));
      });
      connection.socket.resume();
      expect(whole.equals((await connection.body(whole.length)) ?? new Uint8Array())).toBe(true);
      connection.close();
    }
  });

  test('that should be evicted between being found and being opened stays for that long', async () => {
    const { folder, storage, stored } = await storageOf({ cacheMaxFiles: 1, cacheHoldMs: 2_000 });
    const { uuid, whole } = await stored(100_000);
    const file = await storage.open(uuid, 'app');
    if (file === undefined) throw new Error('there is no such recording');
    const local = async () => {
      const held = await file.local?.();
      for (let seed = 0; seed < 3; seed++) await stored(1_000, seed);
      return held;
    };
    media.set(uuid, { state: 'finished', appUuid: 'app', file: { ...file, local } });
    const response = await rawRequest(port, 'GET', pullOf(uuid));
    expect([response?.status, response?.headers.get('content-length')]).toEqual([200, '100000']);
    expect(whole.equals(response?.body ?? new Uint8Array())).toBe(true);
    await until(async () => {
      await stored(1_000);
      return !(await cached(folder)).some((name) => name.startsWith(uuid));
    });
  });

  test('is never answered with 500, however fast the cache turns over', async () => {
    const { folder, storage, stored } = await storageOf({ cacheMaxFiles: 2, cacheHoldMs: 5_000, sweepMs: 1 });
    const all: Awaited<ReturnType<typeof stored>>[] = [];
    for (let seed = 0; seed < 6; seed++) all.push(await stored(50_000 + seed, seed));
    const answers = new Map<string, number>();
    const clients = Array.from({ length: 8 }, async (_, client) => {
      for (let round = 0; round < 10; round++) {
        const { uuid, whole } = all[(client * 7 + round * 5) % all.length] ?? { uuid: '', whole: Buffer.alloc(0) };
        const response = await ask(storage, uuid);
        expect(whole.equals(response.body)).toBe(true);
        answers.set(`${response.status}`, (answers.get(`${response.status}`) ?? 0) + 1);
      }
    });
    await Promise.all(clients);
    expect([...answers]).toEqual([['200', 80]]);
    expect((await cached(folder)).length).toBeLessThanOrEqual(2);
  });

  test('that is removed is gone from the cache too, and is not brought back', async () => {
    const { folder, storage, stored } = await storageOf();
    const { uuid } = await stored(100_000);
    await ask(storage, uuid);
    const file = await storage.open(uuid, 'app');
    await storage.remove(uuid);
    expect(await cached(folder)).toEqual([]);
    expect(await storage.open(uuid, 'app')).toBeUndefined();
    expect(await file?.local?.()).toBeUndefined();
    expect(await cached(folder)).toEqual([]);
  });

  test('leaves nothing in the cache of a place that keeps its recordings in files', async () => {
    const { folder, storage, stored } = await storageOf();
    await stored(1_000);
    await storage.close();
    await place.storage({ kind: 'file' }, folder);
    expect(await readdir(join(folder, 'recordings'))).toEqual([]);
  });
});
