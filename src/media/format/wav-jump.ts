/**
 * The way to a place in a WAV of plain samples without the bytes before it: where it lies follows from the format, so
 * the rest may be asked for from there (RFC 9110 §14.2). An hour of 8 kHz is 58 MB. Pure.
 *
 *   asked for   head ─ data ─────────────────────────────────────
 *   read        head of our own ········· a little before the place ─ the place ─────
 */
import { WAV_JUMP_LEAD_MS, WAV_JUMP_LEAST_BYTES } from '../../limits.ts';
import { WavContainer } from './wav-container.ts';
import { wavHead } from './wav-head.ts';

/** A part of the content that need not be read. */
export interface LeftOut {
  /** The bytes to leave out after the first ones. */
  readonly bytes: number;
  /** What to read in place of the first bytes. */
  readonly head: Uint8Array;
  /** The sound of all that is not read, in samples of the output. */
  readonly samples: number;
}

/** What may be left out, by the first bytes of a content, where the sound begins `skip` samples in. */
export function wavJump(first: Uint8Array, skip: number, rateHz: number): LeftOut | undefined {
  const container = new WavContainer();
  const sound = container.push(first);
  const { format, state } = container;
  if (state !== 'data' || format === undefined || !('sampleBytes' in format) || format.highFirst) return undefined;
  // The place is at whole steps of both rates, so that the resampler is where it would be.
  const step = greatestDivisor(format.hz, rateHz);
  const steps = Math.floor((skip - (rateHz * WAV_JUMP_LEAD_MS) / 1000) / (rateHz / step));
  const data = steps * (format.hz / step) * format.channels * format.sampleBytes;
  const dataBytes = sound.length + container.left;
  const bytes = data - sound.length;
  if (bytes < WAV_JUMP_LEAST_BYTES || data >= dataBytes) return undefined;
  return { bytes, head: wavHead(format, dataBytes - data), samples: steps * (rateHz / step) };
}

const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));
