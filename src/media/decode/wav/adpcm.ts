/**
 * ADPCM of four bits in WAV files: IMA/DVI (RFC 3551 §4.5.1 has the tables) and Microsoft's (RFC 2361 §A.2), a block at
 * a time. Pure.
 */

// IMA Digital Audio Focus and Technical Working Group: step sizes, and how the index moves with the magnitude of a
// code.
const IMA_STEPS = [
  7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143,
  157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411,
  1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442,
  11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
];
const IMA_MOVES = [-1, -1, -1, -1, 2, 4, 6, 8];
/** Microsoft: how the step grows with a code, in 1/256. */
const MS_GROWTH = [230, 230, 230, 230, 307, 409, 512, 614, 768, 614, 512, 409, 307, 230, 230, 230];
const MS_STEP_MIN = 16;

const clamp = (value: number): number => Math.max(-32_768, Math.min(32_767, value));

/**
 * Decodes one block, whose first sample of each channel stands in its header. A block cut short gives what it has. One
 * array a channel.
 */
export function decodeImaBlock(block: Uint8Array, channels: number): Int16Array[] {
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  const groups = Math.floor((block.length - 4 * channels) / (4 * channels));
  if (block.length < 4 * channels) return [];
  return Array.from({ length: channels }, (_, channel) => {
    const out = new Int16Array(1 + 8 * groups);
    let sample = view.getInt16(4 * channel, true);
    let index = Math.min(88, view.getUint8(4 * channel + 2));
    out[0] = sample;
    for (let group = 0; group < groups; group++) {
      const at = 4 * (channels + group * channels + channel);
      for (let i = 0; i < 8; i++) {
        const code = ((block[at + (i >> 1)] ?? 0) >> (4 * (i & 1))) & 15;
        const step = IMA_STEPS[index] ?? 7;
        const change =
          (step >> 3) + ((code & 4) !== 0 ? step : 0) + ((code & 2) !== 0 ? step >> 1 : 0) + ((code & 1) !== 0 ? step >> 2 : 0);
        sample = clamp((code & 8) !== 0 ? sample - change : sample + change);
        index = Math.max(0, Math.min(88, index + (IMA_MOVES[code & 7] ?? 0)));
        out[1 + 8 * group + i] = sample;
      }
    }
    return out;
  });
}

/**
 * Decodes one block, whose first two samples of each channel stand in its header. A block cut short gives what it has.
 * One array a channel.
 */
export function decodeMsBlock(
  block: Uint8Array,
  channels: number,
  coefficients: readonly (readonly [number, number])[],
): Int16Array[] {
  const head = 7 * channels;
  if (block.length < head) return [];
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  const codes = 2 * (block.length - head);
  const each = 2 + Math.floor(codes / channels);
  return Array.from({ length: channels }, (_, channel) => {
    const out = new Int16Array(each);
    const [first, second] = coefficients[block[channel] ?? 0] ?? [256, 0];
    let step = view.getInt16(channels + 2 * channel, true);
    let last = view.getInt16(3 * channels + 2 * channel, true);
    let before = view.getInt16(5 * channels + 2 * channel, true);
    out[0] = before;
    out[1] = last;
    for (let i = 2, nibble = channel; i < each; i++, nibble += channels) {
      const code = ((block[head + (nibble >> 1)] ?? 0) >> ((nibble & 1) === 0 ? 4 : 0)) & 15;
      const signed = code < 8 ? code : code - 16;
      const sample = clamp(Math.trunc((last * first + before * second) / 256) + signed * step);
      step = Math.max(MS_STEP_MIN, ((MS_GROWTH[code] ?? 230) * step) >> 8);
      before = last;
      last = sample;
      out[i] = sample;
    }
    return out;
  });
}
