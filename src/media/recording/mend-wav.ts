/**
 * Mends a recording that a crash cut off: what its ring still holds is appended, and its sizes, which said "still
 * growing", are set to what is there. Done twice, or broken off and done again, it comes to the same, for positions in
 * a ring count from the first sample.
 */
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { basename } from 'node:path';
import { codeOf } from '../../error-facts.ts';
import { readRing, restOf } from './recording-ring.ts';

const HEADER_BYTES = 44;
const GROWING = 0xffff_ffff;

interface MendedWav {
  /** Whether anything had to be changed. */
  readonly mended: boolean;
  readonly bytes: number;
  readonly durationMs: number;
  /** Why what its ring holds was not appended. */
  readonly ringRefused?: string;
}

/**
 * Makes a recording's file whole. `ring` is the path of its ring, which is gone afterwards. Undefined when the file is
 * none of the platform's recordings. The file is durable when this resolves; it rejects on errors of the disk.
 */
export async function mendWav(path: string, ring?: string): Promise<MendedWav | undefined> {
  const file = await open(path, 'r+').catch(async (error: unknown) => {
    if (codeOf(error) === 'ENOENT') await removeRing(ring);
    throw error;
  });
  try {
    const mended = await mend(file, basename(path), ring);
    // The ring goes only when the file has what it held, durably.
    await removeRing(ring);
    return mended;
  } finally {
    await file.close();
  }
}

async function mend(file: FileHandle, name: string, ring: string | undefined): Promise<MendedWav | undefined> {
  const header = await headerOf(file);
  if (header === undefined) return undefined;
  const bytesASecond = header.readUInt32LE(28);
  const whole = (dataBytes: number) => ({
    bytes: HEADER_BYTES + dataBytes,
    durationMs: Math.floor((dataBytes * 1000) / bytesASecond),
  });
  if (header.readUInt32LE(40) !== GROWING) return { mended: false, ...whole(header.readUInt32LE(40)) };
  const found = await readRing(ring);
  const { size } = await file.stat();
  let dataBytes = (size - HEADER_BYTES) & ~1; // half a sample is noise
  const left = restOf(found, { name, rateHz: bytesASecond / 2, dataBytes });
  let ringRefused = left.ring === 'refused' ? left.reason : undefined;
  if (left.ring === 'read') {
    try {
      await append(file, left.rest, HEADER_BYTES + dataBytes);
      dataBytes += left.rest.length;
    } catch (error) {
      ringRefused = String(error); // a full disk does not cost what is on it already
    }
  }
  await file.truncate(HEADER_BYTES + dataBytes);
  header.writeUInt32LE(HEADER_BYTES - 8 + dataBytes, 4);
  header.writeUInt32LE(dataBytes, 40);
  await file.write(header, 0, HEADER_BYTES, 0);
  await file.sync();
  return { mended: true, ...whole(dataBytes), ...(ringRefused === undefined ? {} : { ringRefused }) };
}

/** Rejects where not all of them could be written. */
async function append(file: FileHandle, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    if (bytesWritten === 0) throw new Error('nothing was written');
    done += bytesWritten;
  }
}

/** The header of a recording of the platform, or undefined when the file is none. */
async function headerOf(file: FileHandle): Promise<Buffer | undefined> {
  const header = Buffer.alloc(HEADER_BYTES);
  const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0);
  const ours =
    bytesRead === HEADER_BYTES && header.toString('latin1', 0, 4) === 'RIFF' && header.toString('latin1', 8, 16) === 'WAVEfmt ';
  return ours && header.toString('latin1', 36, 40) === 'data' && header.readUInt32LE(28) > 0 ? header : undefined;
}

async function removeRing(ring: string | undefined): Promise<void> {
  if (ring !== undefined) await unlink(ring).catch(() => {});
}

/**
 * Milliseconds of audio in a recording, also in one that is still growing, with what its ring holds. 0: there is no
 * such file, or nothing in it yet.
 */
export async function wavDurationMs(path: string, ring?: string): Promise<number> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return 0;
  try {
    const header = await headerOf(file);
    if (header === undefined) return 0;
    const bytesASecond = header.readUInt32LE(28);
    const found = await readRing(header.readUInt32LE(40) === GROWING ? ring : undefined);
    let dataBytes = Math.max(0, (await file.stat()).size - HEADER_BYTES);
    const left = restOf(found, { name: basename(path), rateHz: bytesASecond / 2, dataBytes });
    if (left.ring === 'read') dataBytes += left.rest.length;
    return Math.floor((dataBytes * 1000) / bytesASecond);
  } finally {
    await file.close();
  }
}
