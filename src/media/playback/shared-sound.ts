/**
 * The sound of a shared file at one rate, decoded once for all that play it: as far as the one that is furthest has
 * come, and a step more.
 */
import { decodeSteps } from '../decode/decode-steps.ts';
import { DecodeError, type Decoders } from '../decode/decoder.ts';
import type { SharedContent } from '../source/shared-content.ts';

type Pcm = Int16Array<ArrayBuffer>;

/** The sound is not shared any more. Who reads it decodes the rest alone. */
export class NotShared extends Error {
  override readonly name = 'NotShared';
}

interface SoundTerms {
  readonly content: SharedContent;
  readonly rateHz: number;
  readonly decoders: Decoders;
  /** Takes memory. It returns false where there is none. */
  readonly take: (bytes: number) => boolean;
  /** It is not shared any more, and its memory is free. */
  readonly dropped: () => void;
}

export class SharedSound {
  readonly #take: SoundTerms['take'];
  readonly #dropped: SoundTerms['dropped'];
  #pieces: Pcm[] = [];
  #samples = 0;
  #bytes = 0;
  #users = 0;
  /** The reading of the file; undefined once it is over. It alone keeps the file in memory. */
  #decoding: AsyncGenerator<Pcm> | undefined;
  /** The step under way. */
  #step: Promise<void> | undefined;
  /** Why there is no more than the pieces; undefined where they are all. */
  #failure: DecodeError | NotShared | undefined;

  constructor({ content, rateHz, decoders, take, dropped }: SoundTerms) {
    this.#take = take;
    this.#dropped = dropped;
    this.#decoding = decoded(content, rateHz, decoders);
  }

  /** Samples so far; once it is over, its length. */
  get samples(): number {
    return this.#samples;
  }

  /** The memory of its pieces. */
  get bytes(): number {
    return this.#bytes;
  }

  get users(): number {
    return this.#users;
  }

  join(): void {
    this.#users++;
  }

  /** A user that has joined goes. What is not decoded to its end is given up with the last one. */
  leave(): void {
    this.#users--;
    if (this.#users === 0) this.#end(new NotShared('nobody plays it'));
  }

  /**
   * A piece by its number, undefined behind the last one. It must not be changed. Rejects with `DecodeError` where the
   * rest is damaged, and with `NotShared`.
   */
  async piece(at: number): Promise<Pcm | undefined> {
    for (;;) {
      const piece = this.#pieces[at];
      if (piece !== undefined) return piece;
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#decoding === undefined) return undefined;
      this.#step ??= this.#advance(this.#decoding).finally(() => {
        this.#step = undefined;
      });
      await this.#step;
    }
  }

  async #advance(decoding: AsyncGenerator<Pcm>): Promise<void> {
    try {
      const { value, done } = await decoding.next();
      if (this.#decoding === undefined) return;
      if (done === true) this.#end(undefined);
      else if (this.#take(value.byteLength)) {
        this.#pieces.push(value);
        this.#samples += value.length;
        this.#bytes += value.byteLength;
      } else this.#end(new NotShared('no room'));
    } catch (error) {
      this.#end(error instanceof DecodeError ? error : new NotShared('it broke off'));
    }
  }

  /** Ends the decoding, if it is not over yet. */
  #end(failure: DecodeError | NotShared | undefined): void {
    const decoding = this.#decoding;
    if (decoding === undefined) return;
    this.#decoding = undefined;
    this.#failure = failure;
    void decoding.return(undefined); // It closes the decoder, after the step under way.
    if (!(failure instanceof NotShared)) return;
    this.#pieces = [];
    this.#dropped();
  }
}

async function* decoded(content: SharedContent, rateHz: number, decoders: Decoders): AsyncGenerator<Pcm> {
  const decoder = await decoders.open(content.kind, rateHz);
  try {
    for await (const chunk of content.bytes()) yield* decodeSteps(decoder, chunk, rateHz);
    yield (await decoder.end()).pcm;
  } finally {
    decoder.close();
  }
}
