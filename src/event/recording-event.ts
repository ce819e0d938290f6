/** The events of recordings (interface, Recording events). A Session's name it, a Room's its Room. */
export type RecordingOwner = { readonly session_uuid: string } | { readonly room_id: string };

interface Recorded {
  readonly recording_uuid: string;
  /** The operation that created the recording; the operation of a stop is not copied. */
  readonly operation_uuid: string;
}

export type RecordingEvent =
  /** Its URLs are made, and added, when it is serialised. */
  | ({ readonly event: 'recording.became_available' } & RecordingOwner & Recorded)
  | ({
      readonly event: 'recording.ended';
      readonly duration: number;
      /** The file could not be read, so `duration` is 0 and says nothing. */
      readonly duration_unknown?: true;
    } & RecordingOwner &
      Recorded)
  | ({
      readonly event: 'recording.failed';
      readonly session_uuid: string;
      readonly error: 'recording unavailable';
      readonly pull_url: '';
    } & Recorded)
  | ({
      readonly event: 'recording.speech.started';
      readonly session_uuid: string;
      readonly preceding_silence_duration_ms?: number;
    } & Recorded)
  | ({ readonly event: 'recording.speech.ended'; readonly session_uuid: string } & Recorded);

/** Signed URLs of one recording, all of one expiry. */
export interface RecordingLinks {
  readonly mediaUrl: string;
  readonly liveUrl: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}
