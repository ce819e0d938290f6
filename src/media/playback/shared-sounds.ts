/**
 * The sounds of the files that are shared, within their memory, of which one takes half at most, and those of the files
 * of one application three quarters. Of those that nobody plays the ones go first that were begun with longest ago.
 */
import { SOUNDS_MAX_BYTES, SOUNDS_OF_APP_SHARE } from '../../limits.ts';
import type { Decoders } from '../decode/decoder.ts';
import { HeldBytes } from '../source/held-bytes.ts';
import type { SharedContent } from '../source/shared-content.ts';
import { SharedSound } from './shared-sound.ts';

interface Kept {
  /** The application whose file it is. */
  readonly owner: string;
  /** Forgets it. */
  readonly drop: () => void;
}

export class SharedSounds {
  readonly #decoders: Decoders;
  readonly #maxBytes: number;
  /** The sounds of a file, by their rate. */
  readonly #byContent = new WeakMap<SharedContent, Map<number, SharedSound>>();
  /** The sounds that have memory, from the one that was begun with longest ago on. */
  readonly #kept = new Map<SharedSound, Kept>();
  readonly #memory: HeldBytes;

  /** `maxBytes` is the memory of all. Tests alone have a reason to name it. */
  constructor(decoders: Decoders, maxBytes = SOUNDS_MAX_BYTES) {
    this.#decoders = decoders;
    this.#maxBytes = maxBytes;
    this.#memory = new HeldBytes(maxBytes, SOUNDS_OF_APP_SHARE * maxBytes);
  }

  /** The memory of all. */
  get bytes(): number {
    return this.#memory.used;
  }

  /** The sound of a file at a rate; undefined where the file is not shared. */
  of(content: SharedContent | undefined, rateHz: number): SharedSound | undefined {
    if (content === undefined) return undefined;
    const rates = this.#byContent.get(content) ?? new Map<number, SharedSound>();
    this.#byContent.set(content, rates);
    const known = rates.get(rateHz);
    if (known === undefined) return this.#begun(content, rateHz, rates);
    const kept = this.#kept.get(known);
    if (kept !== undefined) {
      this.#kept.delete(known);
      this.#kept.set(known, kept);
    }
    return known;
  }

  #begun(content: SharedContent, rateHz: number, rates: Map<number, SharedSound>): SharedSound {
    const { owner } = content;
    const memory = this.#memory.of(owner);
    const drop = () => {
      rates.delete(rateHz);
      this.#kept.delete(sound);
      memory.give(sound.bytes);
    };
    const take = (bytes: number) => {
      if (sound.bytes + bytes > this.#maxBytes / 2) return false;
      this.#makeRoom(owner, bytes);
      if (!memory.take(bytes)) return false;
      this.#kept.set(sound, { owner, drop });
      return true;
    };
    const sound = new SharedSound({ content, rateHz, decoders: this.#decoders.of(owner), take, dropped: drop });
    rates.set(rateHz, sound);
    return sound;
  }

  /** Drops sounds that nobody plays: those of the owner's files where it has its share, else those of all. */
  #makeRoom(owner: string, bytes: number): void {
    for (const [sound, kept] of this.#kept) {
      const isOver = !this.#memory.mayHave(owner, bytes);
      if (!isOver && this.bytes + bytes <= this.#maxBytes) return;
      if (sound.users === 0 && (!isOver || kept.owner === owner)) kept.drop();
    }
  }
}
