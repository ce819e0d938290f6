/**
 * Everything about recordings that no single Session or Room knows: where their files are, their rows, their signed
 * URLs, and those whose owner is gone, by its own end or by a crash, and which still have to be told of as ended, once.
 */
import { Shares } from '../../bounds/shares.ts';
import type { Clock } from '../../clock.ts';
import { timestamp } from '../../clock.ts';
import type { RecordingQuery, StoredRecordingRow } from '../../database/call/recordings.ts';
import type { Journal } from '../../database/journal/journal.ts';
import type { RecordingChange, RecordingRow } from '../../database/journal/recording-rows.ts';
import { platformEvent } from '../../event/platform-event.ts';
import type { RecordingLinks, RecordingOwner } from '../../event/recording-event.ts';
import { newUuid, newWebhookId } from '../../id.ts';
import {
  RECORDING_MENDS_MAX,
  RECORDINGS_OF_APP_DEFAULT,
  RECORDINGS_RESERVE,
  RECORDINGS_RESERVED_OF_APP,
  RECORDINGS_UNDER_WAY_MAX,
  RETENTION_EVERY_SEC,
} from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type Recording, type RecordingRecord, type RecordingTerms, recordingEnded } from '../../machine/recording/recording.ts';
import type { SessionState } from '../../machine/session/session.ts';
import type { RecordOptions } from '../../media/engine.ts';
import { mendWav, wavDurationMs } from '../../media/recording/mend-wav.ts';
import type { RecordingRings } from '../../media/recording/recording-rings.ts';
import type { RecordingNotice } from '../../notice/recording.ts';
import { type Problem, problems } from '../../problem.ts';
import { isMissing, sizeOf } from '../../recording-storage/file/local-file.ts';
import type { RecordingStorage } from '../../recording-storage/storage.ts';
import type { RecordedView, RecordingMedia, RecordingStoreUse, Recordings, RecordingView, Removal } from '../ports/recordings.ts';
import { untilStored } from '../until-stored.ts';
import { KeptRecordings, type KeptRows } from './kept-recordings.ts';
import { recordedView, removeRecorded } from './recorded.ts';
import { RecordingRetention, type RetentionRows } from './recording-retention.ts';

const STORE_FULL_RETRY_SEC = 30;

/** The files of recordings on this process's disk. */
export interface RecordingFiles {
  readonly mend: typeof mendWav;
  readonly durationMs: typeof wavDurationMs;
}

/** What is in the file of a recording that is over. `durationMs` undefined: nobody could look. */
interface FileEnd {
  readonly durationMs: number | undefined;
  readonly bytes?: number | undefined;
}

const NOTHING: FileEnd = { durationMs: 0, bytes: 0 };
const UNKNOWN: FileEnd = { durationMs: undefined, bytes: undefined };

const FILES: RecordingFiles = { mend: mendWav, durationMs: wavDurationMs };

export interface RecordingRegistryOptions {
  /** The place of recordings; undefined when recording is off. */
  readonly storage: RecordingStorage | undefined;
  /** The files of recordings; without it those of the file system. */
  readonly files?: RecordingFiles | undefined;
  /** The memory that outlives the process; without it, what is not written yet is lost with the process. */
  readonly rings?: RecordingRings | undefined;
  readonly rows: RetentionRows &
    KeptRows & {
      get(recordingUuid: string): Promise<StoredRecordingRow | undefined>;
      list(appUuid: string, query: RecordingQuery): Promise<readonly StoredRecordingRow[]>;
      unfinished(own: boolean): Promise<readonly RecordingRow[]>;
      unmended(volumeId: string): Promise<readonly RecordingRow[]>;
      mended(recordingUuid: string, durationMs: number, bytes: number): Promise<void>;
    };
  readonly sign: (recordingUuid: string, now: number) => RecordingLinks;
  readonly journal: Journal;
  /** The DATA_DIR of this process. */
  readonly volumeId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly livenessMs: number;
  readonly retentionMs: number;
  /** The most recordings of one application that are under way here. */
  readonly perAppMax?: number | undefined;
  /** The most bytes that one application keeps in recordings, at all nodes. Undefined: no bound. */
  readonly keptMaxBytes?: number | undefined;
  /** A live Session of this node. */
  session(sessionUuid: string): SessionState | undefined;
}

/** The owner of a recording, as the rows and events of the recording name it. */
export interface RecordingAbout {
  readonly appUuid: string;
  readonly owner: RecordingOwner;
  readonly clientState: string;
  readonly traceparent: string;
  readonly now: number;
}

