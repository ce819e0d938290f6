/**
 * The ends of recordings whose Session or Room is gone, by its own end, by a crash, or to another node. Each is told
 * once. What a process left growing is mended first, with what it left in memory.
 */
import type { Clock } from '../../clock.ts';
import type { RecordingStore } from '../../database/call/recordings.ts';
import { ChangeRefused, type Journal } from '../../database/journal/journal.ts';
import type { RecordingRow } from '../../database/journal/recording-rows.ts';
import { platformEvent } from '../../event/platform-event.ts';
import type { RecordingLinks, RecordingOwner } from '../../event/recording-event.ts';
import { newWebhookId } from '../../id.ts';
import { RECORDING_MENDS_MAX } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type Recording, type RecordingRecord, recordingEnded } from '../../machine/recording/recording.ts';
import type { mendWav } from '../../media/recording/mend-wav.ts';
import type { RecordingRings } from '../../media/recording/recording-rings.ts';
import type { RecordingNotice } from '../../notice/recording.ts';
import { isMissing } from '../../recording-storage/file/local-file.ts';
import type { RecordingStorage } from '../../recording-storage/storage.ts';
import { untilStored } from '../until-stored.ts';

/** The rows of recordings. */
export type OwnerlessRows = Pick<RecordingStore, 'get' | 'unfinished' | 'unmended' | 'mended'>;

interface OwnerlessOptions {
  readonly storage: Pick<RecordingStorage, 'path'> | undefined;
  readonly rings?: RecordingRings | undefined;
  readonly mend: typeof mendWav;
  readonly rows: OwnerlessRows;
  readonly sign: (recordingUuid: string, now: number) => RecordingLinks;
  readonly journal: Journal;
  /** The DATA_DIR of this process. */
  readonly volumeId: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** The recordings that this process writes. */
interface RecordingsHere {
  isGrowing(recordingUuid: string): boolean;
  /** The end of a recording is stored, and nobody writes it any more. */
  over(recordingUuid: string, appUuid: string, file: FileEnd): void;
}

/** What is in the file of a recording that is over. `durationMs` undefined: nobody could look. */
export interface FileEnd {
  readonly durationMs: number | undefined;
  readonly bytes?: number | undefined;
}

const NOTHING: FileEnd = { durationMs: 0, bytes: 0 };
const UNKNOWN: FileEnd = { durationMs: undefined, bytes: undefined };

export class OwnerlessRecordings {
  readonly #options: OwnerlessOptions;
  readonly #here: RecordingsHere;
  /** When this process began, in ms since the epoch: its own recordings are younger. */
  readonly #madeAt: number;

  constructor(options: OwnerlessOptions, here: RecordingsHere) {
    this.#options = options;
    this.#here = here;
    this.#madeAt = options.clock.now();
  }

  /** A notice whose Session or Room has ended without it: its end is told here. */
  late(notice: RecordingNotice): void {
    if (notice.type !== 'recording.ended' && notice.type !== 'recording.failed') return;
    const bytes = notice.type === 'recording.ended' ? notice.bytes : undefined;
    void this.#endLate(notice.recordingUuid, { durationMs: notice.durationMs, bytes });
  }

  /**
   * A Session or Room goes on at another node, or nowhere. The media plane tells the ends of its recordings as they are
   * closed, but for those that it had given up before.
   */
  abandoned(recordings: readonly Pick<Recording, 'recordingUuid' | 'cutOffMs'>[]): void {
    for (const { recordingUuid, cutOffMs } of recordings)
      if (cutOffMs !== undefined)
        void this.#endLate(recordingUuid, { durationMs: cutOffMs === 'unknown' ? undefined : cutOffMs, bytes: undefined });
  }

  /** What was begun of these has its row, but no file, as its Session or Room is another node's by now. */
  neverBegan(records: readonly RecordingRecord[]): void {
    for (const each of records) if (each.record === 'begun') void this.#endLate(each.recording.recordingUuid, NOTHING);
  }

  async #endLate(recordingUuid: string, file: FileEnd): Promise<void> {
    const { clock, rows } = this.#options;
    const row = await untilStored(clock, () => rows.get(recordingUuid));
    if (row === undefined) return;
    if (row.endedAt === undefined) await this.#end(row, file);
    // Somebody else has told of it, and nobody writes it any more.
    else if (this.#here.isGrowing(recordingUuid)) this.#here.over(recordingUuid, row.appUuid, file);
  }

