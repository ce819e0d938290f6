/** An object into a file: whole and durable, or not at all. */
import { open, rm } from 'node:fs/promises';
import type { Slices } from '../slices.ts';

/**
 * Writes so many bytes to a new file. It is durable when this resolves, since a file is told by its size at the next
 * start. Rejects on errors of the disk and of the slices, and where they are not as many; then there is no file. The
 * slices are closed either way.
 */
export async function download(path: string, bytes: number, slices: Slices): Promise<void> {
  try {
    const file = await open(path, 'wx', 0o600);
    try {
      let at = 0;
      for (let slice = await slices.next(); slice !== undefined; slice = await slices.next()) {
        if (at + slice.byteLength > bytes) throw new Error('an object is longer than was told');
        for (let done = 0; done < slice.byteLength; ) {
          const { bytesWritten } = await file.write(slice, done, slice.byteLength - done, at + done);
          done += bytesWritten;
        }
        at += slice.byteLength;
      }
      if (at !== bytes) throw new Error('an object is shorter than was told');
      await file.datasync();
    } finally {
      await file.close();
    }
  } catch (error) {
    await rm(path, { force: true }).catch(() => {});
    throw error;
  } finally {
    await slices.close();
  }
}
