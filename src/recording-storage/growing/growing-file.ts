/**
 * Recordings that are being written, followed by any number of readers. Readers of one file share its descriptor, one
 * look at its size every so often, and the bytes that all of them are at; each keeps only its place. A file that is
 * there is read whatever becomes of its name.
 */
import { close, fstatSync, open, read } from 'node:fs';
import { type Clock, sleep } from '../../clock.ts';
import { GROWING_FILE_POLL_MS, GROWING_FILE_WAIT_MS, RECORDING_READ_SLICE_BYTES } from '../../limits.ts';
import { isMissing } from '../file/local-file.ts';

const WAV_HEADER_BYTES = 44;
const SAMPLE_BYTES = 2;

interface GrowingSource {
  readonly path: string;
  /** Tells whether the file is whole. Nothing is written to it after that. */
  over(): boolean;
}

/** The place of one reader. */
interface GrowingReader {
  /** The header of the file, with the sizes of one that has no end yet. */
  readonly header: Uint8Array;
  /**
   * The next bytes, as soon as there are any. Undefined: the file is over, and that was all; or it was closed. Rejects
   * on errors of the disk.
   */
  next(): Promise<Uint8Array | undefined>;
  /** May be called at any time, more than once. */
  close(): void;
}

/** The place where a reader begins: `pull` at the first sample, `live` where the file ends now. */
type GrowingStart = 'pull' | 'live';

export class GrowingFiles {
  readonly #clock: Clock;
  readonly #tell: ((path: string, followed: boolean) => void) | undefined;
  readonly #followed = new Map<string, Followed>();
  #polling = false;

  /**
   * Makes the files that are followed. `tell` is called when a file has a first reader, or none any more. It is written
   * in shorter steps in between.
   */
  constructor(clock: Clock, tell?: (path: string, followed: boolean) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  /** Descriptors that are held. */
  get size(): number {
    return this.#followed.size;
  }

  /**
   * Waits for the file to begin. Undefined: it is over, and has no audio. Rejects where it does not begin in time, or
   * cannot be read.
   */
  async follow(source: GrowingSource, start: GrowingStart): Promise<GrowingReader | undefined> {
    const deadline = this.#clock.now() + GROWING_FILE_WAIT_MS;
    for (;;) {
      const over = source.over();
      const followed = await this.#open(source);
      if (followed !== undefined) {
        const header = await this.#header(followed);
        if (header !== undefined) {
          // What was recorded before anyone listened is written first: the end of the file is then where the recording
          // is.
          if (start === 'live') await followed.caughtUp;
          return this.#reader(followed, header, start);
        }
        this.#release(followed);
      }
      if (over) return undefined;
      if (this.#clock.now() >= deadline) throw new Error('a recording has not begun to be written');
      await this.#pause();
    }
  }

  #pause(): Promise<void> {
    return sleep(this.#clock, GROWING_FILE_POLL_MS);
  }

  /** Counts one use more of the file. Undefined when there is no file. */
  async #open(source: GrowingSource): Promise<Followed | undefined> {
    const known = this.#followed.get(source.path);
    if (known !== undefined) {
      known.uses++;
      return known;
    }
    const fd = await openFile(source.path);
    if (fd === undefined) return undefined;
    // Someone else may have opened it meanwhile.
    const other = this.#followed.get(source.path);
    if (other !== undefined) {
      close(fd);
      other.uses++;
      return other;
    }
    this.#tell?.(source.path, true);
    const followed = new Followed(source, fd, this.#tell === undefined ? Promise.resolve() : this.#pause());
    this.#followed.set(source.path, followed);
    return followed;
  }

  #release(followed: Followed): void {
    followed.uses--;
    if (followed.uses > 0) return;
    this.#followed.delete(followed.source.path);
    followed.close();
    this.#tell?.(followed.source.path, false);
  }

  async #header(followed: Followed): Promise<Uint8Array | undefined> {
    try {
      followed.look();
      if (followed.size < WAV_HEADER_BYTES) return undefined;
      const header = new Uint8Array(await followed.read(0, WAV_HEADER_BYTES));
      if (header.length < WAV_HEADER_BYTES) return undefined;
      // RIFF and data sizes of a stream: however soon it ends, it had no end when this began.
      header.fill(0xff, 4, 8);
      header.fill(0xff, 40, 44);
      return header;
    } catch (error) {
      this.#release(followed);
      throw error;
    }
  }

