/**
 * Readers of finished recordings that the server sends from a file by itself. It tells nobody when it is done, only
 * whether a request is still open: that is asked where a place is wanted and none is free, and every so often.
 */
import { Shares } from '../bounds/shares.ts';
import type { Clock } from '../clock.ts';
import { FILE_READER_SHARES, FILE_READERS_LOOK_MS, FILE_READERS_SWEEP_MS } from '../limits.ts';

interface Reader {
  readonly appUuid: string;
  isOpen(): boolean;
}

export class FileReaders {
  readonly #clock: Clock;
  readonly #shares: Shares;
  readonly #all = new Set<Reader>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #sweeping = false;

  constructor(clock: Clock, limits = FILE_READER_SHARES) {
    this.#clock = clock;
    this.#shares = new Shares(limits);
  }

  /** Readers that had a place when that was looked at last. */
  get size(): number {
    return this.#all.size;
  }

  /**
   * A place for one more reader, for as long as it is open. Returns what gives the place back before that. Undefined:
   * its application has its share, or there is none.
   */
  admit(reader: Reader): (() => void) | undefined {
    if (!this.#shares.take(reader.appUuid)) {
      const now = this.#clock.now();
      // A caller that is refused asks again and again, and a look goes through all readers.
      if (now - this.#lookedAt < FILE_READERS_LOOK_MS) return undefined;
      this.#look();
      if (!this.#shares.take(reader.appUuid)) return undefined;
    }
    this.#all.add(reader);
    this.#sweep();
    return () => this.#leave(reader);
  }

  #leave(reader: Reader): void {
    if (this.#all.delete(reader)) this.#shares.give(reader.appUuid);
  }

  #look(): void {
    this.#lookedAt = this.#clock.now();
    for (const reader of this.#all) if (!reader.isOpen()) this.#leave(reader);
  }

  /** Looks from time to time, for as long as there is anyone: what is kept of a request is not small. */
  #sweep(): void {
    if (this.#sweeping) return;
    this.#sweeping = true;
    this.#clock.at(this.#clock.now() + FILE_READERS_SWEEP_MS, () => {
      this.#sweeping = false;
      this.#look();
      if (this.#all.size > 0) this.#sweep();
    });
  }
}
