/**
 * The last step of every decoder: sound of any rate and number of channels becomes 16-bit mono at the rate of the leg.
 */
import { DECODE_STEP_MAX_SAMPLES, DECODE_STEP_MAX_SOURCE_SAMPLES } from '../../limits.ts';
import { native, type PcmHandle } from '../native.ts';

export type Pcm = Int16Array<ArrayBuffer>;

export const NO_PCM: Pcm = new Int16Array(0);
/** A step has more sound than its bytes may stand for. The rest of the source is not looked at. */
export class TooMuchSound extends Error {
  override readonly name = 'TooMuchSound';
  constructor() {
    super('more sound in a few bytes than is believed');
  }
}

/** Source samples converted in one native call. */
const PIECE_SAMPLES = 8_192;
/** Room for what one native call makes: 8,192 samples of 1 kHz to 48 kHz are the most. */
export const scratch = new Int16Array(512 * 1024);

export class PcmOutput {
  readonly #rateHz: number;
  #skip: number;
  #made: number;
  #converter: PcmHandle | undefined;
  #sourceHz = 0;
  #madeInStep = 0;
  /** Samples of all channels that came in this step. */
  #cameInStep = 0;

  /**
   * The first `skip` samples that are made are thrown away. `before`: samples that were left out already, and count as
   * made.
   */
  constructor(rateHz: number, skip: number, before = 0) {
    this.#rateHz = rateHz;
    this.#skip = skip;
    this.#made = before;
  }

  /** Samples made at the rate of the leg, those thrown away or left out included. */
  get samples(): number {
    return this.#made;
  }

  /**
   * Converts one piece of sound, -1 to 1, one array of equal length for each channel; channels are averaged. Throws for
   * a rate that is none, and `TooMuchSound`.
   */
  add(channels: readonly Float32Array[], hz: number): Pcm {
    this.#cameInStep += channels.length * (channels[0]?.length ?? 0);
    if (this.#cameInStep > DECODE_STEP_MAX_SOURCE_SAMPLES) throw new TooMuchSound();
    const [left, right] = channels.length <= 2 ? channels : [average(channels)];
    if (left === undefined || left.length === 0) return NO_PCM;
    const parts: Pcm[] = [];
    if (this.#converter === undefined || hz !== this.#sourceHz) {
      parts.push(this.end());
      this.#converter = native.pcmCreate(hz, this.#rateHz);
      this.#sourceHz = hz;
    }
    for (let at = 0; at < left.length; at += PIECE_SAMPLES) {
      const [one, other] = [left, right ?? left].map((channel) => channel.subarray(at, at + PIECE_SAMPLES));
      const made = native.pcmConvert(this.#converter, one ?? left, other ?? left, scratch);
      parts.push(this.count(scratch.subarray(0, made)));
    }
    return joined(parts);
  }

  /** Returns the sound that the rate conversion still holds. */
  end(): Pcm {
    if (this.#converter === undefined) return NO_PCM;
    return this.count(scratch.subarray(0, native.pcmFlush(this.#converter, scratch)));
  }

  /** A new step of decoding begins. */
  step(): void {
    this.#madeInStep = 0;
    this.#cameInStep = 0;
  }

  /** Counts samples that are made, and returns those of them that are not thrown away, copied. */
  count(pcm: Int16Array): Pcm {
    const thrown = Math.min(pcm.length, this.#skip);
    this.#skip -= thrown;
    this.#made += pcm.length;
    this.#madeInStep += pcm.length;
    if (this.#madeInStep > DECODE_STEP_MAX_SAMPLES) throw new TooMuchSound();
    return pcm.slice(thrown);
  }
}

function average(channels: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(channels[0]?.length ?? 0);
  for (const channel of channels)
    for (let i = 0; i < out.length; i++) out[i] = (out[i] ?? 0) + (channel[i] ?? 0) / channels.length;
  return out;
}

/** Puts pieces of PCM together, in their order. A single piece is not copied. */
export function joined(parts: readonly Pcm[]): Pcm {
  const heard = parts.filter((part) => part.length > 0);
  if (heard.length <= 1) return heard[0] ?? NO_PCM;
  const out = new Int16Array(heard.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of heard) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
