/** A recording's file while it waits for the object store: one part of it in memory, and whether it is whole. */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { OBJECT_PART_SLICE_BYTES } from '../../limits.ts';
import { isMissing } from '../file/local-file.ts';
import type { HashedBytes } from '../s3/object-store.ts';

const HEADER_BYTES = 44;

/**
 * Fills `bytes` from `at` on, read and hashed slice by slice, so that the thread is never held for longer than one
 * slice takes. What is read is made durable first: of a growing file nothing is uploaded that a power cut could still
 * take back. Rejects where the file is shorter.
 */
export async function readPart(path: string, at: number, bytes: Uint8Array<ArrayBuffer>): Promise<HashedBytes> {
  const length = bytes.byteLength;
  const hash = createHash('sha256');
  const file = await open(path, 'r');
  try {
    await file.datasync();
    for (let done = 0; done < length; ) {
      const { bytesRead } = await file.read(bytes, done, Math.min(OBJECT_PART_SLICE_BYTES, length - done), at + done);
      if (bytesRead === 0) throw new Error('a spool file is shorter than it was');
      hash.update(bytes.subarray(done, done + bytesRead));
      done += bytesRead;
    }
  } finally {
    await file.close();
  }
  return { bytes, sha256: hash.digest('hex') };
}

/**
 * Whether its header has its final sizes and they are true: it was finished, whoever remembers. False where there is no
 * such file.
 */
export async function isWholeWav(path: string): Promise<boolean> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
  try {
    const { size } = await file.stat();
    const header = Buffer.alloc(HEADER_BYTES);
    const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0);
    return (
      bytesRead === HEADER_BYTES &&
      header.toString('latin1', 0, 4) === 'RIFF' &&
      header.toString('latin1', 36, 40) === 'data' &&
      header.readUInt32LE(4) === size - 8 &&
      header.readUInt32LE(40) === size - HEADER_BYTES
    );
  } finally {
    await file.close();
  }
}
