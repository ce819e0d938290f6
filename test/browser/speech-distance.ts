/**
 * How far heard speech is from what was said, after the manner of PESQ (ITU-T P.862): both are aligned, interval by
 * interval, because a jitter buffer may stretch time; their levels are made equal; and the spectra of frames are
 * compared in bands as wide as the ear's. The worst frames of an interval count most (an L6 norm), as they do to a
 * listener.
 *
 * The unit is dB of band level, between 0 (alike) and `FRAME_MOST_DB`. It is no MOS, and not the P.862 score.
 */

/** Hz of all samples here. */
export const SPEECH_RATE = 16_000;

const FRAME = 512;
const HOP = 256;
const BANDS = 20;
const LOWEST_HZ = 100;
const HIGHEST_HZ = 7_000;
const FRAME_MOST_DB = 30;
/** Band levels further than this under the loudest one of all are not told apart. */
const AUDIBLE_DB = 45;
/** Frames of the said speech that are quieter than the loudest by more are pauses, and not looked at. */
const SPEECH_DB = 35;
/** Samples of an interval that is aligned by itself, and how far from its neighbour it may lie. */
const INTERVAL = 20 * HOP;
const SHIFT_MOST = 480;
/** Samples of a step of the envelope by which the speech is found. */
const STEP = 64;

/** In-place FFT of `FRAME` points. */
function fft(real: Float64Array, imaginary: Float64Array): void {
  for (let at = 1, reversed = 0; at < FRAME; at++) {
    let bit = FRAME >> 1;
    for (; (reversed & bit) !== 0; bit >>= 1) reversed ^= bit;
    reversed ^= bit;
    if (at < reversed) {
      [real[at], real[reversed]] = [real[reversed] ?? 0, real[at] ?? 0];
      [imaginary[at], imaginary[reversed]] = [imaginary[reversed] ?? 0, imaginary[at] ?? 0];
    }
  }
  for (let size = 2; size <= FRAME; size *= 2) {
    for (let start = 0; start < FRAME; start += size) {
      for (let at = 0; at < size / 2; at++) {
        const angle = (-2 * Math.PI * at) / size;
        const [upper, lower] = [start + at, start + at + size / 2];
        const [re, im] = [real[lower] ?? 0, imaginary[lower] ?? 0];
        const turnedReal = re * Math.cos(angle) - im * Math.sin(angle);
        const turnedImaginary = re * Math.sin(angle) + im * Math.cos(angle);
        real[lower] = (real[upper] ?? 0) - turnedReal;
        imaginary[lower] = (imaginary[upper] ?? 0) - turnedImaginary;
        real[upper] = (real[upper] ?? 0) + turnedReal;
        imaginary[upper] = (imaginary[upper] ?? 0) + turnedImaginary;
      }
    }
  }
}

/** Bark, the scale of the ear's bands (Traunmüller 1990). */
const bark = (hz: number) => (26.81 * hz) / (1960 + hz) - 0.53;

/** The powers of the frame at `from`, by bands. */
function bands(samples: Float32Array, from: number): number[] {
  const real = new Float64Array(FRAME);
  const imaginary = new Float64Array(FRAME);
  for (let at = 0; at < FRAME; at++) {
    real[at] = (samples[from + at] ?? 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * at) / FRAME));
  }
  fft(real, imaginary);
  const powers = Array<number>(BANDS).fill(0);
  const [lowest, highest] = [bark(LOWEST_HZ), bark(HIGHEST_HZ)];
  for (let bin = 1; bin < FRAME / 2; bin++) {
    const band = Math.floor(((bark((bin * SPEECH_RATE) / FRAME) - lowest) / (highest - lowest)) * BANDS);
    if (band >= 0 && band < BANDS) powers[band] = (powers[band] ?? 0) + (real[bin] ?? 0) ** 2 + (imaginary[bin] ?? 0) ** 2;
  }
  return powers;
}

/** The levels of steps, in their mean's place: what rises and falls with the speech. */
function envelope(samples: Float32Array): Float64Array {
  const levels = new Float64Array(Math.floor(samples.length / STEP));
  for (let step = 0; step < levels.length; step++) {
    for (let at = step * STEP; at < (step + 1) * STEP; at++) levels[step] = (levels[step] ?? 0) + Math.abs(samples[at] ?? 0);
  }
  return levels;
}