export class RecordingRegistry implements Recordings {
  readonly #options: RecordingRegistryOptions;
  /** Recordings whose files may still be written to. */
  readonly #growing = new Map<string, { readonly appUuid: string; over: boolean }>();
  /** Places of recordings that are under way, or are about to begin. */
  readonly #places: Shares;
  readonly #kept: KeptRecordings | undefined;
  #refused = 0;
  /** When this process began, in ms since the epoch: its own recordings are younger. */
  readonly #madeAt: number;
  #cancelSweep = () => {};
  #closed = false;
  /** Recordings in the folder that the database did not know at the last sweep. */
  #unknown = 0;

  constructor(options: RecordingRegistryOptions) {
    this.#options = options;
    this.#madeAt = options.clock.now();
    const { perAppMax, keptMaxBytes: maxBytes, storage, rows, volumeId, clock, log } = options;
    this.#places = new Shares({
      all: RECORDINGS_UNDER_WAY_MAX,
      ofApp: perAppMax ?? RECORDINGS_OF_APP_DEFAULT,
      reserve: RECORDINGS_RESERVE,
      reservedOfApp: RECORDINGS_RESERVED_OF_APP,
    });
    if (storage !== undefined && maxBytes !== undefined) {
      const size = (recordingUuid: string) => sizeOf(storage.path(recordingUuid));
      this.#kept = new KeptRecordings({ maxBytes, rows, volumeId, sizeOf: size, clock, log });
    }
  }

  /** Recordings that are being written. */
  get growing(): number {
    return this.#growing.size;
  }

  /** Recordings that were refused for want of room or of a place. */
  get refused(): number {
    return this.#refused;
  }

  /** Applications that keep as much in recordings as they may. */
  get fullApps(): number {
    return this.#kept?.full ?? 0;
  }

  use(appUuid: string): RecordingStoreUse | undefined {
    return this.#kept?.of(appUuid);
  }

  /**
   * Begins a recording of the application, or says why none can begin now: recording is off, its store or the
   * application's part of it is full, or too many are under way. The place is held while `begin` runs, so that commands
   * of one moment take no more than there are.
   */
  async admitting<T>(appUuid: string, begin: () => Promise<T>): Promise<T | Problem> {
    const { storage } = this.#options;
    if (storage === undefined) return problems.notConfigured('Recording');
    if (this.#kept?.hasRoomFor(appUuid) === false) return this.#full('This application keeps as much in recordings as it may.');
    if (!this.#places.take(appUuid)) return this.#full('Too many recordings are under way.');
    try {
      return (await storage.admits(appUuid)) ? await begin() : this.#full('The recording store is full.');
    } finally {
      this.#places.give(appUuid);
    }
  }

  #full(why: string): Problem {
    this.#refused += 1;
    return problems.unavailable(`${why} See Retry-After header.`, STORE_FULL_RETRY_SEC);
  }

  /** A new recording's name and what is wished of it. */
  terms(wished: Pick<RecordingTerms, 'includeGaps' | 'voiceActivity'>): RecordingTerms {
    return { ...wished, recordingUuid: `rec_${newUuid()}`, livenessMs: this.#options.livenessMs };
  }

  /** The options of a recording for the media plane. */
  orderOf({ recordingUuid, includeGaps, voiceActivity }: RecordingTerms): RecordOptions {
    const path = this.#options.storage?.path(recordingUuid) ?? '';
    const ring = this.#options.rings?.path(path);
    return {
      recordingUuid,
      path,
      includeGaps,
      ...(ring === undefined ? {} : { ring }),
      ...(voiceActivity === undefined ? {} : { voiceActivity }),
    };
  }

  readonly links = (recordingUuid: string, now: number): RecordingLinks => this.#options.sign(recordingUuid, now);

  /** The records of a step as rows. */
  changes(
    records: readonly RecordingRecord[],
    { appUuid, owner, clientState, traceparent, now }: RecordingAbout,
  ): RecordingChange[] {
    return records.map((each): RecordingChange => {
      if (each.record === 'ended')
        return {
          ended: { recordingUuid: each.recordingUuid, endedAt: now, durationMs: each.durationMs, bytes: each.bytes },
        };
      const { recordingUuid, operationUuid, createdAt } = each.recording;
      return {
        begun: {
          recordingUuid,
          appUuid,
          sessionUuid: 'session_uuid' in owner ? owner.session_uuid : undefined,
          roomId: 'room_id' in owner ? owner.room_id : undefined,
          volumeId: this.#options.volumeId,
          operationUuid,
          clientState,
          traceparent,
          createdAt,
          endedAt: undefined,
          removedAt: undefined,
        },
      };
    });
  }

  /** The records of a step of an application's Session or Room are durable. */
  committed(appUuid: string, records: readonly RecordingRecord[]): void {
    for (const each of records) {
      if (each.record === 'ended') this.#over(each.recordingUuid, appUuid, each);
      else {
        const { recordingUuid } = each.recording;
        this.#growing.set(recordingUuid, { appUuid, over: false });
        this.#places.add(appUuid);
        this.#kept?.begun(recordingUuid, appUuid);
        this.#options.storage?.begun(recordingUuid, appUuid);
      }
    }
  }

  /** Nobody writes it any more. One that is still to be mended is not taken to the object store before that. */
  #over(recordingUuid: string, appUuid: string, { durationMs, bytes }: FileEnd): void {
    const growing = this.#growing.get(recordingUuid);
    if (growing !== undefined) {
      growing.over = true;
      this.#places.give(growing.appUuid);
      this.#kept?.ended(recordingUuid, bytes);
    }
    this.#growing.delete(recordingUuid);
    if (durationMs !== undefined) this.#options.storage?.finished(recordingUuid, appUuid);
  }

  /** Logs a failed recording for the operator: the disk is full or slow, or a media worker was lost. */
  complain({ recordingUuid, reason, durationMs }: Extract<RecordingNotice, { type: 'recording.failed' }>): void {
    this.#options.log.warn({ recording_uuid: recordingUuid, reason, duration_ms: durationMs }, 'a recording was cut off');
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
    if (row !== undefined && row.endedAt === undefined) await this.#end(row, file);
  }

  /** Tells of the end, unless somebody has. `durationMs` undefined: its file is out of reach, and is mended later. */
  async #end(row: RecordingRow, { durationMs, bytes }: FileEnd): Promise<void> {
    const { recordingUuid, appUuid, clientState, traceparent, operationUuid } = row;
    const { clock, journal } = this.#options;
    const now = clock.now();
    const owner: RecordingOwner =
      row.sessionUuid === undefined ? { room_id: row.roomId ?? '' } : { session_uuid: row.sessionUuid };
    const event = recordingEnded(owner, recordingUuid, operationUuid, durationMs);
    const change = {
      events: [platformEvent(event, { appUuid, clientState, traceparent, now, webhookId: newWebhookId(), links: this.links })],
      recordings: [{ ended: { recordingUuid, endedAt: now, durationMs, bytes } }],
      onlyIfEnded: recordingUuid,
    };
    await untilStored(clock, () => journal.commit(change));
    this.#over(recordingUuid, appUuid, { durationMs, bytes });
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
      this.#over(row.recordingUuid, row.appUuid, { durationMs, bytes });
    });
    await this.#each(left, async (row) => this.#end(row, await mended(row)));
    // Rings of recordings that nobody knows any more are removed.
    await rings?.sweep(later);
    // The recordings of before are counted before another begins.
    await this.#kept?.look();
    return left.length;
  }

  /**
   * Tells of the recordings of a node that was buried as ended. Their files are on its disk, and are mended when its
   * DATA_DIR is back.
   */
  async endBuried(): Promise<void> {
    const { rows } = this.#options;
    await this.#each(await rows.unfinished(false), (row) => this.#end(row, UNKNOWN));
    // A process that had this DATA_DIR before may be known as dead only now.
    const own = await rows.unfinished(true);
    const before = own.filter((row) => row.createdAt < this.#madeAt && !this.#growing.has(row.recordingUuid));
    await this.#each(before, async (row) => this.#end(row, await this.#mend(row)));
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
    const { storage, rings, log, files = FILES } = this.#options;
    const path = storage?.path(recordingUuid);
    if (path === undefined) return UNKNOWN;
    try {
      const mended = await files.mend(path, rings?.path(path));
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

  list(appUuid: string, sessionUuid: string): Promise<readonly RecordingView[]> | undefined {
    const live = this.#liveOf(appUuid, sessionUuid);
    return live && Promise.all(live.map((each) => this.#view(sessionUuid, each)));
  }

  isLive(appUuid: string, sessionUuid: string, recordingUuid: string): boolean | undefined {
    return this.#liveOf(appUuid, sessionUuid)?.some((each) => each.recordingUuid === recordingUuid);
  }

  #liveOf(appUuid: string, sessionUuid: string): readonly Recording[] | undefined {
    const state = this.#options.session(sessionUuid);
    return state === undefined || state.appUuid !== appUuid || state.phase === 'ended' ? undefined : state.recordings;
  }

  async #view(sessionUuid: string, recording: Recording): Promise<RecordingView> {
    const { storage, rings, clock, files = FILES } = this.#options;
    const { recordingUuid, cutOffMs } = recording;
    const available = recording.availability === 'available';
    const path = storage?.path(recordingUuid);
    const cutOff = cutOffMs === 'unknown' ? 0 : cutOffMs;
    const durationMs = cutOff ?? (path === undefined ? 0 : await files.durationMs(path, rings?.path(path)));
    const links = available ? this.links(recordingUuid, clock.now()) : undefined;
    return {
      recording_uuid: recordingUuid,
      session_uuid: sessionUuid,
      state: recording.phase,
      masked: recording.masked,
      direction: 'both',
      channels: 'mono',
      include_gaps: recording.includeGaps,
      enable_voice_activity_events: recording.voiceActivity !== undefined,
      available,
      created_at: timestamp(recording.createdAt),
      duration: Math.floor(durationMs / 1000),
      media_url: links?.mediaUrl ?? '',
      live_url: links?.liveUrl ?? '',
      expires_at: links === undefined ? '' : timestamp(links.expiresAt),
    };
  }

  async find(appUuid: string, recordingUuid: string): Promise<RecordedView | undefined> {
    const { rows, clock } = this.#options;
    const row = await rows.get(recordingUuid);
    return row?.appUuid === appUuid ? recordedView(row, this.links(recordingUuid, clock.now())) : undefined;
  }

  async kept(appUuid: string, query: RecordingQuery): Promise<readonly RecordedView[]> {
    const { rows, clock } = this.#options;
    const now = clock.now();
    return (await rows.list(appUuid, query)).map((row) => recordedView(row, this.links(row.recordingUuid, now)));
  }

  async remove(appUuid: string, recordingUuid: string): Promise<Removal | undefined> {
    const { rows, storage, clock } = this.#options;
    const row = await rows.get(recordingUuid);
    if (row?.appUuid !== appUuid || storage === undefined) return undefined;
    const removal = await removeRecorded(row, { rows, storage, clock });
    if (removal === 'removed') await this.#kept?.removed(appUuid);
    return removal;
  }

  async media(recordingUuid: string): Promise<RecordingMedia | undefined> {
    const { storage, rows } = this.#options;
    if (storage === undefined) return undefined;
    const growing = this.#growing.get(recordingUuid);
    if (growing !== undefined) {
      const { appUuid } = growing;
      return { state: 'growing', appUuid, path: storage.path(recordingUuid), over: () => growing.over };
    }
    const row = await rows.get(recordingUuid);
    if (row === undefined) return undefined;
    if (row.removedAt !== undefined) return { state: 'removed' };
    const { appUuid, volumeId } = row;
    const isOthers = volumeId !== '' && volumeId !== this.#options.volumeId;
    // The node that recorded it may still have the file while the object store is away.
    const found = isOthers && row.endedAt === undefined ? undefined : storage.open(recordingUuid, appUuid);
    const file = await (isOthers ? found?.catch(() => undefined) : found);
    if (file !== undefined) return { state: 'finished', appUuid, file };
    return isOthers ? { state: 'elsewhere', appUuid, volumeId } : undefined;
  }

  /** Removes what is past its retention, now and an hour after each sweep. */
  keepRetention(): void {
    void this.#kept?.keepLooking();
    this.#keepSweeping();
  }

  #keepSweeping(): void {
    const { clock, log } = this.#options;
    this.sweep()
      .catch((error: unknown) => log.warn({ error: String(error) }, 'retention of recordings was put off'))
      .finally(() => {
        if (this.#closed) return;
        this.#cancelSweep = clock.at(clock.now() + RETENTION_EVERY_SEC * 1000, () => this.#keepSweeping());
      });
  }

  /** Returns how many recordings were removed. Rejects as `RecordingRetention` does. */
  async sweep(): Promise<number> {
    const { storage, log } = this.#options;
    if (storage === undefined) return 0;
    const retention = new RecordingRetention({ ...this.#options, storage });
    const gone = await retention.sweep();
    // What was removed makes room at once.
    if (gone > 0) await this.#kept?.look();
    if (retention.unknown > this.#unknown)
      log.warn(
        { files: retention.unknown },
        'the database does not know these recordings, as after a restore: they are removed when their retention is over',
      );
    this.#unknown = retention.unknown;
    return gone;
  }

  close(): void {
    this.#closed = true;
    this.#cancelSweep();
    this.#kept?.close();
  }
}
