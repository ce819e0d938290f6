/** The memory that the sources of one engine hold together, and each application of it. */
import { SOURCE_HELD_OF_APP_MAX_BYTES, SOURCE_HELD_TOTAL_MAX_BYTES } from '../../limits.ts';

/** Memory of a common stock. */
export interface MemoryShare {
  /** Takes so many bytes. False: there are not as many. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

export class HeldBytes implements MemoryShare {
  #used = 0;
  /** The bytes of the applications that hold some. */
  readonly #apps = new Map<string, number>();

  take(bytes: number): boolean {
    if (this.#used + bytes > SOURCE_HELD_TOTAL_MAX_BYTES) return false;
    this.#used += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#used -= bytes;
  }

  /** The share of an application, which leaves something for the others. */
  of(appUuid: string): MemoryShare {
    const change = (bytes: number) => {
      const held = (this.#apps.get(appUuid) ?? 0) + bytes;
      if (held > 0) this.#apps.set(appUuid, held);
      else this.#apps.delete(appUuid);
    };
    return {
      take: (bytes) => {
        if ((this.#apps.get(appUuid) ?? 0) + bytes > SOURCE_HELD_OF_APP_MAX_BYTES || !this.take(bytes)) return false;
        change(bytes);
        return true;
      },
      give: (bytes) => {
        this.give(bytes);
        change(-bytes);
      },
    };
  }

  get used(): number {
    return this.#used;
  }
}
