/**
 * A playlist as one stream of PCM: the sources follow each other without a gap, and a place in it is a place in the
 * whole, repeats included. What lies before the place is skipped by length where the length is known, and by counting
 * frames or samples where it is not.
 *
 * A pass of `LOOP_KEPT_MS` or less is repeated from memory. Otherwise a decoder is opened for each source of each pass,
 * and a file of one sample took a core. One from which a source was missing is repeated for about that long, and then
 * all are asked for again: its server may have been away for a moment.
 *
 * What can be heard is heard. A source that breaks off or gives nothing does not keep the next ones from being heard;
 * it is told at the end.
 */
import { DECODE_PIECE_MS, LOOP_KEPT_MS, PLAYER_AHEAD_MS } from '../../limits.ts';
import { decodeSteps } from '../decode/decode-steps.ts';
import { DecodeError, type DecodeStream } from '../decode/decoder.ts';
import type { AudioKind } from '../format/sniff.ts';
import { wavJump } from '../format/wav-jump.ts';
import { type AudioSource, type Jump, SourceLost } from '../source/audio-source.ts';
import { type OpenedSource, SourceList } from '../source/source-list.ts';
import { failureOf, PcmFailed, type PcmSource, type PcmTerms } from './pcm-source.ts';
import type { SharedSound } from './shared-sound.ts';
import { SharedSounds } from './shared-sounds.ts';

type Pcm = Int16Array<ArrayBuffer>;

/** The outcome of one source. */
interface Heard {
  /** Its length in samples, what was skipped included. */
  readonly length: number;
  /** Why it broke off or gave nothing. */
  readonly failure: PcmFailed | undefined;
  /** A list of which an entry could not be had: its length is another one where that is there again. */
  readonly lacksSome?: boolean;
}

/** The sound of a pass, as long as it is short. */
class KeptPass {
  readonly #mostSamples: number;
  readonly #pieces: Pcm[] = [];
  #samples = 0;

  /** A source could not be fetched, or not to its end. */
  lacksSome = false;

  constructor(mostSamples: number) {
    this.#mostSamples = mostSamples;
  }

  /** Whether something was heard, and no more than is kept. */
  get isWhole(): boolean {
    return this.#samples > 0 && this.#samples <= this.#mostSamples;
  }

