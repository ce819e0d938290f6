/** Mends a recording that a crash cut off: its sizes, which said "still growing", are set to what is there. */
import { open } from 'node:fs/promises';

const HEADER_BYTES = 44;
const GROWING = 0xffff_ffff;

export interface MendedWav {
  /** Whether anything had to be changed. */
  readonly mended: boolean;
  readonly bytes: number;
  readonly durationMs: number;
}

/** Undefined where the file is none of the platform's recordings. The file is durable when this resolves; rejects on errors of the disk. */
export async function mendWav(path: string): Promise<MendedWav | undefined> {
  const file = await open(path, 'r+');
  try {
    const { size } = await file.stat();
    const header = Buffer.alloc(HEADER_BYTES);
    const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0);
    const ours =
      bytesRead === HEADER_BYTES && header.toString('latin1', 0, 4) === 'RIFF' && header.toString('latin1', 8, 16) === 'WAVEfmt ';
    if (!ours || header.toString('latin1', 36, 40) !== 'data' || header.readUInt32LE(28) === 0) return undefined;
    const growing = header.readUInt32LE(40) === GROWING;
    const dataBytes = growing ? (size - HEADER_BYTES) & ~1 : header.readUInt32LE(40);
    if (growing) {
      await file.truncate(HEADER_BYTES + dataBytes); // half a sample is noise
      header.writeUInt32LE(HEADER_BYTES - 8 + dataBytes, 4);
      header.writeUInt32LE(dataBytes, 40);
      await file.write(header, 0, HEADER_BYTES, 0);
      await file.sync();
    }
    const bytesASecond = header.readUInt32LE(28);
    return { mended: growing, bytes: HEADER_BYTES + dataBytes, durationMs: Math.floor((dataBytes * 1000) / bytesASecond) };
  } finally {
    await file.close();
  }
}

/** Milliseconds of audio in a recording, also in one that is still growing. 0: there is no such file, or nothing in it yet. */
export async function wavDurationMs(path: string): Promise<number> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return 0;
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0);
    const bytesASecond = bytesRead === HEADER_BYTES ? header.readUInt32LE(28) : 0;
    return bytesASecond === 0 ? 0 : Math.floor((((await file.stat()).size - HEADER_BYTES) * 1000) / bytesASecond);
  } finally {
    await file.close();
  }
}
