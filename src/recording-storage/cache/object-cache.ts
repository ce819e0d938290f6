/**
 * Recordings that an object store has, kept here too, so that they are sent from a file: whole, with a length, and
 * without the store.
 *
 *   spool ──uploaded──► kept (renamed) ─┐                            least recently used
 *   spool ──asked for──► linked ────────┼──► held for who asked for it ─────────────────► evicted
 *   object ──asked for──► fetched ──────┘     (for some seconds)
 *
 * A recording's name is a UUID that is given once, and its content never changes after its end: what is here is what
 * the object is, in whichever bucket, and needs no asking there.
 */
import { link, rename, rm } from 'node:fs/promises';
import { FairSemaphore } from '../../bounds/fair-semaphore.ts';
import { ThrottledLog } from '../../bounds/throttled-log.ts';
import { withTimeLimit } from '../../bounds/time-limit.ts';
import type { Clock } from '../../clock.ts';
import { codeOf } from '../../error-facts.ts';
import type { Log } from '../../log.ts';
import { isMissing, sizeOf } from '../file/local-file.ts';
import type { RecordingFolder } from '../file/recording-folder.ts';
import { download } from '../s3/object-download.ts';
import type { Slices } from '../slices.ts';
import type { StorageLimits } from '../storage-limits.ts';
import { type CachedFile, CachedFiles } from './cached-files.ts';

interface ObjectCacheOptions {
  readonly folder: RecordingFolder;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: StorageLimits;
}

/** The size of what is asked for, whose it is, and the place where it can be had. */
interface CacheSource {
  readonly bytes: number;
  readonly appUuid: string;
  object(): Slices;
}

interface Bringing {
  readonly abort: AbortController;
  /** It never rejects. */
  readonly done: Promise<void>;
}

export class ObjectCache {
  readonly #options: ObjectCacheOptions;
  readonly #complain: (error: unknown) => void;
  readonly #files: CachedFiles;
  readonly #turns: FairSemaphore;
  /** The fetches under way, one for each recording, however many ask for it. */
  readonly #bringing = new Map<string, Bringing>();
  /** Being removed: not to be brought back. */
  readonly #taken = new Set<string>();
  #cancelSweep: () => void = () => {};
  #closed = false;

