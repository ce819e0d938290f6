/**
 * Recordings without their calls: what an application keeps, a fresh URL to each, and its removal before its retention
 * is over (an extension of the interface, whose list and inspection show live ones only).
 */
import { type Clock, timestamp } from '../../clock.ts';
import type { RecordingStore, StoredRecordingRow } from '../../database/call/recordings.ts';
import { codeOf } from '../../error-facts.ts';
import type { RecordingLinks } from '../../event/recording-event.ts';
import type { Log } from '../../log.ts';
import { ObjectError } from '../../recording-storage/s3/object-error.ts';
import type { RecordingStorage } from '../../recording-storage/storage.ts';
import type { RecordedView, Removal } from '../ports/recordings.ts';

interface RemovalParts {
  readonly storage: Pick<RecordingStorage, 'remove'>;
  readonly rows: Pick<RecordingStore, 'removed'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** What an application is shown of a recording that is its own. `links`: those of one that is not removed. */
export function recordedView(row: StoredRecordingRow, links: RecordingLinks): RecordedView {
  const { recordingUuid, sessionUuid, roomId, createdAt, endedAt, removedAt, durationMs } = row;
  const isRemoved = removedAt !== undefined;
  return {
    recording_uuid: recordingUuid,
    ...(sessionUuid === undefined ? { room_id: roomId ?? '' } : { session_uuid: sessionUuid }),
    state: isRemoved ? 'removed' : endedAt === undefined ? 'active' : 'ended',
    created_at: timestamp(createdAt),
    ended_at: endedAt === undefined ? '' : timestamp(endedAt),
    ...(durationMs === undefined ? {} : { duration: Math.floor(durationMs / 1000) }),
    media_url: isRemoved ? '' : links.mediaUrl,
    expires_at: isRemoved ? '' : timestamp(links.expiresAt),
  };
}

/**
 * Removes a recording that is over. Its URLs are 410 from then on. A file on the disk of another node goes with that
 * node's next sweep (`recording-retention.ts`). Where the object store or the disk does not remove it, all is as
 * before.
 */
export async function removeRecorded(
  { recordingUuid, endedAt, removedAt }: StoredRecordingRow,
  { storage, rows, clock, log }: RemovalParts,
): Promise<Removal> {
  if (endedAt === undefined) return 'active';
  if (removedAt !== undefined) return 'removed';
  try {
    await storage.remove(recordingUuid);
  } catch (error) {
    // Errors of the disk have a code, as EROFS of one that has become read-only.
    if (!(error instanceof ObjectError) && codeOf(error) === undefined) throw error;
    log.warn({ recording_uuid: recordingUuid, error: String(error) }, 'a recording could not be removed, as was asked for');
    return 'out_of_reach';
  }
  await rows.removed([recordingUuid], clock.now());
  return 'removed';
}
