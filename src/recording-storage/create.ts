/** Makes the storage that `RECORDINGS` asks for. */
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { Log } from '../log.ts';
import { ObjectCache } from './cache/object-cache.ts';
import { fileStorage } from './file/file-storage.ts';
import { RecordingFolder } from './file/recording-folder.ts';
import { ObjectStorage } from './s3/object-storage.ts';
import { ObjectStore } from './s3/object-store.ts';
import type { RecordingStorage } from './storage.ts';
import { STORAGE_LIMITS, type StorageLimits } from './storage-limits.ts';

interface StorageOptions {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: Partial<StorageLimits>;
  /** The application of a recording that a former process left. Without it they have their turns as those of one. */
  readonly appOf?: (recordingUuid: string) => Promise<string | undefined>;
}

/**
 * Makes the storage of recordings, or undefined when they are off. It makes `DATA_DIR/recordings`, and with an object
 * store goes on with what waits there. It rejects where the folder cannot be made, and with an `Error` that names the
 * setting where the place in the store cannot be addressed; that the store is away is no error.
 */
export async function createStorage(
  settings: Config['recordings'],
  options: StorageOptions,
): Promise<RecordingStorage | undefined> {
  if (settings.kind === 'off') return undefined;
  const { dataDir, clock, log, appOf = async () => undefined } = options;
  const limits = { ...STORAGE_LIMITS, ...options.limits };
  if (settings.kind === 'file') {
    const folder = await RecordingFolder.make(dataDir);
    // Left by a time when recordings went to an object store; nothing bounds it any more.
    await folder.removeCache();
    return fileStorage(folder, clock, limits);
  }
  const store = new ObjectStore(settings, clock);
  const folder = await RecordingFolder.make(dataDir);
  const cache = await ObjectCache.make({ folder, clock, log, limits });
  return new ObjectStorage({ store, folder, cache, clock, log, limits, appOf });
}