  private constructor(options: ObjectCacheOptions, files: CachedFiles, complain: (error: unknown) => void) {
    const { limits } = options;
    this.#options = options;
    this.#files = files;
    this.#complain = complain;
    this.#turns = new FairSemaphore({
      all: limits.cacheFetches,
      ofApp: limits.cacheFetches,
      reserve: limits.cacheFetchesReserve,
      reservedOfApp: 1,
      waitingOfApp: limits.cacheFetchesWaiting,
    });
    this.#armSweep();
  }

  /** Makes the cache with what a former process left. Rejects when its folder cannot be made or read. */
  static async make(options: ObjectCacheOptions): Promise<ObjectCache> {
    const troubles = new ThrottledLog(options.log, options.clock, options.limits.complaintMs);
    const complain = (error: unknown) => {
      const code = codeOf(error) ?? 'Error';
      troubles.say('warn', code, { code }, 'a recording of the object store could not be kept here, or not be removed');
    };
    return new ObjectCache(options, await CachedFiles.make({ ...options, complain }), complain);
  }

  /** Returns the bytes of a recording that is here. */
  async sizeOf(recordingUuid: string): Promise<number | undefined> {
    const file = this.#find(recordingUuid);
    return file !== undefined && (await this.#files.isThere(file)) ? file.bytes : undefined;
  }

  /**
   * The path of a recording's file, brought here if need be, which stays for some seconds: longer than it takes to open
   * it. Undefined: it is too large, there is no room, or it is not here in time; it may be at the next request. Never
   * rejects.
   */
  async hold(recordingUuid: string, source: CacheSource): Promise<string | undefined> {
    const path = await this.#held(recordingUuid, source);
    if (path !== undefined || this.#closed || this.#taken.has(recordingUuid)) return path;
    const { done } = this.#bringing.get(recordingUuid) ?? this.#bring(recordingUuid, source);
    await this.#inTime(done);
    return this.#held(recordingUuid, source);
  }

  /**
   * The store has all of it: its spool file is kept here, if it can be. It is gone from the spool when this resolves;
   * rejects where it cannot go.
   */
  async keep(recordingUuid: string): Promise<void> {
    const { folder, limits } = this.#options;
    const spool = folder.wav(recordingUuid);
    const bytes = await sizeOf(spool);
    if (bytes === undefined) return;
    if (this.#files.get(recordingUuid) === undefined && bytes <= limits.cacheMaxBytes) {
      const path = this.#files.newPath(recordingUuid);
      try {
        await rename(spool, path);
        this.#files.add({ recordingUuid, path, bytes, linked: false, heldUntil: 0 });
      } catch (error) {
        this.#complain(error);
      }
    }
    // There is nothing to remove where it was renamed.
    await folder.remove(spool);
    // It may have been linked meanwhile.
    const here = this.#files.get(recordingUuid);
    if (here !== undefined) this.#files.own(here);
    await this.#files.settle();
  }

  /**
   * Takes a recording out, and keeps it out while `use` runs. Who was just told of the file has the time to open it.
   */
  async without<T>(recordingUuid: string, use: () => Promise<T>): Promise<T> {
    this.#taken.add(recordingUuid);
    try {
      const bringing = this.#bringing.get(recordingUuid);
      bringing?.abort.abort();
      await bringing?.done;
      const file = this.#files.get(recordingUuid);
      if (file !== undefined) {
        this.#files.forget(file);
        if (file.heldUntil > this.#options.clock.now())
          await new Promise<void>((resolve) => this.#options.clock.at(file.heldUntil, resolve));
        await rm(file.path, { force: true });
      }
      return await use();
    } finally {
      this.#taken.delete(recordingUuid);
    }
  }

  /** Gives way where the disk has become full. Never rejects. */
  async settle(): Promise<void> {
    await this.#files.settle();
  }

  /** Gives up what is being brought; what is here stays for the next start. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelSweep();
    for (const { abort } of this.#bringing.values()) abort.abort();
    await Promise.all([...this.#bringing.values()].map(({ done }) => done));
    await this.#files.settle();
  }

  #find(recordingUuid: string): CachedFile | undefined {
    return this.#taken.has(recordingUuid) ? undefined : this.#files.get(recordingUuid);
  }

  async #held(recordingUuid: string, { bytes }: CacheSource): Promise<string | undefined> {
    const file = this.#find(recordingUuid);
    return file?.bytes === bytes && (await this.#files.hold(file)) ? file.path : undefined;
  }

  #bring(recordingUuid: string, source: CacheSource): Bringing {
    const { clock, limits } = this.#options;
    const abort = new AbortController();
    const disarm = clock.at(clock.now() + limits.cacheFetchMaxMs, () => abort.abort());
    const done = this.#linkOrFetch(recordingUuid, source, abort.signal)
      .catch((error: unknown) => {
        if (!this.#closed && !this.#taken.has(recordingUuid)) this.#complain(error);
      })
      .finally(() => {
        disarm();
        this.#bringing.delete(recordingUuid);
      });
    const bringing = { abort, done };
    this.#bringing.set(recordingUuid, bringing);
    return bringing;
  }

  async #linkOrFetch(recordingUuid: string, { bytes, appUuid, object }: CacheSource, signal: AbortSignal): Promise<void> {
    const { folder, limits } = this.#options;
    const path = this.#files.newPath(recordingUuid);
    const spool = folder.wav(recordingUuid);
    if (await linked(spool, path)) {
      const file = { recordingUuid, path, bytes, linked: true, heldUntil: this.#heldFromNow() };
      await this.#arrived(file, signal);
      // The spool may have given it up before anybody could know of the link.
      if ((await sizeOf(spool)) === undefined) this.#files.own(file);
      await this.#files.settle();
      return;
    }
    // It may have been kept in this very moment.
    if (this.#files.get(recordingUuid) !== undefined || bytes > limits.cacheFetchMaxBytes) return;
    await this.#turns.run(appUuid, signal, () =>
      this.#files.withRoom(bytes, async () => {
        if (signal.aborted) return;
        const slices = object();
        const stop = () => void slices.close();
        signal.addEventListener('abort', stop);
        const draft = this.#files.draftOf(path);
        await download(draft, bytes, slices).finally(() => signal.removeEventListener('abort', stop));
        await rename(draft, path);
        await this.#arrived({ recordingUuid, path, bytes, linked: false, heldUntil: this.#heldFromNow() }, signal);
      }),
    );
  }

  async #arrived(file: CachedFile, signal: AbortSignal): Promise<void> {
    if (signal.aborted) await rm(file.path, { force: true });
    else this.#files.add(file);
  }

  #heldFromNow(): number {
    return this.#options.clock.now() + this.#options.limits.cacheHoldMs;
  }

  /**
   * Evicts from time to time, because files may have been held when they should have gone, and others fill the disk.
   */
  #armSweep(): void {
    const { clock, limits } = this.#options;
    this.#cancelSweep = clock.at(clock.now() + limits.sweepMs, () => {
      this.#files.settle().finally(() => {
        if (!this.#closed) this.#armSweep();
      });
    });
  }

  async #inTime(done: Promise<void>): Promise<void> {
    const { clock, limits } = this.#options;
    await withTimeLimit(done, limits.cacheWaitMs, () => {}, clock);
  }
}

/** Links a file of the spool to `path`. Resolves with false when the spool does not have it. */
async function linked(spool: string, path: string): Promise<boolean> {
  try {
    await link(spool, path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
