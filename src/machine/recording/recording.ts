/**
 * One recording of a Session or a Room (interface, Recording; contract §5), a part of its owner's state:
 *
 *   none ─create→ active ─stop, end of the owner→ stopping ─file finished→ none        masked ⇄ unmasked while active
 *
 * Told: `became_available` or (of a Session) `failed`, at most one of the two, then `ended`, always and once.
 */
import type { RecordingEvent, RecordingOwner } from '../../event/recording-event.ts';
import type { RecordingNotice } from '../../notice/recording.ts';

/** When speech is told of (contract §5, `voice_activity_config`). */
interface VoiceActivity {
  /** 0 to 1; higher hears more. */
  readonly sensitivity: number;
  readonly speechDurationMs: number;
  readonly silenceDurationMs: number;
}

export interface RecordingTerms {
  readonly recordingUuid: string;
  /** Masked spans, hold and interruptions are kept as silence. */
  readonly includeGaps: boolean;
  /** What counts as speech; undefined when speech is not told of. */
  readonly voiceActivity: VoiceActivity | undefined;
  /** The time within which the first audio must be durable, in milliseconds. */
  readonly livenessMs: number;
}

export interface Recording extends RecordingTerms {
  /** The operation that created the recording. */
  readonly operationUuid: string;
  readonly createdAt: number;
  readonly phase: 'active' | 'stopping';
  readonly masked: boolean;
  readonly availability: 'awaited' | 'available' | 'failed';
  /** When it has failed if its first audio is not durable by then. Undefined: it is, or nobody would be told. */
  readonly confirmBy: number | undefined;
  /**
   * The media plane gave it up, with so much audio in its file, or so much that nobody knows. It stays live until it is
   * stopped. Undefined: the media plane has it.
   */
  readonly cutOffMs: number | 'unknown' | undefined;
}

/** The commands about a Session's recordings. */
export type RecordingCommand =
  | { readonly type: 'record'; readonly terms: RecordingTerms }
  | { readonly type: 'stop_recording' | 'mask_recording' | 'unmask_recording'; readonly recordingUuid: string };

export type RecordingEffect =
  | { readonly do: 'record'; readonly recording: RecordingTerms }
  | { readonly do: 'stop_recording'; readonly recordingUuid: string }
  | { readonly do: 'mask_recording'; readonly recordingUuid: string; readonly masked: boolean };

/** The record of a recording that the store keeps. */
export type RecordingRecord =
  | { readonly record: 'begun'; readonly recording: Recording }
  /** `durationMs` undefined: its file could not be mended, and is mended later. `bytes` undefined: nobody told them. */
  | {
      readonly record: 'ended';
      readonly recordingUuid: string;
      readonly durationMs: number | undefined;
      readonly bytes?: number | undefined;
    };

export interface RecordingStep {
  /** The recording after the step; undefined when it is over. */
  readonly recording: Recording | undefined;
  readonly events: readonly RecordingEvent[];
  readonly effects: readonly RecordingEffect[];
  readonly records: readonly RecordingRecord[];
}

const stay = (recording: Recording): RecordingStep => ({ recording, events: [], effects: [], records: [] });

const isOfSession = (owner: RecordingOwner): owner is { readonly session_uuid: string } => 'session_uuid' in owner;

/** Begins. A Room's is never told as failed: for it nothing is awaited (interface, Recording). */
export function beginRecording(
  owner: RecordingOwner,
  terms: RecordingTerms,
  operationUuid: string,
  now: number,
): RecordingStep & { readonly recording: Recording } {
  const recording: Recording = {
    ...terms,
    operationUuid,
    createdAt: now,
    phase: 'active',
    masked: false,
    availability: 'awaited',
    confirmBy: isOfSession(owner) ? now + terms.livenessMs : undefined,
    cutOffMs: undefined,
  };
  return { recording, events: [], effects: [{ do: 'record', recording: terms }], records: [{ record: 'begun', recording }] };
}

/** Stops. A second stop changes nothing. */
export function stopRecording(owner: RecordingOwner, recording: Recording): RecordingStep {
  const { cutOffMs } = recording;
  if (cutOffMs !== undefined) return ended(owner, recording, cutOffMs === 'unknown' ? undefined : cutOffMs);
  if (recording.phase === 'stopping') return stay(recording);
  return {
    ...stay({ ...recording, phase: 'stopping', confirmBy: undefined }),
    effects: [{ do: 'stop_recording', recordingUuid: recording.recordingUuid }],
  };
}

