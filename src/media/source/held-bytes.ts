/** A stock of memory that applications share, of which one leaves something for the others. */
import { SOURCE_HELD_OF_APP_MAX_BYTES, SOURCE_HELD_TOTAL_MAX_BYTES } from '../../limits.ts';

/** Memory of a common stock. */
export interface MemoryShare {
  /** The application whose share it is; empty where it is nobody's. */
  readonly owner: string;
  /** Takes so many bytes. False: there are not as many. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

export class HeldBytes implements MemoryShare {
  readonly owner = '';
  readonly #maxBytes: number;
  readonly #ofAppMaxBytes: number;
  #used = 0;
  /** The bytes of the applications that hold some. */
  readonly #apps = new Map<string, number>();

  constructor(maxBytes = SOURCE_HELD_TOTAL_MAX_BYTES, ofAppMaxBytes = SOURCE_HELD_OF_APP_MAX_BYTES) {
    this.#maxBytes = maxBytes;
    this.#ofAppMaxBytes = ofAppMaxBytes;
  }

  get used(): number {
    return this.#used;
  }

  take(bytes: number): boolean {
    if (this.#used + bytes > this.#maxBytes) return false;
    this.#used += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#used -= bytes;
  }

  /** Whether so many more bytes are within the share of an application, be they free or not. */
  mayHave(appUuid: string, bytes: number): boolean {
    return (this.#apps.get(appUuid) ?? 0) + bytes <= this.#ofAppMaxBytes;
  }

  /** The share of an application. */
  of(appUuid: string): MemoryShare {
    const change = (bytes: number) => {
      const held = (this.#apps.get(appUuid) ?? 0) + bytes;
      if (held > 0) this.#apps.set(appUuid, held);
      else this.#apps.delete(appUuid);
    };
    return {
      owner: appUuid,
      take: (bytes) => {
        if (!this.mayHave(appUuid, bytes) || !this.take(bytes)) return false;
        change(bytes);
        return true;
      },
      give: (bytes) => {
        this.give(bytes);
        change(-bytes);
      },
    };
  }
}
