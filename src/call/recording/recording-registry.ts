/**
 * Everything about recordings that no single Session or Room knows: whether one may begin, where their files are, their
 * rows, and their signed URLs.
 */
import { Shares } from '../../bounds/shares.ts';
import type { Clock } from '../../clock.ts';
import { timestamp } from '../../clock.ts';
import type { RecordingQuery, RecordingStore } from '../../database/call/recordings.ts';
import type { Journal } from '../../database/journal/journal.ts';
import type { RecordingChange } from '../../database/journal/recording-rows.ts';
import type { RecordingLinks, RecordingOwner } from '../../event/recording-event.ts';
import { newUuid } from '../../id.ts';
import {
  RECORDINGS_OF_APP_DEFAULT,
  RECORDINGS_RESERVE,
  RECORDINGS_RESERVED_OF_APP,
  RECORDINGS_UNDER_WAY_MAX,
  RETENTION_EVERY_SEC,
} from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { Recording, RecordingRecord, RecordingTerms } from '../../machine/recording/recording.ts';
import type { SessionState } from '../../machine/session/session.ts';
import type { RecordOptions } from '../../media/engine.ts';
import { mendWav, wavDurationMs } from '../../media/recording/mend-wav.ts';
import type { RecordingRings } from '../../media/recording/recording-rings.ts';
import type { RecordingNotice } from '../../notice/recording.ts';
import { type Problem, problems } from '../../problem.ts';
import { sizeOf } from '../../recording-storage/file/local-file.ts';
import type { RecordingStorage } from '../../recording-storage/storage.ts';
import type { RecordedView, RecordingMedia, RecordingStoreUse, Recordings, RecordingView, Removal } from '../ports/recordings.ts';
import { KeptRecordings, type KeptRows } from './kept-recordings.ts';
import { type FileEnd, OwnerlessRecordings, type OwnerlessRows } from './ownerless-recordings.ts';
import { recordedView, removeRecorded } from './recorded.ts';
import { RecordingRetention, type RetentionRows } from './recording-retention.ts';

const STORE_FULL_RETRY_SEC = 30;

/** The files of recordings on this process's disk. */
export interface RecordingFiles {
  readonly mend: typeof mendWav;
  readonly durationMs: typeof wavDurationMs;
}

const FILES: RecordingFiles = { mend: mendWav, durationMs: wavDurationMs };

export interface RecordingRegistryOptions {
  /** The place of recordings; undefined when recording is off. */
  readonly storage: RecordingStorage | undefined;
  /** The files of recordings; without it those of the file system. */
  readonly files?: RecordingFiles | undefined;
  /** The memory that outlives the process; without it, what is not written yet is lost with the process. */
  readonly rings?: RecordingRings | undefined;
  readonly rows: RetentionRows & KeptRows & OwnerlessRows & Pick<RecordingStore, 'list'>;
  readonly sign: (recordingUuid: string, now: number) => RecordingLinks;
  readonly journal: Journal;
  /** The DATA_DIR of this process. */
  readonly volumeId: string;
  /** No other process has the database: a recording of another DATA_DIR is here, in the object store, or nowhere. */
  readonly isAlone?: boolean | undefined;
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
  readonly #ownerless: OwnerlessRecordings;
  #refused = 0;
  #cancelSweep = () => {};
  #closed = false;
  /** Recordings in the folder that the database did not know at the last sweep. */
  #unknown = 0;

  constructor(options: RecordingRegistryOptions) {
    this.#options = options;
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
    this.#ownerless = new OwnerlessRecordings(
      { ...options, mend: (options.files ?? FILES).mend },
      {
        isGrowing: (recordingUuid) => this.#growing.has(recordingUuid),
        over: (recordingUuid, appUuid, file) => this.#over(recordingUuid, appUuid, file),
      },
    );
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

  /** A notice whose Session or Room has ended without it. */
  late(notice: RecordingNotice): void {
    this.#ownerless.late(notice);
  }

  /** A Session or Room goes on at another node, or nowhere. These are the recordings that it had. */
  abandoned(recordings: readonly Pick<Recording, 'recordingUuid' | 'cutOffMs'>[]): void {
    this.#ownerless.abandoned(recordings);
  }

  /**
   * The records of a step that is stored, though its Session or Room is another node's by now: what it began has no
   * file, and what it ended is over here too.
   */
  leftBehind(appUuid: string, records: readonly RecordingRecord[]): void {
    this.#ownerless.neverBegan(records);
    for (const each of records) if (each.record === 'ended') this.#over(each.recordingUuid, appUuid, each);
  }

  /**
   * Ends what a process before this one left growing. Before the Sessions are taken over, so that their ends follow.
   * Returns how many there were.
   */
  async recover(): Promise<number> {
    const left = await this.#ownerless.recover();
    // The recordings of before are counted before another begins.
    await this.#kept?.look();
    return left;
  }

  /** Ends what a node that was buried left growing. */
  async endBuried(): Promise<void> {
    await this.#ownerless.endBuried();
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
    const { rows, storage, clock, log } = this.#options;
    const row = await rows.get(recordingUuid);
    if (row?.appUuid !== appUuid) return undefined;
    if (storage === undefined) return row.removedAt === undefined ? 'off' : 'removed';
    const removal = await removeRecorded(row, { rows, storage, clock, log });
    if (removal === 'removed') await this.#kept?.removed(appUuid);
    return removal;
  }

  async media(recordingUuid: string): Promise<RecordingMedia | undefined> {
    const { storage, rows, isAlone = false } = this.#options;
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
    const isOthers = !isAlone && volumeId !== '' && volumeId !== this.#options.volumeId;
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
    if (gone > 0) await this.#kept?.lookAnew();
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