  get pcm(): Pcm {
    const whole = new Int16Array(this.#samples);
    let at = 0;
    for (const piece of this.#pieces) {
      whole.set(piece, at);
      at += piece.length;
    }
    return whole;
  }

  /** How often it is heard again, where so many passes are left. */
  repeats(left: number): number {
    return this.lacksSome ? Math.min(left, Math.ceil(this.#mostSamples / this.#samples)) : left;
  }

  /** Notes what is about to be heard, and returns it. */
  keep(pcm: Pcm): Pcm {
    this.#samples += pcm.length;
    if (this.#samples <= this.#mostSamples) this.#pieces.push(pcm.slice());
    return pcm;
  }
}

export class FilesSource implements PcmSource {
  readonly aheadMs = PLAYER_AHEAD_MS;
  readonly pieceMs = DECODE_PIECE_MS;
  readonly live = false;
  readonly #sources: readonly OpenedSource[];
  readonly #terms: PcmTerms;
  readonly #sounds: SharedSounds;
  /** The lengths of the sources that were heard or skipped to their end, in samples. */
  readonly #lengths: (number | undefined)[] = [];
  /** Grows with each interruption: a reading of an earlier one is over. */
  #interruptions = 0;

  constructor(sources: readonly OpenedSource[], terms: PcmTerms, sounds = new SharedSounds(terms.decoders)) {
    this.#sources = sources;
    this.#terms = terms;
    this.#sounds = sounds;
  }

  async *pcm(from: number): AsyncGenerator<Pcm> {
    const { loop } = this.#terms;
    let position = 0;
    const reading = this.#interruptions;
    let failure: PcmFailed | undefined;
    for (let pass = 0; loop === 0 || pass < loop; pass++) {
      const began = position;
      const kept = new KeptPass(loop === 1 || from > position ? 0 : (this.#terms.rateHz * LOOP_KEPT_MS) / 1000);
      for (const [index, source] of this.#sources.entries()) {
        const known = this.#lengths[index];
        if (known !== undefined && from >= position + known) {
          position += known;
          continue;
        }
        const heard = yield* this.#opened(source, index, Math.max(0, from - position), kept);
        if (reading !== this.#interruptions) return;
        failure ??= heard.failure;
        this.#lengths[index] = heard.failure === undefined && heard.lacksSome !== true ? heard.length : undefined;
        position += heard.length;
      }
      const length = position - began;
      if (length === 0) break; // Nothing but empty files: there is no use in repeating them.
      const left = loop === 0 ? Infinity : loop - pass - 1;
      if (kept.isWhole) {
        const repeats = kept.repeats(left);
        yield* this.#repeated(kept.pcm, repeats);
        if (repeats === left || reading !== this.#interruptions) break;
        pass += repeats;
        position += repeats * length;
      } else if (from >= position + length) {
        const skipped = Math.min(left, Math.floor((from - position) / length));
        pass += skipped;
        position += skipped * length;
      }
    }
    if (failure !== undefined) throw failure;
  }

  interrupt(): void {
    this.#interruptions++;
    for (const source of this.#sources) source.interrupt();
  }

  /** What was heard of a whole pass, so many times more, in pieces that are not small. */
  async *#repeated(pass: Pcm, times: number): AsyncGenerator<Pcm> {
    const reading = this.#interruptions;
    const most = Math.ceil((this.#terms.rateHz * this.pieceMs) / 1000 / pass.length);
    const piece = new Int16Array(most * pass.length);
    for (let copy = 0; copy < most; copy++) piece.set(pass, copy * pass.length);
    for (let left = times; left > 0 && reading === this.#interruptions; left -= most)
      yield piece.slice(0, Math.min(left, most) * pass.length);
  }

  async *#opened(source: OpenedSource, index: number, skip: number, kept: KeptPass): AsyncGenerator<Pcm, Heard> {
    return source instanceof SourceList
      ? yield* this.#list(source, index, skip, kept)
      : yield* this.#source(source, index, skip, kept);
  }

  /** The sources a playlist names, as one: it has failed where none of them gives anything. */
  async *#list(list: SourceList, index: number, skip: number, kept: KeptPass): AsyncGenerator<Pcm, Heard> {
    const reading = this.#interruptions;
    let length = 0;
    let lacksSome = false;
    let failure: PcmFailed | undefined;
    for (let at = 0; at < list.length && reading === this.#interruptions; at++) {
      const source = await list.at(at).catch(() => undefined);
      if (reading !== this.#interruptions) break;
      if (source === undefined) {
        kept.lacksSome = true;
        failure ??= new PcmFailed('source_disconnected', index);
        continue;
      }
      const heard = yield* this.#opened(source, index, Math.max(0, skip - length), kept);
      failure ??= heard.failure;
      lacksSome ||= heard.lacksSome === true;
      length += heard.length;
    }
    lacksSome ||= failure?.reason === 'source_disconnected';
    return { length, failure: length > 0 ? undefined : failure, lacksSome };
  }

  /** One source from `skip` samples on. Throws `PcmFailed` for what is our own failure. */
  async *#source(source: AudioSource, index: number, skip: number, kept: KeptPass): AsyncGenerator<Pcm, Heard> {
    const reading = this.#interruptions;
    if (skip === 0) await source.prepare();
    if (reading !== this.#interruptions) return { length: 0, failure: undefined };
    const sound = this.#sounds.of(source.content, this.#terms.rateHz);
    if (sound === undefined || sound.samples < skip) return yield* this.#alone(source, index, skip, skip, kept);
    const heard = yield* this.#together(sound, index, skip, kept);
    if (typeof heard !== 'number') return heard;
    if (reading !== this.#interruptions) return { length: 0, failure: undefined };
    return yield* this.#alone(source, index, skip, heard, kept);
  }

  /**
   * The sound that is decoded for all who play the file. Returns the place from which it has to be decoded alone, where
   * there is more.
   */
  async *#together(sound: SharedSound, index: number, skip: number, kept: KeptPass): AsyncGenerator<Pcm, Heard | number> {
    let at = 0;
    sound.join();
    try {
      for (let piece = 0; ; piece++) {
        const pcm = await sound.piece(piece);
        if (pcm === undefined) return { length: sound.samples, failure: undefined };
        const from = Math.min(pcm.length, Math.max(0, skip - at));
        at += pcm.length;
        if (from < pcm.length) yield kept.keep(pcm.slice(from));
      }
    } catch (error) {
      if (!(error instanceof DecodeError)) return Math.max(skip, at);
      return { length: at > skip ? at : 0, failure: at > skip ? undefined : new PcmFailed('decode_error', index) };
    } finally {
      sound.leave();
    }
  }

  /** One source by a decoder of its own, from the place `from` on; from `skip` to there it was heard. */
  async *#alone(source: AudioSource, index: number, skip: number, from: number, kept: KeptPass): AsyncGenerator<Pcm, Heard> {
    const { decoders, rateHz } = this.#terms;
    let decoder: DecodeStream | undefined;
    let kind: AudioKind | undefined;
    let heard = from - skip;
    /** The samples of what was left out, or of another kind before. */
    let before = 0;
    try {
      const jump: Jump = {
        find: (first) => wavJump(first, from, rateHz),
        taken: ({ samples }) => {
          before = samples;
        },
      };
      for await (const chunk of source.bytes(jump)) {
        if (decoder !== undefined && source.kind !== kind) {
          const { pcm, samples } = await decoder.end();
          before += samples;
          heard += pcm.length;
          if (pcm.length > 0) yield kept.keep(pcm);
          decoder.close();
          decoder = undefined;
        }
        kind = source.kind;
        decoder ??= await decoders.open(kind, rateHz, Math.max(0, from - before));
        for await (const pcm of decodeSteps(decoder, chunk, rateHz)) {
          heard += pcm.length;
          yield kept.keep(pcm);
        }
      }
      if (decoder === undefined) return { length: 0, failure: undefined };
      const { pcm, samples } = await decoder.end();
      if (pcm.length > 0) yield kept.keep(pcm);
      return { length: before + samples, failure: undefined };
    } catch (error) {
      const length = heard === 0 ? 0 : skip + heard;
      if (error instanceof SourceLost) {
        kept.lacksSome = true;
        return { length, failure: new PcmFailed('source_disconnected', index) };
      }
      if (!(error instanceof DecodeError)) throw new PcmFailed(failureOf(error), index);
      return { length, failure: heard > 0 ? undefined : new PcmFailed('decode_error', index) };
    } finally {
      decoder?.close();
    }
  }
}
