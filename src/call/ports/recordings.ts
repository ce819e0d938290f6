/** Recordings as the doors see them. They are created and ordered about by commands of their Session or Room. */
import type { RecordingQuery } from '../../database/call/recordings.ts';
import type { RecordingTerms } from '../../machine/recording/recording.ts';
import type { StoredFile } from '../../recording-storage/storage.ts';

/** A live recording as list and inspect show it (contract §5). */
export interface RecordingView {
  readonly recording_uuid: string;
  readonly session_uuid: string;
  readonly state: 'active' | 'stopping';
  readonly masked: boolean;
  readonly direction: 'both';
  readonly channels: 'mono';
  readonly include_gaps: boolean;
  readonly enable_voice_activity_events: boolean;
  readonly available: boolean;
  readonly created_at: string;
  /** Whole seconds so far, rounded down. */
  readonly duration: number;
  /** `""` until it is available, as the two below. */
  readonly media_url: string;
  readonly live_url: string;
  readonly expires_at: string;
}

/** A recording by its name, under way, over or removed. It belongs to a Session or a Room. */
export interface RecordedView {
  readonly recording_uuid: string;
  readonly session_uuid?: string;
  readonly room_id?: string;
  readonly state: 'active' | 'ended' | 'removed';
  readonly created_at: string;
  /** `""` before the end. */
  readonly ended_at: string;
  /** The length in whole seconds, rounded down, once it is over and known. */
  readonly duration?: number;
  /** `""` once it is removed, as the one below. */
  readonly media_url: string;
  readonly expires_at: string;
}

/**
 * What came of a removal. `active`: the recording is not over. `out_of_reach`: the object store does not answer. `off`:
 * recording is off, and nothing is removed.
 */
export type Removal = 'removed' | 'active' | 'out_of_reach' | 'off';

/** The recording that a signed URL leads to. */
export type RecordingMedia =
  /**
   * The file is being written, if it is there yet. Once `over()` nothing more is written to it: its header has its
   * final sizes.
   */
  | { readonly state: 'growing'; readonly appUuid: string; readonly path: string; over(): boolean }
  | { readonly state: 'finished'; readonly appUuid: string; readonly file: StoredFile }
  /** Its file is on the disk of another node. */
  | { readonly state: 'elsewhere'; readonly appUuid: string; readonly volumeId: string }
  /** Past its retention. */
  | { readonly state: 'removed' };

/** What an application keeps in recordings, and how much it may, in bytes. */
export interface RecordingStoreUse {
  readonly keptBytes: number;
  readonly maxBytes: number;
}

export interface Recordings {
  /** What the application keeps in recordings at all nodes, up to a minute old. Undefined: there is no bound. */
  use(appUuid: string): RecordingStoreUse | undefined;
  /** Makes the terms of a new recording: a name of its own, and the options that were wished. */
  terms(wished: Pick<RecordingTerms, 'includeGaps' | 'voiceActivity'>): RecordingTerms;
  /**
   * Tells whether the Session has a live recording of that name, or undefined when it is no live Session of the
   * application.
   */
  isLive(appUuid: string, sessionUuid: string, recordingUuid: string): boolean | undefined;
  /** The live ones of a Session, oldest first. Undefined: it is no live Session of the application. */
  list(appUuid: string, sessionUuid: string): Promise<readonly RecordingView[]> | undefined;
  /** A recording of the application by its name, also after its end. Undefined: it has none of that name. */
  find(appUuid: string, recordingUuid: string): Promise<RecordedView | undefined>;
  /** Lists what the application keeps, newest first: recordings under way and ended ones. */
  kept(appUuid: string, query: RecordingQuery): Promise<readonly RecordedView[]>;
  /**
   * Removes a recording of the application that is over. Undefined: there is none of that name.
   */
  remove(appUuid: string, recordingUuid: string): Promise<Removal | undefined>;
  /**
   * Finds a recording of any application, since a signed URL is the capability. Undefined when there is none of that
   * name. Rejects when the store cannot be reached.
   */
  media(recordingUuid: string): Promise<RecordingMedia | undefined>;
}
