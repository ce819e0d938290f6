/** Whether there is room on the disk for a further recording, asked at most once a second. */
import { statfs } from 'node:fs/promises';
import type { Clock } from '../../clock.ts';
import type { StorageLimits } from '../storage-limits.ts';

export class DiskSpace {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #limits: Pick<StorageLimits, 'diskFreeMinBytes' | 'admissionCacheMs'>;
  #answer: Promise<boolean> | undefined;
  #until = 0;

  constructor(folder: string, clock: Clock, limits: Pick<StorageLimits, 'diskFreeMinBytes' | 'admissionCacheMs'>) {
    this.#folder = folder;
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Tells whether a recording may begin. A disk that cannot be asked has no room. It never rejects. */
  hasRoom(): Promise<boolean> {
    const now = this.#clock.now();
    if (this.#answer === undefined || now >= this.#until) {
      this.#until = now + this.#limits.admissionCacheMs;
      this.#answer = freeBytes(this.#folder).then(
        (free) => free >= this.#limits.diskFreeMinBytes,
        () => false,
      );
    }
    return this.#answer;
  }
}

/** Bytes this user may still write to the disk of that folder. Rejects where it cannot be asked. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