/** Finds the sample of `heard` at which the speech most likely begins, by its envelope. */
function find(said: Float64Array, heard: Float64Array): number {
  const mean = said.reduce((sum, level) => sum + level, 0) / said.length;
  let best = { score: Number.NEGATIVE_INFINITY, at: 0 };
  for (let at = 0; at + said.length <= heard.length; at++) {
    let product = 0;
    let energy = 1e-9;
    for (let step = 0; step < said.length; step++) {
      const level = heard[at + step] ?? 0;
      product += ((said[step] ?? 0) - mean) * level;
      energy += level * level;
    }
    const score = product / Math.sqrt(energy);
    if (score > best.score) best = { score, at };
  }
  return best.at * STEP;
}

/** The place near `near` at which `heard` is most like the interval of `said`, by correlation. */
function align(said: Float32Array, from: number, heard: Float32Array, near: number): number {
  let best = { score: Number.NEGATIVE_INFINITY, at: near };
  for (let at = near - SHIFT_MOST; at <= near + SHIFT_MOST; at++) {
    let product = 0;
    let energy = 1e-9;
    for (let i = 0; i < INTERVAL; i += 2) {
      const sample = heard[at + i] ?? 0;
      product += (said[from + i] ?? 0) * sample;
      energy += sample * sample;
    }
    const score = product / Math.sqrt(energy);
    if (score > best.score) best = { score, at };
  }
  return best.at;
}

interface Interval {
  readonly said: number[][];
  readonly heard: number[][];
}

/** The spectra of both, interval by interval, where `heard` has the speech from `begin` on. */
function intervals(said: Float32Array, heard: Float32Array, begin: number): Interval[] {
  const all: Interval[] = [];
  let shift = begin;
  for (let from = 0; from + INTERVAL <= said.length; from += INTERVAL) {
    shift = align(said, from, heard, from + shift) - from;
    const starts = Array.from({ length: INTERVAL / HOP }, (_, at) => from + at * HOP);
    all.push({
      said: starts.map((start) => bands(said, start)),
      heard: starts.map((start) => bands(heard, start + shift)),
    });
  }
  return all;
}

const total = (frames: readonly (readonly number[])[]) => frames.flat().reduce((sum, power) => sum + power, 0);

/** The distance of two frames in dB, in the mean over the bands. */
function between(said: readonly number[], heard: readonly number[], gain: number, floor: number): number {
  const level = (power: number) => 10 * Math.log10(Math.max(power, floor));
  const differences = said.map((power, band) => Math.abs(level(power) - level(gain * (heard[band] ?? 0))));
  return Math.min(differences.reduce((sum, each) => sum + each, 0) / BANDS, FRAME_MOST_DB);
}

/** The distance of the speech that begins in `heard` at `begin`. */
function distanceAt(said: Float32Array, heard: Float32Array, begin: number): number {
  const all = intervals(said, heard, begin);
  const gain = total(all.flatMap((each) => each.said)) / Math.max(total(all.flatMap((each) => each.heard)), 1e-12);
  const loudest = Math.max(...all.flatMap((each) => each.said.flat()));
  const floor = loudest / 10 ** (AUDIBLE_DB / 10);
  const loudestFrame = Math.max(...all.flatMap((each) => each.said.map((frame) => total([frame]))));
  const squares = all.flatMap((interval) => {
    const spoken = interval.said.flatMap((frame, at) =>
      total([frame]) < loudestFrame / 10 ** (SPEECH_DB / 10) ? [] : [between(frame, interval.heard[at] ?? [], gain, floor)],
    );
    if (spoken.length === 0) return [];
    return [(spoken.reduce((sum, each) => sum + each ** 6, 0) / spoken.length) ** (1 / 3)];
  });
  return Math.sqrt(squares.reduce((sum, each) => sum + each, 0) / squares.length);
}

/** The distances of `times` repetitions of the speech in `heard`, the best one first. Both are at `SPEECH_RATE`. */
export function speechDistances(said: Float32Array, heard: Float32Array, times: number): number[] {
  const [ours, theirs] = [envelope(said), envelope(heard)];
  return Array.from({ length: times }, () => {
    const begin = find(ours, theirs);
    theirs.fill(0, begin / STEP, begin / STEP + ours.length);
    return distanceAt(said, heard, begin);
  }).toSorted((a, b) => a - b);
}