  #reader(followed: Followed, header: Uint8Array, start: GrowingStart): GrowingReader {
    let at = WAV_HEADER_BYTES;
    if (start === 'live') {
      followed.look();
      at += Math.floor((followed.size - WAV_HEADER_BYTES) / SAMPLE_BYTES) * SAMPLE_BYTES;
    }
    let closed = false;
    let wake: (() => void) | undefined;
    this.#poll();
    return {
      header,
      next: async () => {
        while (!closed) {
          if (followed.size > at) {
            const bytes = await followed.read(at, Math.min(followed.size, at + RECORDING_READ_SLICE_BYTES));
            if (closed || bytes.length === 0) return undefined;
            at += bytes.length;
            return bytes;
          }
          if (followed.over) return undefined;
          await new Promise<void>((resolve) => {
            wake = resolve;
            followed.waiting.add(resolve);
          });
        }
        return undefined;
      },
      close: () => {
        if (closed) return;
        closed = true;
        if (wake !== undefined) {
          followed.waiting.delete(wake);
          wake();
        }
        this.#release(followed);
      },
    };
  }

  /** While files are followed, looks at those that someone waits for. */
  #poll(): void {
    if (this.#polling) return;
    this.#polling = true;
    this.#clock.at(this.#clock.now() + GROWING_FILE_POLL_MS, () => {
      this.#polling = false;
      for (const followed of this.#followed.values()) if (followed.waiting.size > 0) followed.look();
      if (this.#followed.size > 0) this.#poll();
    });
  }
}

/** A file with its descriptor, and how much of it there is. */
class Followed {
  readonly source: GrowingSource;
  readonly #fd: number;
  /** Resolves when everything is in the file that was recorded before it was followed. */
  readonly caughtUp: Promise<void>;
  uses = 1;
  size = 0;
  /** Whether `size` is final. */
  over = false;
  readonly waiting = new Set<() => void>();
  #reading = 0;
  #closed = false;
  /** The bytes that were read last, for readers at the same place. */
  #last: { readonly start: number; readonly end: number; readonly bytes: Promise<Uint8Array> } | undefined;

  constructor(source: GrowingSource, fd: number, caughtUp: Promise<void>) {
    this.source = source;
    this.#fd = fd;
    this.caughtUp = caughtUp;
  }

  /** Wakes who waits, where there is more or no more. */
  look(): void {
    // This comes before the size, which then has all that was written before the file was over.
    const over = this.source.over();
    // A stat of an open file waits for no disk.
    const { size } = fstatSync(this.#fd);
    if (size <= this.size && !over) return;
    this.size = Math.max(this.size, size);
    this.over = over;
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }

  /** Bytes `start` to `end`, or as many as were read at once. */
  read(start: number, end: number): Promise<Uint8Array> {
    if (this.#last?.start === start && this.#last.end === end) return this.#last.bytes;
    const bytes = this.#read(start, end);
    this.#last = { start, end, bytes };
    return bytes;
  }

  #read(start: number, end: number): Promise<Uint8Array> {
    if (this.#closed) return Promise.resolve(new Uint8Array());
    this.#reading++;
    return new Promise((resolve, reject) => {
      const into = new Uint8Array(end - start);
      read(this.#fd, into, 0, into.length, start, (error, count) => {
        this.#reading--;
        if (this.#closed) this.close();
        if (error) reject(error);
        else resolve(into.subarray(0, count));
      });
    });
  }

  /** Its number may be another file's as soon as it is closed: a read that is under way comes first. */
  close(): void {
    this.#closed = true;
    if (this.#reading === 0) close(this.#fd);
  }
}

const openFile = (path: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    open(path, 'r', (error, fd) => {
      if (error === null) resolve(fd);
      else if (isMissing(error)) resolve(undefined);
      else reject(error);
    });
  });
