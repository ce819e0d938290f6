/**
 * One recording on its way to the object store, a step at a time; a step is one part, or what a small recording needs
 * as a whole.
 *
 *   growing:   parts 2, 3, … as soon as each is full
 *   finished:  small: PUT                                            ┐
 *              large: the parts that are missing → part 1 → join     ┴→ HEAD says the size → the spool file goes
 *
 * Part 1 comes last because it has the WAV header, whose sizes are known at the end. The ledger beside the file
 * remembers; an upload that the store no longer knows starts over. Nothing here waits or tries again: the queue decides
 * when the next step is.
 */
import { sizeOf } from '../file/local-file.ts';
import type { RecordingFolder } from '../file/recording-folder.ts';
import { ObjectError } from '../s3/object-error.ts';
import type { CallOptions, HashedBytes, ObjectStore } from '../s3/object-store.ts';
import type { StorageLimits } from '../storage-limits.ts';
import type { PartBuffers } from './part-buffers.ts';
import { readPart } from './spool-file.ts';
import { readLedger, type UploadLedger, writeLedger } from './upload-ledger.ts';

/**
 * The outcome of a step. `idle` means that there is nothing to do yet, `sent` that the store has taken something and
 * there is more to do, `done` that it has all, `gone` that there is nothing to upload.
 */
export type Progress = 'idle' | 'sent' | 'done' | 'gone';

export interface UploadContext {
  readonly store: ObjectStore;
  readonly folder: RecordingFolder;
  readonly limits: StorageLimits;
  readonly buffers: PartBuffers;
  /** The store has all of it: what is in the spool goes from there. Rejects where it cannot. */
  readonly kept: (recordingUuid: string) => Promise<void>;
}

export const objectName = (recordingUuid: string): string => `${recordingUuid}.wav`;

export class Upload {
  readonly recordingUuid: string;
  /** Empty where nobody knows whose it is. */
  readonly appUuid: string;
  /** Nothing is written to the file any more. */
  finished = false;
  /** Bytes of the file when it was last looked at. */
  bytes = 0;
  /** Steps that failed since the last that did not. */
  failures = 0;
  /** How many steps of all uploads had succeeded when one of this last failed. */
  failedAfter: number | undefined;
  /** It failed, and is tried again from then on, in ms since the epoch. */
  restsUntil: number | undefined;
  readonly #context: UploadContext;
  #ledger: UploadLedger | 'none' | 'not read' = 'not read';

  constructor(recordingUuid: string, appUuid: string, context: UploadContext) {
    this.recordingUuid = recordingUuid;
    this.appUuid = appUuid;
    this.#context = context;
  }

