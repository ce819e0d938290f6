/** `RECORDINGS=s3://…`: a recording is written to a local file, its spool, which stays until the object store has confirmed all of it. */
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import { DiskSpace } from './disk-space.ts';
import { isMissing, sizeOf, storedFile } from './local-file.ts';
import { objectSlices, tried } from './object-slices.ts';
import type { ObjectStore } from './object-store.ts';
import { PartBuffers } from './part-buffers.ts';
import type { RecordingFolder } from './recording-folder.ts';
import { fileSlices, type Slices } from './slices.ts';
import { spoolLeftovers } from './spool-leftovers.ts';
import type { RecordingStorage, StorageLoad, StoredFile } from './storage.ts';
import type { StorageLimits } from './storage-limits.ts';
import { objectName } from './upload.ts';
import { UploadQueue } from './upload-queue.ts';

export interface ObjectStorageOptions {
  readonly store: ObjectStore;
  readonly folder: RecordingFolder;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: StorageLimits;
}

export class ObjectStorage implements RecordingStorage {
  readonly #options: ObjectStorageOptions;
  readonly #queue: UploadQueue;
  readonly #space: DiskSpace;
  #looked = false;
  #spool = { bytes: 0, until: 0 };

  constructor(options: ObjectStorageOptions) {
    this.#options = options;
    this.#queue = new UploadQueue({
      ...options,
      buffers: new PartBuffers(options.limits.uploads, options.limits.partBytes),
      findLeft: () => spoolLeftovers(options.folder),
    });
    this.#space = new DiskSpace(options.folder.path, options.clock, options.limits);
  }

  path(recordingUuid: string): string {
    return this.#options.folder.wav(recordingUuid);
  }

  async admits(): Promise<boolean> {
    if (!this.#spoolHasRoom()) return false;
    if (!this.#looked) {
      await this.#queue.looked();
      this.#looked = true;
      this.#spool.until = 0;
    }
    return this.#spoolHasRoom() && (await this.#space.hasRoom());
  }

  begun(recordingUuid: string): void {
    this.#queue.grows(recordingUuid);
  }

  finished(recordingUuid: string): void {
    this.#queue.finished(recordingUuid);
  }

  async open(recordingUuid: string): Promise<StoredFile | undefined> {
    const { folder, store, clock } = this.#options;
    if (!folder.knows(recordingUuid)) return undefined;
    const name = objectName(recordingUuid);
    const path = folder.wav(recordingUuid);
    const remote = (start: number, end: number) => objectSlices(store, clock, name, start, end);
    const spooled = await sizeOf(path);
    if (spooled !== undefined)
      return storedFile(recordingUuid, spooled, (start, end) => orElse(fileSlices(path, start, end), () => remote(start, end)));
    const stored = await tried(clock, () => store.head(name));
    return stored === undefined ? undefined : storedFile(recordingUuid, stored, remote);
  }

  async remove(recordingUuid: string): Promise<void> {
    const { folder, clock } = this.#options;
    if (!folder.knows(recordingUuid)) return;
    await this.#queue.without(recordingUuid, (upload) => tried(clock, () => upload.remove()));
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

  close(): Promise<void> {
    return this.#queue.close();
  }

  /** Of everything on the disk, also what is confirmed in part: it stays until all of it is. */
  #spoolHasRoom(): boolean {
    const { clock, limits } = this.#options;
    if (this.#queue.files >= limits.spoolMaxFiles) return false;
    const now = clock.now();
    if (now >= this.#spool.until) {
      let bytes = 0;
      for (const upload of this.#queue.uploads()) bytes += upload.bytes;
      this.#spool = { bytes, until: now + limits.admissionCacheMs };
    }
    return this.#spool.bytes <= limits.spoolMaxBytes;
  }
}

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
