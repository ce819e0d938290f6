/** Whether there is room on the disk for a further recording, asked at most once a second. */
import { statfs } from 'node:fs/promises';
import type { Clock } from '../clock.ts';
import { RECORDING_ADMISSION_CACHE_MS } from '../limits.ts';

export class DiskSpace {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #leastBytes: number;
  #answer: Promise<boolean> | undefined;
  #until = 0;

  constructor(folder: string, clock: Clock, leastBytes: number) {
    this.#folder = folder;
    this.#clock = clock;
    this.#leastBytes = leastBytes;
  }

  /** False too where the disk cannot be asked. Never rejects. */
  hasRoom(): Promise<boolean> {
    const now = this.#clock.now();
    if (this.#answer === undefined || now >= this.#until) {
      this.#until = now + RECORDING_ADMISSION_CACHE_MS;
      this.#answer = statfs(this.#folder).then(
        ({ bavail, bsize }) => bavail * bsize >= this.#leastBytes,
        () => false,
      );
    }
    return this.#answer;
  }
}
