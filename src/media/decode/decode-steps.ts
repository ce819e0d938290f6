/** Bytes of a source given to its decoder in steps, so that no step holds the decoding thread for long. */
import { DECODE_STEP_BYTES } from '../../limits.ts';
import type { DecodeStream } from './decoder.ts';

/** The sound of these bytes, in pieces that are not empty. */
export async function* decodeSteps(decoder: DecodeStream, bytes: Uint8Array): AsyncGenerator<Int16Array<ArrayBuffer>> {
  for (let at = 0; at < bytes.length; at += DECODE_STEP_BYTES) {
    const pcm = await decoder.push(new Uint8Array(bytes.subarray(at, at + DECODE_STEP_BYTES)));
    if (pcm.length > 0) yield pcm;
  }
}
