/**
 * A playlist as one stream of PCM: the sources follow each other without a gap, and a place in it is a place in the whole, repeats included. What
 * lies before the place is skipped by length where the length is known, and by counting frames or samples where it is not.
 */
import { DECODE_STEP_BYTES, PLAYER_AHEAD_MS } from '../../limits.ts';
import type { DecodeStream } from '../decode/decoder.ts';
import { type Source, SourceLost } from '../source/source.ts';
import { failureOf, type Reel, ReelBroken, type ReelTerms } from './pcm-source.ts';

export class FilesReel implements Reel {
  readonly aheadMs = PLAYER_AHEAD_MS;
  readonly pieceMs = 500;
  readonly live = false;
  readonly #sources: readonly Source[];
  readonly #terms: ReelTerms;
  /** In samples, of the sources that were heard or skipped to their end. */
  readonly #lengths: (number | undefined)[] = [];

  constructor(sources: readonly Source[], terms: ReelTerms) {
    this.#sources = sources;
    this.#terms = terms;
  }

  async *pcm(from: number): AsyncGenerator<Int16Array<ArrayBuffer>> {
    const { loop } = this.#terms;
    let position = 0;
    for (let pass = 0; loop === 0 || pass < loop; pass++) {
      const began = position;
      for (const [index, source] of this.#sources.entries()) {
        const known = this.#lengths[index];
        if (known !== undefined && from >= position + known) {
          position += known;
          continue;
        }
        const length = yield* this.#source(source, index, Math.max(0, from - position));
        this.#lengths[index] = length;
        position += length;
      }
      const length = position - began;
      if (length === 0) return; // nothing but empty files: no use in looping
      if (from >= position + length) {
        const left = loop === 0 ? Infinity : loop - pass - 1;
        const skipped = Math.min(left, Math.floor((from - position) / length));
        pass += skipped;
        position += skipped * length;
      }
    }
  }

  interrupt(): void {
    for (const source of this.#sources) source.interrupt();
  }

  /** One source from `skip` samples on; returns its whole length. */
  async *#source(source: Source, index: number, skip: number): AsyncGenerator<Int16Array<ArrayBuffer>, number> {
    const { decoders, rateHz } = this.#terms;
    let decoder: DecodeStream | undefined;
    try {
      for await (const chunk of source.bytes()) {
        decoder ??= await decoders.open(source.kind, rateHz, skip);
        for (let at = 0; at < chunk.length; at += DECODE_STEP_BYTES) {
          const pcm = await decoder.push(new Uint8Array(chunk.subarray(at, at + DECODE_STEP_BYTES)));
          if (pcm.length > 0) yield pcm;
        }
      }
      if (decoder === undefined) return 0;
      const { pcm, samples } = await decoder.end();
      if (pcm.length > 0) yield pcm;
      return samples;
    } catch (error) {
      throw new ReelBroken(error instanceof SourceLost ? 'source_disconnected' : failureOf(error), index);
    } finally {
      decoder?.close();
    }
  }
}
