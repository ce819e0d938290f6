/**
 * The interface of the places where recordings are kept. A recording is always written to a local file first, which the
 * media plane makes durable twice a second. That file is the recording (`file`), or the spool of an object store
 * (`s3`), in which it stays until the upload is confirmed.
 */

/** A finished recording, ready to be served. */
export interface StoredFile {
  readonly bytes: number;
  /** The entity tag without quotes. It is the same for as long as the content is. */
  readonly etag: string;
  /** Bytes `start` to `end` (exclusive), read only as fast as they are taken. */
  read(start: number, end: number): ReadableStream<Uint8Array>;
  /**
   * The same bytes as a local file, fetched first where that is worth it: a server sends them from there by itself, and
   * tells their length, which Bun's server does of no stream. Send it at once: the file may go some seconds later.
   * The caller reads by `read` where it is undefined. Never rejects because of the store.
   */
  local?(): Promise<LocalBytes | undefined>;
}

/** Bytes `start` to `end` (exclusive) of a local file. */
export type LocalBytes = (start: number, end: number) => Blob;

/** The load of the spool, for `/metrics`. */
export interface StorageLoad {
  /** Bytes that are still to be uploaded. 0 where recordings are files. */
  readonly waitingBytes: number;
  readonly waiting: number;
}

export interface RecordingStorage {
  /** The local file that a recording is written to. */
  path(recordingUuid: string): string;
  /** Whether a further recording of the application may begin: there is room on the disk and in the spool. */
  admits(appUuid: string): Promise<boolean>;
  /** The recording begins: it may be uploaded while it grows. */
  begun(recordingUuid: string, appUuid: string): void;
  /** Its file is finished and durable. It is uploaded in the background, however long that takes. */
  finished(recordingUuid: string, appUuid: string): void;
  /**
   * A finished recording of the application, wherever it is by now. Undefined: there is none. Rejects where the store
   * cannot be reached, or not in time for all that the application asks for.
   */
  open(recordingUuid: string, appUuid: string): Promise<StoredFile | undefined>;
  /** Deletes it everywhere. No error where there is none; rejects where the store cannot be reached. */
  remove(recordingUuid: string): Promise<void>;
  /** Tells the recordings that have a file here, one after the other; one may be told twice. */
  names(): AsyncIterable<string>;
  load(): StorageLoad;
  /** Stops uploading, at a point from which the next start goes on. */
  close(): Promise<void>;
}
