/** Storages over folders of their own, with small limits, and everything they log. */
import { access, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/clock.ts';
import type { Config } from '../../src/config.ts';
import type { Log, LogFields } from '../../src/log.ts';
import { createStorage } from '../../src/recording-storage/create.ts';
import type { RecordingStorage, StoredFile } from '../../src/recording-storage/storage.ts';
import type { StorageLimits } from '../../src/recording-storage/storage-limits.ts';

/** Small enough that a test sees many parts, and does not wait. */
export const SMALL: Partial<StorageLimits> = {
  diskFreeMinBytes: 0,
  admissionCacheMs: 0,
  spoolReserveBytes: 0,
  spoolReserveFiles: 0,
  partBytes: 64 * 1024,
  sweepMs: 10,
  retryMinMs: 10,
  retryMaxMs: 40,
  setBackMaxMs: 50,
  cacheDiskFreeMinBytes: 0,
  cacheHoldMs: 20,
};

export interface Line extends LogFields {
  readonly level: string;
  readonly message: string;
}

export class Place {
  readonly lines: Line[] = [];
  readonly #folders: string[] = [];
  readonly #storages: RecordingStorage[] = [];
  readonly #log: Log;

  constructor() {
    const say = (level: string) => (fields: LogFields, message: string) => void this.lines.push({ ...fields, level, message });
    this.#log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
  }

  async folder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'sidetone-recordings-'));
    this.#folders.push(folder);
    return folder;
  }

  async storage(
    settings: Config['recordings'],
    dataDir: string,
    limits: Partial<StorageLimits> = {},
    appOf: (recordingUuid: string) => Promise<string | undefined> = async () => undefined,
  ): Promise<RecordingStorage> {
    const options = { dataDir, clock: systemClock(), log: this.#log, limits: { ...SMALL, ...limits }, appOf };
    const storage = await createStorage(settings, options);
    if (storage === undefined) throw new Error('recordings are off');
    this.#storages.push(storage);
    return storage;
  }

  async clear(): Promise<void> {
    await Promise.all(this.#storages.splice(0).map((storage) => storage.close()));
    await Promise.all(this.#folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
    this.lines.length = 0;
  }
}

/** Resolves as soon as it is so; the test's own time is the limit. */
export async function until(ready: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await ready())) await new Promise((resolve) => setTimeout(resolve, 2));
}

export const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** Names of the files that wait in a data folder, beside the cache. */
export const spooled = async (dataDir: string): Promise<string[]> =>
  (await readdir(join(dataDir, 'recordings'))).filter((name) => name !== 'cache');

/** Names of the files of the cache of a data folder, in order. */
export const cached = async (dataDir: string): Promise<string[]> => (await readdir(join(dataDir, 'recordings', 'cache'))).sort();

/** Everything is with the store, and nothing of it waits here. */
export const uploaded = (storage: RecordingStorage): Promise<void> => until(() => storage.load().waiting === 0);

export async function bytesOf(file: StoredFile | undefined, start = 0, end = file?.bytes ?? 0): Promise<Buffer> {
  if (file === undefined) throw new Error('there is no such recording');
  return Buffer.from(await new Response(file.read(start, end)).arrayBuffer());
}

let last = 0;
/** A recording's name that no other test has. */
export const nextUuid = (): string => `rec_00000000-0000-4000-8000-${(++last).toString(16).padStart(12, '0')}`;
