/**
 * The files of the cache, the least recently used first, and their bounds. Each has a name of its own (`<recording>.<8
 * hex digits>.wav`), so that one that goes is never confused with one that comes. A linked file is the spool's, and
 * counts as nothing here until the spool gives it up.
 */
import { randomBytes } from 'node:crypto';
import { chmod, lstat, mkdir, opendir, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../clock.ts';
import { freeBytes } from '../file/disk-space.ts';
import { sizeOf } from '../file/local-file.ts';
import type { RecordingFolder } from '../file/recording-folder.ts';
import type { StorageLimits } from '../storage-limits.ts';
import { isWholeWav } from '../upload/spool-file.ts';

export interface CachedFile {
  readonly recordingUuid: string;
  readonly path: string;
  readonly bytes: number;
  /** The spool has it as well. */
  linked: boolean;
  /** The file is not evicted before this time (milliseconds since the epoch). */
  heldUntil: number;
  /** Left by a former process, and not looked into since. */
  unproven?: boolean;
}

interface CachedFilesOptions {
  readonly folder: RecordingFolder;
  readonly clock: Clock;
  readonly limits: StorageLimits;
  /** A file could not be removed. */
  readonly complain: (error: unknown) => void;
}

const NAME = /^([A-Za-z0-9_-]{1,64})\.[0-9a-f]{8}\.(wav|new)$/;

export class CachedFiles {
  readonly #options: CachedFilesOptions;
  readonly #all = new Map<string, CachedFile>();
  #bytes = 0;
  readonly #reserved = { bytes: 0, files: 0 };
  #settling: Promise<boolean> = Promise.resolve(true);
  #settlingNext: Promise<boolean> | undefined;

  private constructor(options: CachedFilesOptions) {
    this.#options = options;
  }

  /**
   * Makes the folder, readable by its owner only, or takes over what a former process left in it. Rejects where that
   * cannot be.
   */
  static async make(options: CachedFilesOptions): Promise<CachedFiles> {
    const path = options.folder.cache;
    await mkdir(path, { recursive: true, mode: 0o700 });
    await chmod(path, 0o700);
    const files = new CachedFiles(options);
    await files.#takeOver();
    await files.settle();
    return files;
  }

  get(recordingUuid: string): CachedFile | undefined {
    return this.#all.get(recordingUuid);
  }

  /** Names a path for a recording that is not here yet. */
  newPath(recordingUuid: string): string {
    return join(this.#options.folder.cache, `${recordingUuid}.${randomBytes(4).toString('hex')}.wav`);
  }

  /** Names the draft of a file that is being written. */
  draftOf(path: string): string {
    return path.replace(/wav$/, 'new');
  }

  /** Whoever came first stays; the other file goes. */
  add(file: CachedFile): void {
    const known = this.#all.get(file.recordingUuid);
    if (known !== undefined) {
      void this.#remove(file);
      if (!file.linked) this.own(known);
      return;
    }
    this.#all.set(file.recordingUuid, file);
    this.#bytes += this.#weight(file);
  }

  /** The spool has given it up. */
  own(file: CachedFile): void {
    if (this.#all.get(file.recordingUuid) !== file) return;
    this.#bytes -= this.#weight(file);
    file.linked = false;
    this.#bytes += this.#weight(file);
  }

  /** It is not to be found any more; the file itself is left to the caller. */
  forget(file: CachedFile): void {
    this.#all.delete(file.recordingUuid);
    this.#bytes -= this.#weight(file);
  }

  /** It is used now, and stays for some seconds. False: it is not there any more, or is leaving. */
  async hold(file: CachedFile): Promise<boolean> {
    if (this.#isPassing(file)) return false;
    this.#used(file);
    this.#all.delete(file.recordingUuid);
    this.#all.set(file.recordingUuid, file);
    const now = this.#options.clock.now() / 1000;
    // So that the next process knows in which order they were used.
    const noted = utimes(file.path, now, now).catch(() => {});
    const [isThere] = await Promise.all([this.isThere(file), noted]);
    if (!isThere || this.#all.get(file.recordingUuid) !== file) return false;
    this.#used(file);
    return true;
  }

  /** Tells whether the file is whole. It forgets one that someone, or a crash, has deleted or cut. */
  async isThere(file: CachedFile): Promise<boolean> {
    const { path, bytes, unproven } = file;
    const isThere = await Promise.all([sizeOf(path), unproven ? isWholeWav(path) : true]).then(
      ([size, isWhole]) => size === bytes && isWhole,
      () => false,
    );
    if (isThere) file.unproven = false;
    else if (this.#all.get(file.recordingUuid) === file) await this.#drop(file);
    return isThere;
  }

  /** Keeps room for a file while it is being written. Undefined: there is none. */
  async withRoom<T>(bytes: number, write: () => Promise<T>): Promise<T | undefined> {
    if (bytes > this.#options.limits.cacheMaxBytes) return undefined;
    this.#reserved.bytes += bytes;
    this.#reserved.files++;
    try {
      return (await this.settle()) ? await write() : undefined;
    } finally {
      this.#reserved.bytes -= bytes;
      this.#reserved.files--;
    }
  }

  /** Evicts until all bounds hold. False: they cannot, for what is held. Never rejects. */
  settle(): Promise<boolean> {
    // Who comes before it begins is seen to by the same.
    this.#settlingNext ??= this.#settling.then(() => {
      this.#settlingNext = undefined;
      return this.#evict();
    });
    this.#settling = this.#settlingNext;
    return this.#settlingNext;
  }

  async #evict(): Promise<boolean> {
    const { folder, clock, limits } = this.#options;
    const isHeld = ({ heldUntil }: CachedFile) => heldUntil > clock.now();
    const isOver = () =>
      this.#bytes + this.#reserved.bytes > limits.cacheMaxBytes || this.#all.size + this.#reserved.files > limits.cacheMaxFiles;
    for (const file of this.#all.values()) if (this.#isPassing(file) && !isHeld(file)) await this.#drop(file);
    for (const file of this.#all.values()) {
      if (!isOver()) break;
      if (!isHeld(file)) await this.#drop(file);
    }
    const free = await freeBytes(folder.cache).catch(() => 0);
    let short = limits.cacheDiskFreeMinBytes + this.#reserved.bytes - free;
    for (const file of this.#all.values()) {
      if (short <= 0) break;
      if (isHeld(file) || file.linked) continue;
      short -= file.bytes;
      await this.#drop(file);
    }
    return !isOver() && short <= 0;
  }

  async #takeOver(): Promise<void> {
    const { folder } = this.#options;
    const found: { readonly file: CachedFile; readonly usedAt: number }[] = [];
    for await (const { name } of await opendir(folder.cache)) {
      const [, recordingUuid, kind] = NAME.exec(name) ?? [];
      if (recordingUuid === undefined) continue;
      const path = join(folder.cache, name);
      if (kind === 'new') {
        await rm(path, { force: true });
        continue;
      }
      const { size: bytes, mtimeMs: usedAt, nlink } = await lstat(path);
      const linked = nlink > 1 && (await sizeOf(folder.wav(recordingUuid))) !== undefined;
      found.push({ file: { recordingUuid, path, bytes, linked, heldUntil: 0, unproven: true }, usedAt });
    }
    for (const { file } of found.sort((one, other) => one.usedAt - other.usedAt)) this.add(file);
  }

  #used(file: CachedFile): void {
    file.heldUntil = this.#options.clock.now() + this.#options.limits.cacheHoldMs;
  }

  async #drop(file: CachedFile): Promise<void> {
    this.forget(file);
    await this.#remove(file);
  }

  #remove({ path }: CachedFile): Promise<void> {
    return rm(path, { force: true }).catch(this.#options.complain);
  }

  /**
   * Larger than all of the cache, and here only because the spool had it: it goes as soon as it can, and no other for
   * it.
   */
  #isPassing({ linked, bytes }: CachedFile): boolean {
    return !linked && bytes > this.#options.limits.cacheMaxBytes;
  }

  #weight(file: CachedFile): number {
    return file.linked || this.#isPassing(file) ? 0 : file.bytes;
  }
}