  /** The bytes among `bytes` that the store has not confirmed. */
  get waitingBytes(): number {
    let waiting = this.bytes;
    if (typeof this.#ledger === 'object') for (const part of this.#ledger.parts.values()) waiting -= part.bytes;
    return Math.max(0, waiting);
  }

  /** Looks at the file; true where a growing one has a full part to send. Rejects on errors of the disk. */
  async measure(): Promise<boolean> {
    this.bytes = (await sizeOf(this.#wav)) ?? 0;
    return !this.finished && this.#fullPart(await this.#known(), this.bytes) !== undefined;
  }

  /** Rejects with an `ObjectError`, or with an error of the disk; what was confirmed until then is remembered. */
  async step(signal: AbortSignal): Promise<Progress> {
    const finished = this.finished; // before the size is read: then that is final
    const bytes = await sizeOf(this.#wav);
    if (bytes === undefined) return finished ? this.#giveUp({ signal }) : 'idle';
    this.bytes = bytes;
    let ledger = await this.#known();
    if (!finished) {
      const number = this.#fullPart(ledger, bytes);
      if (number === undefined) return 'idle';
      await this.#send(ledger, number, bytes, signal);
      return 'sent';
    }
    if (ledger !== undefined && reachesBeyond(ledger, bytes)) {
      await this.#giveUp({ signal }); // a power cut took the end of the file back
      ledger = undefined;
    }
    if (ledger === undefined && bytes <= this.#context.limits.partBytes) {
      await this.#part(0, bytes, (part) => this.#context.store.put(this.#name, part, this.#patience(signal)));
    } else {
      const number = this.#missingPart(ledger, bytes);
      if (ledger === undefined || number !== undefined) {
        await this.#send(ledger, number ?? 1, bytes, signal);
        return 'sent';
      }
      await this.#join(ledger, bytes, signal);
    }
    await this.#confirm(bytes, signal);
    return 'done';
  }

  /** There is no file to upload, or there is not to be one: what the store has of it is given up. */
  async #giveUp(options: CallOptions): Promise<Progress> {
    const ledger = await this.#known();
    if (ledger !== undefined) await this.#context.store.abortUpload(this.#name, ledger.uploadId, options);
    await this.#forget();
    return ledger === undefined ? 'gone' : 'done';
  }

  /**
   * Removes it at the store, with what is under way there. Not while a step is under way. Rejects with an `ObjectError`
   * where the store is not reached.
   */
  async removeObject(): Promise<void> {
    await this.#giveUp({});
    await this.#context.store.remove(this.#name);
  }

  async #send(known: UploadLedger | undefined, number: number, bytes: number, signal: AbortSignal): Promise<void> {
    const { store, limits } = this.#context;
    let ledger = known;
    if (ledger === undefined) {
      const uploadId = await store.createUpload(this.#name, { signal });
      ledger = { place: store.place, uploadId, partBytes: limits.partBytes, parts: new Map() };
      await this.#remember(ledger);
    }
    const at = (number - 1) * ledger.partBytes;
    const length = Math.min(ledger.partBytes, bytes - at);
    const { uploadId } = ledger;
    try {
      const { etag } = await this.#part(at, length, (part) =>
        store.uploadPart(this.#name, uploadId, number, part, this.#patience(signal)),
      );
      ledger.parts.set(number, { etag, bytes: length });
    } catch (error) {
      if (error instanceof ObjectError && error.fault === 'upload unknown') await this.#forget();
      throw error;
    }
    await this.#remember(ledger);
  }

  /** Some bytes of the file in memory for as long as `use` takes. */
  async #part<T>(at: number, length: number, use: (part: HashedBytes) => Promise<T>): Promise<T> {
    const { buffers } = this.#context;
    const part = await readPart(this.#wav, at, buffers.take(length));
    const result = await use(part);
    buffers.give(part.bytes);
    return result;
  }

  async #join(ledger: UploadLedger, bytes: number, signal: AbortSignal): Promise<void> {
    const { store } = this.#context;
    const parts = [...ledger.parts].map(([number, { etag }]) => ({ number, etag })).sort((a, b) => a.number - b.number);
    try {
      await store.completeUpload(this.#name, ledger.uploadId, parts, { signal });
    } catch (error) {
      if (!(error instanceof ObjectError)) throw error;
      // It may have been joined already, by an attempt whose answer was lost.
      if (error.fault === 'upload unknown' && (await store.head(this.#name, { signal })) === bytes) return;
      if (error.fault === 'rejected') await store.abortUpload(this.#name, ledger.uploadId, { signal });
      if (error.fault === 'rejected' || error.fault === 'upload unknown') await this.#forget();
      throw error;
    }
  }

  /**
   * The file goes first: a ledger without one is only given up at the next start, a file without one would be sent
   * again.
   */
  async #confirm(bytes: number, signal: AbortSignal): Promise<void> {
    const { store, kept } = this.#context;
    const stored = await store.head(this.#name, { signal });
    if (stored !== bytes) {
      await this.#forget();
      throw new ObjectError('rejected', 'other size stored');
    }
    await kept(this.recordingUuid);
    await this.#forget();
  }

  /** The first full part of a growing file that is not confirmed; never part 1, whose header is not final. */
  #fullPart(ledger: UploadLedger | undefined, bytes: number): number | undefined {
    const partBytes = ledger?.partBytes ?? this.#context.limits.partBytes;
    return firstWithout(ledger, 2, Math.floor(bytes / partBytes), bytes, partBytes);
  }

  /** The first part of a finished file that is not confirmed as it is now; part 1 comes last. */
  #missingPart(ledger: UploadLedger | undefined, bytes: number): number | undefined {
    const partBytes = ledger?.partBytes ?? this.#context.limits.partBytes;
    return (
      firstWithout(ledger, 2, Math.ceil(bytes / partBytes), bytes, partBytes) ?? firstWithout(ledger, 1, 1, bytes, partBytes)
    );
  }

  /** The ledger, from memory or disk; one of another place, or of a file that is shorter by now, is none. */
  async #known(): Promise<UploadLedger | undefined> {
    const { store, folder } = this.#context;
    if (this.#ledger === 'not read') {
      const ledger = await readLedger(folder.ledger(this.recordingUuid));
      // A first step and a look at the file may read it at the same time: the first one counts.
      if (this.#ledger === 'not read') this.#ledger = ledger?.place === store.place ? ledger : 'none';
    }
    return this.#ledger === 'none' ? undefined : this.#ledger;
  }

  async #remember(ledger: UploadLedger): Promise<void> {
    this.#ledger = ledger;
    await writeLedger(this.#context.folder.ledger(this.recordingUuid), ledger);
  }

  async #forget(): Promise<void> {
    this.#ledger = 'none';
    const path = this.#context.folder.ledger(this.recordingUuid);
    await this.#context.folder.remove(path);
    await this.#context.folder.remove(`${path}.new`);
  }

  /** Longer at each attempt. */
  #patience(signal: AbortSignal): CallOptions {
    const { partMinMs, partMaxMs } = this.#context.limits;
    return { signal, timeoutMs: Math.max(Math.min(partMaxMs, partMinMs * 2 ** Math.min(this.failures, 16)), 1) };
  }

  get #wav(): string {
    return this.#context.folder.wav(this.recordingUuid);
  }

  get #name(): string {
    return objectName(this.recordingUuid);
  }
}

/** The first part, of these, that is not confirmed with the length it has now. */
function firstWithout(ledger: UploadLedger | undefined, first: number, last: number, bytes: number, partBytes: number) {
  for (let number = first; number <= last; number++) {
    const length = Math.min(partBytes, bytes - (number - 1) * partBytes);
    if (ledger?.parts.get(number)?.bytes !== length) return number;
  }
  return undefined;
}

const reachesBeyond = (ledger: UploadLedger, bytes: number): boolean =>
  [...ledger.parts.keys()].some((number) => (number - 1) * ledger.partBytes >= bytes);
