/**
 * The sounds of the files that are shared, within their memory, of which one takes half at most. The oldest of those
 * that nobody plays go first.
 */
import { SOUNDS_MAX_BYTES } from '../../limits.ts';
import type { DecoderThread } from '../decode/decoder.ts';
import type { SharedContent } from '../source/shared-content.ts';
import { SharedSound } from './shared-sound.ts';

export class SharedSounds {
  readonly #decoders: DecoderThread;
  readonly #maxBytes: number;
  /** The sounds of a file, by their rate. */
  readonly #byContent = new WeakMap<SharedContent, Map<number, SharedSound>>();
  /** How those that have memory are forgotten, from the one that was begun with longest ago on. */
  readonly #drops = new Map<SharedSound, () => void>();
  #bytes = 0;

  /** `maxBytes` is the memory of all. Tests alone have a reason to name it. */
  constructor(decoders: DecoderThread, maxBytes = SOUNDS_MAX_BYTES) {
    this.#decoders = decoders;
    this.#maxBytes = maxBytes;
  }

  /** The memory of all. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The sound of a file at a rate; undefined where the file is not shared. */
  of(content: SharedContent | undefined, rateHz: number): SharedSound | undefined {
    if (content === undefined) return undefined;
    const rates = this.#byContent.get(content) ?? new Map<number, SharedSound>();
    this.#byContent.set(content, rates);
    const known = rates.get(rateHz);
    if (known === undefined) return this.#begun(content, rateHz, rates);
    const drop = this.#drops.get(known);
    if (drop !== undefined) {
      this.#drops.delete(known);
      this.#drops.set(known, drop);
    }
    return known;
  }

  #begun(content: SharedContent, rateHz: number, rates: Map<number, SharedSound>): SharedSound {
    const drop = () => {
      rates.delete(rateHz);
      this.#drops.delete(sound);
      this.#bytes -= sound.bytes;
    };
    const take = (bytes: number) => {
      if (sound.bytes + bytes > this.#maxBytes / 2 || !this.#hasRoom(bytes)) return false;
      this.#drops.set(sound, drop);
      this.#bytes += bytes;
      return true;
    };
    const sound = new SharedSound({ content, rateHz, decoders: this.#decoders, take, dropped: drop });
    rates.set(rateHz, sound);
    return sound;
  }

  #hasRoom(bytes: number): boolean {
    for (const [sound, drop] of this.#drops) {
      if (this.#bytes + bytes <= this.#maxBytes) break;
      if (sound.users === 0) drop();
    }
    return this.#bytes + bytes <= this.#maxBytes;
  }
}
