/**
 * The storage of `RECORDINGS=s3://…`. A recording is written to a local file, its spool, which stays until the object
 * store has confirmed all of it, and then in the cache for as long as there is room.
 */
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import type { ObjectCache } from '../cache/object-cache.ts';
import { DiskSpace } from '../file/disk-space.ts';
import { isMissing, localBytes, sizeOf, storedFile } from '../file/local-file.ts';
import type { RecordingFolder } from '../file/recording-folder.ts';
import { fileSlices, type Slices } from '../slices.ts';
import type { RecordingStorage, StorageLoad, StoredFile } from '../storage.ts';
import type { StorageLimits } from '../storage-limits.ts';
import { PartBuffers } from '../upload/part-buffers.ts';
import { spoolLeftovers } from '../upload/spool-leftovers.ts';
import { objectName } from '../upload/upload.ts';
import { UploadQueue } from '../upload/upload-queue.ts';
import { objectSlices, tried } from './object-slices.ts';
import type { ObjectStore } from './object-store.ts';
import { ObjectTurns } from './object-turns.ts';

interface ObjectStorageOptions {
  readonly store: ObjectStore;
  readonly folder: RecordingFolder;
  readonly cache: ObjectCache;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: StorageLimits;
  readonly appOf: (recordingUuid: string) => Promise<string | undefined>;
}

export class ObjectStorage implements RecordingStorage {
  readonly #options: ObjectStorageOptions;
  readonly #queue: UploadQueue;
  readonly #turns: ObjectTurns;
  readonly #space: DiskSpace;
  #looked = false;
  /** What waits in the spool, as it was counted last. */
  #spool = { bytes: 0, ofApps: new Map<string, Waiting>(), until: 0 };

  constructor(options: ObjectStorageOptions) {
    this.#options = options;
    this.#queue = new UploadQueue({
      ...options,
      buffers: new PartBuffers(options.limits.uploads, options.limits.partBytes),
      kept: (recordingUuid) => options.cache.keep(recordingUuid),
      findLeft: (onError) => spoolLeftovers(options.folder, onError),
    });
    this.#turns = new ObjectTurns(options.clock);
    this.#space = new DiskSpace(options.folder.path, options.clock, options.limits);
  }

  path(recordingUuid: string): string {
    return this.#options.folder.wav(recordingUuid);
  }

  async admits(appUuid: string): Promise<boolean> {
    if (!this.#spoolHasRoom(appUuid)) return false;
    if (!this.#looked) {
      await this.#queue.looked();
      this.#looked = true;
      this.#spool.until = 0;
    }
    if (!this.#spoolHasRoom(appUuid)) return false;
    if (await this.#space.hasRoom()) return true;
    // What is kept for convenience is not what others have to wait for.
    void this.#options.cache.settle();
    return false;
  }

  begun(recordingUuid: string, appUuid: string): void {
    this.#queue.grows(recordingUuid, appUuid);
  }

  finished(recordingUuid: string, appUuid: string): void {
    this.#queue.finished(recordingUuid, appUuid);
  }

  async open(recordingUuid: string, appUuid: string): Promise<StoredFile | undefined> {
    const { folder, store, clock, cache } = this.#options;
    if (!folder.knows(recordingUuid)) return undefined;
    const name = objectName(recordingUuid);
    const path = folder.wav(recordingUuid);
    const here = (await cache.sizeOf(recordingUuid)) ?? (await sizeOf(path));
    const bytes = here ?? (await this.#turns.look(appUuid, () => tried(clock, () => store.head(name))));
    if (bytes === undefined) return undefined;
    const streamed = (start: number, end: number) =>
      objectSlices(store, clock, name, start, end, (signal, job) => this.#turns.stream(appUuid, signal, job));
    return {
      ...storedFile(recordingUuid, bytes, (start, end) => orElse(fileSlices(path, start, end), () => streamed(start, end))),
      local: async () => {
        // It has a turn of its own there, and so needs none for each slice.
        const held = await cache.hold(recordingUuid, {
          bytes,
          appUuid,
          object: () => objectSlices(store, clock, name, 0, bytes),
        });
        return held === undefined ? undefined : await localBytes(held);
      },
    };
  }

  async remove(recordingUuid: string): Promise<void> {
    const { folder, clock, cache } = this.#options;
    if (!folder.knows(recordingUuid)) return;
    await this.#queue.without(recordingUuid, async (upload) => {
      // The file goes last: it may be the only copy, and stays where the store is not reached.
      await tried(clock, () => upload.removeObject());
      await cache.without(recordingUuid, () => folder.remove(folder.wav(recordingUuid)));
    });
  }

  names(): AsyncIterable<string> {
    return this.#options.folder.names();
  }

  load(): StorageLoad {
    let waiting = 0;
    let waitingBytes = 0;
    for (const upload of this.#queue.uploads()) {
      if (!upload.finished) continue;
      waiting++;
      waitingBytes += upload.waitingBytes;
    }
    return { waiting, waitingBytes };
  }

  async close(): Promise<void> {
    await this.#queue.close();
    await this.#options.cache.close();
  }

  /**
   * Whether the spool has room for the application. Everything on the disk counts, also what is confirmed in part,
   * because it stays until all of it is. Whoever fills the spool leaves the reserve to those with little in it.
   */
  #spoolHasRoom(appUuid: string): boolean {
    const { limits } = this.#options;
    const { files } = this.#queue;
    const { bytes, ofApps } = this.#counted();
    if (files < limits.spoolMaxFiles && bytes <= limits.spoolMaxBytes) return true;
    const own = ofApps.get(appUuid) ?? NOTHING;
    return (
      files < limits.spoolMaxFiles + limits.spoolReserveFiles &&
      bytes <= limits.spoolMaxBytes + limits.spoolReserveBytes &&
      own.files < limits.spoolReservedOfAppFiles &&
      own.bytes < limits.spoolReservedOfAppBytes
    );
  }

  #counted(): { readonly bytes: number; readonly ofApps: ReadonlyMap<string, Waiting> } {
    const { clock, limits } = this.#options;
    const now = clock.now();
    if (now < this.#spool.until) return this.#spool;
    let all = 0;
    const ofApps = new Map<string, Waiting>();
    for (const { appUuid, bytes } of this.#queue.uploads()) {
      const own = ofApps.get(appUuid) ?? NOTHING;
      ofApps.set(appUuid, { files: own.files + 1, bytes: own.bytes + bytes });
      all += bytes;
    }
    this.#spool = { bytes: all, ofApps, until: now + limits.admissionCacheMs };
    return this.#spool;
  }
}

/** What one application has in the spool. */
interface Waiting {
  readonly files: number;
  readonly bytes: number;
}
const NOTHING: Waiting = { files: 0, bytes: 0 };

/** A spool file may go between being found and being read: then the object store has it. */
function orElse(file: Slices, object: () => Slices): Slices {
  let slices = file;
  let begun = false;
  let closed = false;
  return {
    async next() {
      try {
        const slice = await slices.next();
        begun = true;
        return slice;
      } catch (error) {
        if (begun || closed || slices !== file || !isMissing(error)) throw error;
        slices = object();
        return slices.next();
      }
    },
    async close() {
      closed = true;
      await slices.close();
    },
  };
}