  /**
   * Tells of the end of one that a process left, unless somebody has. One that the database refuses is told by a later
   * start or takeover: it would hold up the others, and the calls that are taken over after them.
   */
  async #endLeft(row: RecordingRow, file: FileEnd): Promise<void> {
    const isEnded = await this.#end(row, file, (error) => !(error instanceof ChangeRefused));
    const told = { recording_uuid: row.recordingUuid };
    if (!isEnded) this.#options.log.error(told, 'the end of a recording is refused by the database: it is told later');
  }

  /**
   * Tells of the end, unless somebody has. `durationMs` undefined: its file is out of reach, and is mended later.
   * Resolves with false where it is not stored, as `goOn` gave it up.
   */
  async #end(row: RecordingRow, { durationMs, bytes }: FileEnd, goOn = (_: Error) => true): Promise<boolean> {
    const { recordingUuid, appUuid, clientState, traceparent, operationUuid } = row;
    const { clock, journal, sign } = this.#options;
    const now = clock.now();
    const owner: RecordingOwner =
      row.sessionUuid === undefined ? { room_id: row.roomId ?? '' } : { session_uuid: row.sessionUuid };
    const event = recordingEnded(owner, recordingUuid, operationUuid, durationMs);
    const change = {
      events: [platformEvent(event, { appUuid, clientState, traceparent, now, webhookId: newWebhookId(), links: sign })],
      recordings: [{ ended: { recordingUuid, endedAt: now, durationMs, bytes } }],
      onlyIfEnded: recordingUuid,
    };
    const stored = await untilStored(clock, () => journal.commit(change), goOn);
    if (stored === undefined) return false;
    this.#here.over(recordingUuid, appUuid, { durationMs, bytes });
    return true;
  }

  /**
   * Mends what a process before this one left growing, with what it left in memory, and tells of each as ended. Before
   * the Sessions are taken over, so that their ends follow. Returns how many there were.
   */
  async recover(): Promise<number> {
    const { rows, rings, storage, volumeId } = this.#options;
    const left = await rows.unfinished(true);
    const later: string[] = [];
    const mended = async (row: RecordingRow): Promise<FileEnd> => {
      const file = await this.#mend(row);
      if (file.durationMs === undefined && storage !== undefined) later.push(storage.path(row.recordingUuid));
      return file;
    };
    // Recordings that an earlier start could not mend come first: the others may only now become such.
    await this.#each(await rows.unmended(volumeId), async (row) => {
      const { durationMs, bytes = 0 } = await mended(row);
      if (durationMs === undefined) return;
      await rows.mended(row.recordingUuid, durationMs, bytes);
      this.#here.over(row.recordingUuid, row.appUuid, { durationMs, bytes });
    });
    await this.#each(left, async (row) => this.#endLeft(row, await mended(row)));
    // Rings of recordings that nobody knows any more are removed.
    await rings?.sweep(later);
    return left.length;
  }

  /**
   * Tells of the recordings of a node that was buried as ended. Their files are on its disk, and are mended when its
   * DATA_DIR is back.
   */
  async endBuried(): Promise<void> {
    const { rows } = this.#options;
    await this.#each(await rows.unfinished(false), (row) => this.#endLeft(row, UNKNOWN));
    // A process that had this DATA_DIR before may be known as dead only now.
    const own = await rows.unfinished(true);
    const before = own.filter((row) => row.createdAt < this.#madeAt && !this.#here.isGrowing(row.recordingUuid));
    await this.#each(before, async (row) => this.#endLeft(row, await this.#mend(row)));
  }

  async #each(rows: readonly RecordingRow[], work: (row: RecordingRow) => Promise<void>): Promise<void> {
    for (let at = 0; at < rows.length; at += RECORDING_MENDS_MAX)
      await Promise.all(rows.slice(at, at + RECORDING_MENDS_MAX).map(work));
  }

  /**
   * Mends a file that was left growing. Returns what is in it: nothing where there is none, and `UNKNOWN` where it
   * cannot be mended now, because recording is off or the disk refuses: a later start does it then.
   */
  async #mend({ recordingUuid }: RecordingRow): Promise<FileEnd> {
    const { storage, rings, log, mend } = this.#options;
    const path = storage?.path(recordingUuid);
    if (path === undefined) return UNKNOWN;
    try {
      const mended = await mend(path, rings?.path(path));
      if (mended?.ringRefused !== undefined)
        log.warn({ recording_uuid: recordingUuid, reason: mended.ringRefused }, 'the last second of a recording is lost');
      return mended ?? NOTHING;
    } catch (error) {
      if (isMissing(error)) return NOTHING;
      const told = { recording_uuid: recordingUuid, error: String(error) };
      log.error(told, 'a recording could not be mended; the next start tries again, see its file');
      return UNKNOWN;
    }
  }
}
