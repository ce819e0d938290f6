/** The notices of a recording from the media plane. All but `speech.*` may follow the end of the leg or room. */

/** The reasons for which a recording ends without being asked to. What was written until then stays playable. */
export type RecordingFailure = 'cannot_open' | 'cannot_write' | 'too_slow' | 'too_long' | 'media_unavailable';

export type RecordingNotice =
  /** The first audio is durable. */
  | { readonly type: 'recording.started'; readonly recordingUuid: string }
  /** The file is finished and durable. */
  | { readonly type: 'recording.ended'; readonly recordingUuid: string; readonly durationMs: number; readonly bytes: number }
  /** It is over, and its file holds `durationMs` of audio; undefined: nobody could look, and a later start mends it. */
  | {
      readonly type: 'recording.failed';
      readonly recordingUuid: string;
      readonly reason: RecordingFailure;
      readonly durationMs: number | undefined;
    }
  /** `precedingSilenceMs` is undefined for the first speech of a recording. */
  | { readonly type: 'speech.started'; readonly recordingUuid: string; readonly precedingSilenceMs: number | undefined }
  | { readonly type: 'speech.ended'; readonly recordingUuid: string };