/** Masks or unmasks; harmless where it is already so. The first audio, where it is awaited, has its whole time anew. */
export function maskRecording(recording: Recording, masked: boolean, now: number): RecordingStep {
  const { recordingUuid, livenessMs } = recording;
  if (recording.masked === masked) return stay(recording);
  const confirmBy = recording.confirmBy === undefined ? undefined : now + livenessMs;
  return { ...stay({ ...recording, masked, confirmBy }), effects: [{ do: 'mask_recording', recordingUuid, masked }] };
}

/** Takes what the media plane tells of a recording. */
export function hearRecording(owner: RecordingOwner, recording: Recording, notice: RecordingNotice): RecordingStep {
  const { recordingUuid: recording_uuid, operationUuid: operation_uuid, availability, phase } = recording;
  switch (notice.type) {
    case 'recording.started':
      if (availability !== 'awaited') return stay(recording);
      return {
        ...stay({ ...recording, availability: 'available', confirmBy: undefined }),
        events: [{ event: 'recording.became_available', ...owner, recording_uuid, operation_uuid }],
      };
    case 'recording.ended':
      return ended(owner, recording, notice.durationMs, notice.bytes);
    case 'recording.failed':
      // A recording that was told as available, or is being stopped, ends. Any other fails now and ends when it is
      // stopped.
      if (availability === 'available' || phase === 'stopping') return ended(owner, recording, notice.durationMs);
      return failed(owner, { ...recording, cutOffMs: notice.durationMs ?? 'unknown' });
    case 'speech.started': {
      if (!tellsSpeech(recording) || !isOfSession(owner)) return stay(recording);
      const { precedingSilenceMs: silence } = notice;
      const preceding = silence === undefined ? {} : { preceding_silence_duration_ms: silence };
      return {
        ...stay(recording),
        events: [{ event: 'recording.speech.started', ...owner, recording_uuid, operation_uuid, ...preceding }],
      };
    }
    case 'speech.ended':
      if (!tellsSpeech(recording) || !isOfSession(owner)) return stay(recording);
      return { ...stay(recording), events: [{ event: 'recording.speech.ended', ...owner, recording_uuid, operation_uuid }] };
  }
}

const tellsSpeech = ({ voiceActivity, phase }: Recording): boolean => voiceActivity !== undefined && phase === 'active';

/** The window for the first durable audio is over. While masked nothing can be heard, and nothing has failed. */
export function recordingDeadline(owner: RecordingOwner, recording: Recording, now: number): RecordingStep {
  if (recording.confirmBy === undefined || recording.confirmBy > now) return stay(recording);
  if (recording.masked) return stay({ ...recording, confirmBy: now + recording.livenessMs });
  return failed(owner, recording);
}

function failed(owner: RecordingOwner, recording: Recording): RecordingStep {
  const next: Recording = { ...recording, confirmBy: undefined, availability: 'failed' };
  if (!isOfSession(owner) || recording.availability === 'failed') return stay(next);
  const { recordingUuid: recording_uuid, operationUuid: operation_uuid } = recording;
  return {
    ...stay(next),
    events: [
      {
        event: 'recording.failed',
        ...owner,
        recording_uuid,
        operation_uuid,
        error: 'recording unavailable',
        pull_url: '',
      },
    ],
  };
}

function ended(
  owner: RecordingOwner,
  { recordingUuid, operationUuid }: Recording,
  durationMs: number | undefined,
  bytes?: number,
): RecordingStep {
  return {
    recording: undefined,
    events: [recordingEnded(owner, recordingUuid, operationUuid, durationMs)],
    effects: [],
    records: [{ record: 'ended', recordingUuid, durationMs, bytes }],
  };
}

/** `duration` is rounded down to whole seconds. It is 0, and said to be unknown, where nobody could read the file. */
export const recordingEnded = (
  owner: RecordingOwner,
  recordingUuid: string,
  operationUuid: string,
  durationMs: number | undefined,
): RecordingEvent => ({
  event: 'recording.ended',
  ...owner,
  recording_uuid: recordingUuid,
  operation_uuid: operationUuid,
  duration: Math.floor((durationMs ?? 0) / 1000),
  ...(durationMs === undefined ? { duration_unknown: true } : {}),
});
