/** Bytes that are read one slice after another, only when the next is asked for. */
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { RECORDING_READ_SLICE_BYTES } from '../limits.ts';

export interface Slices {
  /** Resolves with the next bytes, or undefined when that was all. Never called while a call is under way. */
  next(): Promise<Uint8Array | undefined>;
  /** Gives everything up that is held. May be called at any time, more than once. */
  close(): Promise<void>;
}

/** A stream that holds what its reader has not taken back: nothing is read ahead by the stream itself. */
export function streamOf(slices: Slices): ReadableStream<Uint8Array> {
  let over = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const slice = await slices.next();
          if (over) return;
          if (slice !== undefined) {
            controller.enqueue(slice);
            return;
          }
          over = true;
          // Whoever has read it to its end finds nothing held any more.
          await slices.close().finally(() => controller.close());
        } catch (error) {
          if (!over) controller.error(error);
          over = true;
          await slices.close();
        }
      },
      async cancel() {
        over = true;
        await slices.close();
      },
    },
    { highWaterMark: 0 },
  );
}

/**
 * Bytes `start` to `end` of a file, which is opened at the first slice: a file that was deleted since is an error of
 * that.
 */
export function fileSlices(path: string, start: number, end: number): Slices {
  let file: FileHandle | undefined;
  let at = start;
  let closed = false;
  let reading: Promise<unknown> = Promise.resolve();

  const read = async (): Promise<Uint8Array | undefined> => {
    if (closed || at >= end) return undefined;
    file ??= await open(path, 'r');
    const slice = new Uint8Array(Math.min(RECORDING_READ_SLICE_BYTES, end - at));
    const { bytesRead } = await file.read(slice, 0, slice.byteLength, at);
    if (bytesRead === 0) throw new Error('a recording is shorter than it was');
    at += bytesRead;
    return slice.subarray(0, bytesRead);
  };

  return {
    next() {
      const slice = read();
      reading = slice.catch(() => {});
      return slice;
    },
    async close() {
      closed = true;
      await reading;
      const held = file;
      file = undefined;
      await held?.close();
    },
  };
}
