/**
 * Recordings as the media plane writes them: a header that says "growing" until the end, and samples that no two parts
 * share.
 */
import { appendFile, open, writeFile } from 'node:fs/promises';

const HEADER_BYTES = 44;

function header(dataBytes: number | 'growing'): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.write('RIFF....WAVEfmt ', 'latin1');
  bytes.writeUInt32LE(dataBytes === 'growing' ? 0xffff_ffff : dataBytes + HEADER_BYTES - 8, 4);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(8_000, 24);
  bytes.writeUInt32LE(16_000, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36, 'latin1');
  bytes.writeUInt32LE(dataBytes === 'growing' ? 0xffff_ffff : dataBytes, 40);
  return bytes;
}

/** Samples that differ wherever they are. */
export function samples(bytes: number, seed = 1): Buffer {
  const out = Buffer.alloc(bytes);
  let state = seed >>> 0 || 1;
  for (let at = 0; at + 3 < bytes; at += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    out.writeUInt32LE(state, at);
  }
  return out;
}

/** A finished recording; returns what is in it. */
export async function writeWav(path: string, dataBytes: number, seed = 1): Promise<Buffer> {
  const whole = Buffer.concat([header(dataBytes), samples(dataBytes, seed)]);
  await writeFile(path, whole);
  return whole;
}

export const beginWav = (path: string): Promise<void> => writeFile(path, header('growing'));
export const growWav = (path: string, bytes: number, seed: number): Promise<void> => appendFile(path, samples(bytes, seed));

/** Writes the final sizes. */
export async function finishWav(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    const { size } = await file.stat();
    await file.write(header(size - HEADER_BYTES), 0, HEADER_BYTES, 0);
  } finally {
    await file.close();
  }
}
