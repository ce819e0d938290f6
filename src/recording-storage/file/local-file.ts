/** A finished recording that lies in a local file. */
import { openAsBlob } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { codeOf } from '../../error-facts.ts';
import { fileSlices, type Slices, streamOf } from '../slices.ts';
import type { LocalBytes, StoredFile } from '../storage.ts';

/** A recording never changes once it is finished, so its name and size tell it from every other, wherever it lies. */
const entityTag = (recordingUuid: string, bytes: number): string => `${recordingUuid}-${bytes}`;

/** A recording of that size whose bytes come from `slices`. */
export function storedFile(recordingUuid: string, bytes: number, slices: (start: number, end: number) => Slices): StoredFile {
  return {
    bytes,
    etag: entityTag(recordingUuid, bytes),
    read(start, end) {
      if (!(Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start <= end && end <= bytes))
        throw new RangeError(`bytes ${start} to ${end} of ${bytes}`);
      return streamOf(slices(start, end));
    },
  };
}

/** The file of a recording, or undefined when there is none. Rejects on errors of the disk. */
export async function localFile(recordingUuid: string, path: string): Promise<StoredFile | undefined> {
  const bytes = await sizeOf(path);
  if (bytes === undefined) return undefined;
  return {
    ...storedFile(recordingUuid, bytes, (start, end) => fileSlices(path, start, end)),
    local: () => localBytes(path),
  };
}

/** Returns the bytes of a file, which is opened again when they are sent. Rejects where it cannot be opened. */
export async function localBytes(path: string): Promise<LocalBytes> {
  await (await open(path, 'r')).close();
  const whole = await openAsBlob(path);
  return (start, end) => whole.slice(start, end);
}

/** Bytes of a file; undefined where there is none. */
export async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Whether an error says that there is no such file. */
export const isMissing = (error: unknown): boolean => codeOf(error) === 'ENOENT';
