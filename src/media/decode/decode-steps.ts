/** Bytes of a source given to its decoder in steps, so that no step holds the decoding thread for long. */
import { DECODE_PIECE_MS, DECODE_STEP_BYTES, DECODE_STEP_MAX_BYTES } from '../../limits.ts';
import type { DecodeStream } from './decoder.ts';

/**
 * The sound of these bytes at `rateHz`, in pieces that are not empty. Each step costs a turn through another thread, so
 * steps grow until one makes DECODE_PIECE_MS of sound. Bytes that make more than that, as packed silence does, come in
 * small steps again.
 */
export async function* decodeSteps(
  decoder: DecodeStream,
  bytes: Uint8Array,
  rateHz: number,
): AsyncGenerator<Int16Array<ArrayBuffer>> {
  const enough = (DECODE_PIECE_MS * rateHz) / 1000;
  let step = DECODE_STEP_BYTES;
  for (let at = 0; at < bytes.length; ) {
    const pcm = await decoder.push(new Uint8Array(bytes.subarray(at, at + step)));
    at += step;
    if (pcm.length < enough) step = Math.min(2 * step, DECODE_STEP_MAX_BYTES);
    else if (pcm.length > 2 * enough) step = DECODE_STEP_BYTES;
    if (pcm.length > 0) yield pcm;
  }
}
