/**
 * The one door through which state changes: a Session's row, the events it emits and the answer to the command that
 * caused it are written in one transaction. Changes that wait at the same time share a transaction (group commit), in
 * the order in which they came.
 */
import type { PlatformEvent } from '../../event/event.ts';
import type { Log, LogFields } from '../../log.ts';
import type { PaymentChange } from './payment-rows.ts';
import type { RecordingChange } from './recording-rows.ts';

/** A Session as a row: the columns that are filtered on, and the machine's state as JSON. */
export interface SessionRow {
  readonly sessionUuid: string;
  readonly appUuid: string;
  /** The process that runs its actor. */
  readonly nodeId: string;
  /** The number of times that another process took it over. */
  readonly epoch: number;
  readonly type: 'phone_in' | 'phone_out' | 'sip' | 'webrtc' | 'websocket';
  readonly state: 'new' | 'connecting' | 'ringing' | 'early_media' | 'answered' | 'ended';
  readonly callerId: string;
  readonly did: string;
  readonly answered: boolean;
  readonly clientState: string;
  /** The Room it is in; `""`: none. */
  readonly roomId: string;
  /** What runs in it and has to be told of after a crash (`machine/session/operation/running.ts`); `""`: nothing. */
  readonly running: string;
  /** The name of its trunk; `""`: none. */
  readonly trunk: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly answeredAt: number | undefined;
  readonly endedAt: number | undefined;
  /** What `session.ended` says of it, as JSON (`database/call/calls.ts`); `""` until then. */
  readonly summary: string;
}

/** A Room as a row. */
export interface RoomRow {
  readonly roomId: string;
  readonly appUuid: string;
  /** The process that mixes it. */
  readonly nodeId: string;
  /** The number of times that another process took it over. */
  readonly epoch: number;
  readonly voiceActivityEvents: boolean;
  /** `""`: none. */
  readonly holdMusicUrl: string;
  /** Percent; undefined: never set. */
  readonly volume: number | undefined;
  readonly deleting: boolean;
  /** The playback that has to be told of after a crash, as JSON; `""`: none. */
  readonly playback: string;
  readonly createdAt: number;
  readonly deletedAt: number | undefined;
}

/** The answer of an admitted command, kept for replays of its Idempotency-Key. */
export interface StoredAnswer {
  readonly appUuid: string;
  readonly key: string;
  readonly status: number;
  readonly body: unknown;
}

/** A Room, and the number of times that another process had taken it over when it let a Session in. */
export type RoomEntry = Pick<RoomRow, 'roomId' | 'epoch'>;

export interface Change {
  readonly session?: SessionRow;
  /** The Session becomes a member of this Room. Nothing of the change is stored once another node has the Room. */
  readonly enters?: RoomEntry | undefined;
  readonly room?: RoomRow;
  readonly events: readonly PlatformEvent[];
  readonly answer?: StoredAnswer;
  /** The records of a secure collection. */
  readonly payments?: readonly PaymentChange[];
  readonly recordings?: readonly RecordingChange[];
  /** The events are stored only if this change ends that recording, which others may end too. */
  readonly onlyIfEnded?: string;
}

export interface Journal {
  /**
   * Resolves when the change is durable. Rejects when the database could not take it, or did not answer
   * (`StoreUnavailable`): the caller may try again, or ask `wasStored`. Ending a Session that is already ended stores
   * nothing and resolves to `false` (the unique end), and so does a change of a Session or Room that another node has
   * taken over. A change that enters a Room stores nothing and resolves to `'room_moved'` where that has another epoch.
   */
  commit(change: Change): Promise<boolean | 'room_moved'>;
  /**
   * Tells of a change whose commit was rejected whether it is stored after all: its answer may have been lost. Rejects
   * while the database is away.
   */
  wasStored(change: Change): Promise<boolean>;
}

/** The database is away or refused the write; the work may be tried again. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** The database answered, and refuses the change: it does so again until something is mended there. */
export class ChangeRefused extends StoreUnavailable {}

/** The database answered, and refused the work because the Idempotency-Key is not its request's any more. */
export class KeyLost extends StoreUnavailable {}

/**
 * Says that work waits. Where the database is away, the driver says so once for all (`OutageLog`), and each work that
 * asks again every second need not.
 */
export function warnUnlessAway(log: Log, error: unknown, fields: LogFields, message: string): void {
  log[error instanceof StoreUnavailable ? 'debug' : 'warn']({ ...fields, error: String(error) }, message);
}
