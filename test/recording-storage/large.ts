/**
 * Uploads one large recording with the limits of production, and reads it back, in a process of its own, so that what
 * it takes of memory and of the thread can be told: `large.ts ENDPOINT DATA_DIR BYTES`. Prints one line of JSON.
 */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { createStorage } from '../../src/recording-storage/create.ts';
import { CREDENTIALS } from './bucket.ts';
import { nextUuid, until } from './harness.ts';
import { beginWav, finishWav, samples } from './wav.ts';

const [endpoint = '', dataDir = '', bytes = ''] = process.argv.slice(2);
const settings = { kind: 's3', bucket: 'calls', prefix: 'large', endpoint, ...CREDENTIALS } as const;
const options = { dataDir, clock: systemClock(), log: silentLog };
// What is read comes from the store.
const storage = await createStorage(settings, { ...options, limits: { cacheMaxBytes: 0 } });
if (storage === undefined) throw new Error('recordings are off');

const uuid = nextUuid();
const path = storage.path(uuid);
await beginWav(path);
const file = await open(path, 'a');
const chunk = samples(1024 * 1024);
for (let written = 0; written < Number(bytes); written += chunk.length) {
  chunk.writeUInt32LE(written, 0);
  await file.write(chunk);
}
await file.datasync();
await file.close();
await finishWav(path);
const hash = async (stream: ReadableStream<Uint8Array> | undefined): Promise<string> => {
  const sum = createHash('sha256');
  for await (const slice of stream ?? []) sum.update(slice);
  return sum.digest('hex');
};
const local = await storage.open(uuid, 'app');
const before = await hash(local?.read(0, local.bytes));
Bun.gc(true);

const rss = () => process.memoryUsage.rss();
const start = rss();
let most = start;
let latestMs = 0;
let due = performance.now() + 5;
const watch = setInterval(() => {
  most = Math.max(most, rss());
  latestMs = Math.max(latestMs, performance.now() - due);
  due = performance.now() + 5;
}, 5);

const began = performance.now();
storage.finished(uuid, 'app');
await until(() => storage.load().waiting === 0);
const uploadMs = performance.now() - began;
const uploadMiB = (most - start) / 2 ** 20;
const uploadLateMs = latestMs;

most = rss();
latestMs = 0;
const stored = await storage.open(uuid, 'app');
const opened = performance.now();
const after = await hash(stored?.read(0, stored.bytes));
const readMs = performance.now() - opened;
const readMiB = (most - start) / 2 ** 20;
const readLateMs = latestMs;
await storage.close();

// And fetched to a file.
const fetching = await createStorage(settings, {
  ...options,
  limits: { cacheFetchMaxBytes: Number(bytes) + 44, cacheWaitMs: 60_000 },
});
const again = await fetching?.open(uuid, 'app');
most = rss();
latestMs = 0;
const asked = performance.now();
const blob = await again?.local?.();
const fetchMs = performance.now() - asked;
const fetchMiB = (most - start) / 2 ** 20;
clearInterval(watch);
const fetched = await hash(blob?.(0, again?.bytes ?? 0).stream());
await fetching?.close();
const same = before === after && before === fetched && stored?.etag === local?.etag;
const took = { uploadMs, uploadMiB, uploadLateMs, readMs, readMiB, readLateMs, fetchMs, fetchMiB, fetchLateMs: latestMs };
console.log(JSON.stringify({ same, ...took }));
process.exit(0);
