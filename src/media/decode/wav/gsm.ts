/**
 * GSM 06.10 full rate (ETSI EN 300 961), decoder only, as WAV files carry it: blocks of 65 bytes with two frames of 260
 * bits, the lowest bit first.
 *
 *   260 bits → 8 log area ratios, 4 × (lag, gain, grid, maximum, 13 pulses)
 *   pulses → long-term synthesis (lag, gain) → short-term synthesis (ratios) → de-emphasis → 160 samples of 13 bits
 *
 * All arithmetic is on 16 bits, saturated, as §5.1 prescribes. Pure.
 */

const FRAME_SAMPLES = 160;
const SUBFRAME_SAMPLES = 40;
const HISTORY = 120;
// §5.2.8, tables 4.1 and 5.1: bits, lowest code, offset and inverse slope of each coded ratio.
const RATIO_BITS = [6, 6, 5, 5, 4, 4, 3, 3];
const RATIO_LOWEST = [-32, -32, -16, -16, -8, -8, -4, -4];
const RATIO_OFFSET = [0, 0, 2_048, -2_560, 94, -1_792, -341, -1_144];
const RATIO_INVERSE = [13_107, 13_107, 13_107, 13_107, 19_223, 17_476, 31_454, 29_708];
/** Table 4.3b: gains of the long-term predictor. */
const GAINS = [3_277, 11_469, 21_299, 32_767];
/** Table 4.6: mantissas of the pulses' maximum. */
const MANTISSAS = [18_431, 20_479, 22_527, 24_575, 26_623, 28_671, 30_719, 32_767];
const DE_EMPHASIS = 28_180;

const saturated = (value: number): number => Math.min(32_767, Math.max(-32_768, value));
/** The product of two fractions of 15 bits, rounded. */
const product = (a: number, b: number): number => saturated((a * b + 16_384) >> 15);

export class GsmDecoder {
  readonly #past = new Int32Array(HISTORY + SUBFRAME_SAMPLES);
  readonly #lattice = new Int32Array(9);
  #ratios: readonly number[] = new Array<number>(8).fill(0);
  #lag = SUBFRAME_SAMPLES;
  #emphasis = 0;

  /** Decodes one block of 65 bytes to 320 samples. */
  decode(block: Uint8Array): Int16Array {
    const out = new Int16Array(2 * FRAME_SAMPLES);
    let bit = 0;
    const take = (bits: number): number => {
      let value = 0;
      for (let i = 0; i < bits; i++, bit++) value |= (((block[bit >> 3] ?? 0) >> (bit & 7)) & 1) << i;
      return value;
    };
    this.#frame(take, out.subarray(0, FRAME_SAMPLES));
    this.#frame(take, out.subarray(FRAME_SAMPLES));
    return out;
  }

  #frame(take: (bits: number) => number, out: Int16Array): void {
    const ratios = RATIO_BITS.map((bits, i) => {
      const coded = (take(bits) + (RATIO_LOWEST[i] ?? 0)) * 1_024 - 2 * (RATIO_OFFSET[i] ?? 0);
      const half = product(RATIO_INVERSE[i] ?? 0, saturated(coded));
      return saturated(2 * half);
    });
    const residual = new Int32Array(FRAME_SAMPLES);
    for (let at = 0; at < FRAME_SAMPLES; at += SUBFRAME_SAMPLES)
      this.#longTerm(take, residual.subarray(at, at + SUBFRAME_SAMPLES));
    this.#shortTerm(ratios, residual);
    this.#ratios = ratios;
    for (let i = 0; i < FRAME_SAMPLES; i++) {
      this.#emphasis = saturated((residual[i] ?? 0) + product(this.#emphasis, DE_EMPHASIS));
      out[i] = saturated(2 * this.#emphasis) & 0xfff8;
    }
  }

  /** §5.3.1 and §5.3.2: the pulses of a subframe, and what the predictor adds of the past. */
  #longTerm(take: (bits: number) => number, out: Int32Array): void {
    const lag = take(7);
    const gain = GAINS[take(2)] ?? 0;
    const grid = take(2);
    const pulses = dequantised(take(6), take);
    if (lag >= SUBFRAME_SAMPLES && lag <= HISTORY) this.#lag = lag;
    const past = this.#past;
    for (let i = 0; i < SUBFRAME_SAMPLES; i++) {
      const pulse = i >= grid && (i - grid) % 3 === 0 ? (pulses[(i - grid) / 3] ?? 0) : 0;
      const value = saturated(pulse + product(gain, past[HISTORY + i - this.#lag] ?? 0));
      past[HISTORY + i] = value;
      out[i] = value;
    }
    past.copyWithin(0, SUBFRAME_SAMPLES);
  }

  /** §5.3.3: the lattice filter, whose ratios glide from the frame before to this one over the first 40 samples. */
  #shortTerm(ratios: readonly number[], samples: Int32Array): void {
    const before = this.#ratios;
    const between = (mix: (old: number, now: number) => number): number[] =>
      ratios.map((now, i) => reflection(mix(before[i] ?? 0, now)));
    const spans: readonly (readonly [number, number[]])[] = [
      [13, between((old, now) => saturated((old >> 2) + (now >> 2) + (old >> 1)))],
      [27, between((old, now) => saturated((old >> 1) + (now >> 1)))],
      [40, between((old, now) => saturated((old >> 2) + (now >> 2) + (now >> 1)))],
      [FRAME_SAMPLES, between((_, now) => now)],
    ];
    let at = 0;
    for (const [end, coefficients] of spans) for (; at < end; at++) samples[at] = this.#filter(samples[at] ?? 0, coefficients);
  }

  #filter(input: number, coefficients: readonly number[]): number {
    const lattice = this.#lattice;
    let value = input;
    for (let i = 7; i >= 0; i--) {
      const coefficient = coefficients[i] ?? 0;
      value = saturated(value - product(coefficient, lattice[i] ?? 0));
      lattice[i + 1] = saturated((lattice[i] ?? 0) + product(coefficient, value));
    }
    lattice[0] = value;
    return value;
  }
}

/** §5.2.15 and §5.2.16: 13 pulses from the coded maximum and their codes. */
function dequantised(codedMaximum: number, take: (bits: number) => number): number[] {
  let exponent = codedMaximum > 15 ? (codedMaximum >> 3) - 1 : 0;
  let mantissa = codedMaximum - (exponent << 3);
  if (mantissa === 0) {
    exponent = -4;
    mantissa = 7;
  } else {
    for (; mantissa <= 7; exponent--) mantissa = (mantissa << 1) | 1;
    mantissa -= 8;
  }
  const shift = 6 - exponent;
  const half = shift > 0 ? 1 << (shift - 1) : 0;
  const factor = MANTISSAS[mantissa] ?? 0;
  return Array.from({ length: 13 }, () => saturated(product(factor, (2 * take(3) - 7) << 12) + half) >> shift);
}

/** §5.3.3.2: a log area ratio to a reflection coefficient. */
function reflection(ratio: number): number {
  const size = Math.min(32_767, Math.abs(ratio));
  const value = size < 11_059 ? size << 1 : size < 20_070 ? size + 11_059 : saturated((size >> 2) + 26_112);
  return ratio < 0 ? -value : value;
}
