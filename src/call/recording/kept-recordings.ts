/**
 * Bounds what one application keeps in recordings (`APP_RECORDING_MAX_GB`): finished ones and those under way, at all
 * nodes, in files and in the object store alike. No request waits for it: once a minute the recordings under way here
 * are measured and noted in their rows, and the sum of all rows is read.
 */
import type { Clock } from '../../clock.ts';
import { warnUnlessAway } from '../../database/journal/journal.ts';
import { KEPT_LOOK_MS, KEPT_MEASURED_AT_ONCE } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { RecordingStoreUse } from '../ports/recordings.ts';
import { KeptCount } from './kept-count.ts';

export interface KeptRows {
  /** What each application keeps, in bytes, without what is under way on that volume. */
  kept(volumeId: string): Promise<ReadonlyMap<string, number>>;
  /** Notes the bytes of recordings. */
  sized(sizes: ReadonlyMap<string, number>): Promise<void>;
}

interface KeptOptions {
  readonly maxBytes: number;
  readonly rows: KeptRows;
  readonly volumeId: string;
  /** The bytes of a recording's file here, or undefined where there is none. Rejects on errors of the disk. */
  readonly sizeOf: (recordingUuid: string) => Promise<number | undefined>;
  readonly clock: Clock;
  readonly log: Log;
}

export class KeptRecordings {
  readonly #options: KeptOptions;
  readonly #count = new KeptCount();
  /** Applications that were refused, and are told of in the log once until they have room again. */
  readonly #told = new Set<string>();
  #looking: Promise<void> | undefined;
  #cancel = () => {};
  #closed = false;

  constructor(options: KeptOptions) {
    this.#options = options;
  }

  of(appUuid: string): RecordingStoreUse {
    return { keptBytes: this.#count.of(appUuid), maxBytes: this.#options.maxBytes };
  }

  /** Applications that keep as much as they may. */
  get full(): number {
    return this.#count.countFrom(this.#options.maxBytes);
  }

  /** Whether a further recording of the application may begin. */
  hasRoomFor(appUuid: string): boolean {
    const { maxBytes, log } = this.#options;
    const keptBytes = this.#count.of(appUuid);
    if (keptBytes < maxBytes) return true;
    if (!this.#told.has(appUuid))
      log.warn(
        { app_uuid: appUuid, kept_bytes: keptBytes, max_bytes: maxBytes },
        'recordings of an application are refused: it keeps as much as APP_RECORDING_MAX_GB allows',
      );
    this.#told.add(appUuid);
    return false;
  }

  begun(recordingUuid: string, appUuid: string): void {
    this.#count.begin(recordingUuid, appUuid);
  }

  /** Its end is stored, with these bytes. Undefined: nobody has told them, so the file is looked at. */
  ended(recordingUuid: string, bytes: number | undefined): void {
    this.#count.end(recordingUuid, bytes);
    if (bytes === undefined) void this.#measure([recordingUuid]);
  }

  /** Looks now, and from then on once a minute. Never rejects. */
  async keepLooking(): Promise<void> {
    await this.look();
    if (this.#closed) return;
    const { clock } = this.#options;
    this.#cancel = clock.at(clock.now() + KEPT_LOOK_MS, () => void this.keepLooking());
  }

  /** Never rejects: the figures of the last look stand while the database is away. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((error: unknown) =>
        warnUnlessAway(this.#options.log, error, {}, 'what applications keep in recordings could not be read'),
      )
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** A recording of the application was removed. Where it had no room, a look that begins after that finds some. */
  async removed(appUuid: string): Promise<void> {
    if (this.#count.of(appUuid) >= this.#options.maxBytes) await this.lookAnew();
  }

  /** Looks once more after the look under way, which may have read the rows of before. Never rejects. */
  async lookAnew(): Promise<void> {
    await this.#looking;
    await this.look();
  }

  close(): void {
    this.#closed = true;
    this.#cancel();
  }

  async #look(): Promise<void> {
    const { rows, volumeId, maxBytes } = this.#options;
    const underWay = this.#count.underWay();
    for (let at = 0; at < underWay.length; at += KEPT_MEASURED_AT_ONCE)
      await this.#measure(underWay.slice(at, at + KEPT_MEASURED_AT_ONCE));
    const begun = this.#count.lookBegins();
    this.#count.lookEnds(begun, await rows.kept(volumeId));
    for (const appUuid of this.#told) if (this.#count.of(appUuid) < maxBytes) this.#told.delete(appUuid);
  }

  /** Never rejects: what could not be noted is at the next look, and keeps nothing else from being read. */
  async #measure(recordingUuids: readonly string[]): Promise<void> {
    const { rows, sizeOf, log } = this.#options;
    const sizes = new Map<string, number>();
    for (const recordingUuid of recordingUuids) {
      // A disk that cannot be asked now is asked at the next look.
      const bytes = await sizeOf(recordingUuid).catch(() => undefined);
      if (bytes === undefined) continue;
      sizes.set(recordingUuid, bytes);
      this.#count.measured(recordingUuid, bytes);
    }
    const failed = (error: unknown) => warnUnlessAway(log, error, {}, 'the sizes of recordings could not be noted');
    if (sizes.size > 0) await rows.sized(sizes).catch(failed);
  }
}
