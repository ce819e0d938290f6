/**
 * The recordings of a Session: what each decides, put back into the Session's state. Several run at once, each on its
 * own.
 */
import { RECORDINGS_PER_SESSION_MAX } from '../../../limits.ts';
import type { RecordingNotice } from '../../../notice/recording.ts';
import { type Problem, problems } from '../../../problem.ts';
import {
  beginRecording,
  hearRecording,
  maskRecording,
  type RecordingCommand,
  type RecordingRecord,
  type RecordingStep,
  recordingDeadline,
  stopRecording,
} from '../../recording/recording.ts';
import type { Command, Effect, Step } from '../input.ts';
import { isCollectingSecurely, type SessionState } from '../session.ts';

const COMMANDS: ReadonlySet<string> = new Set<RecordingCommand['type']>([
  'record',
  'stop_recording',
  'mask_recording',
  'unmask_recording',
]);

export const isRecordingCommand = (command: Command): command is RecordingCommand => COMMANDS.has(command.type);

function recordRefusal(state: SessionState): Problem | undefined {
  const connected = state.hasLeg && state.phase === 'answered' && state.ending === undefined;
  if (!connected) return problems.conflict('Session is not connected');
  if (isCollectingSecurely(state)) return problems.conflict('Secure collection is in progress');
  const full = state.recordings.length >= RECORDINGS_PER_SESSION_MAX;
  return full ? problems.conflict(`Session already has ${RECORDINGS_PER_SESSION_MAX} recordings`) : undefined;
}

export function recordingCommand(state: SessionState, order: RecordingCommand, operationUuid: string, now: number): Step {
  if (order.type === 'record') {
    const refused = recordRefusal(state);
    if (refused !== undefined) return { state, events: [], effects: [], refused };
    const { recording, ...begun } = beginRecording(ownerOf(state), order.terms, operationUuid, now);
    return {
      state: { ...state, recordings: [...state.recordings, recording] },
      events: begun.events,
      effects: begun.effects,
      recordings: begun.records,
    };
  }
  const recording = state.recordings.find((each) => each.recordingUuid === order.recordingUuid);
  const isStopping = recording?.phase === 'stopping' || state.ending !== undefined;
  if (recording === undefined || (isStopping && order.type !== 'stop_recording')) {
    return { state, events: [], effects: [], refused: problems.notFound('Recording') };
  }
  if (order.type === 'stop_recording')
    return ofAll(
      state,
      (each) => each === recording,
      (each) => stopRecording(ownerOf(state), each),
    );
  if (order.type === 'unmask_recording' && isCollectingSecurely(state)) {
    return { state, events: [], effects: [], refused: problems.conflict('Secure collection is in progress') };
  }
  const masked = order.type === 'mask_recording';
  return ofAll(
    state,
    (each) => each === recording,
    (each) => maskRecording(each, masked, now),
  );
}

/** Before a card is keyed in: the recordings stay masked until the application unmasks each (interface, Recording). */
export const maskAll = (state: SessionState, now: number): Step =>
  ofAll(
    state,
    ({ phase }) => phase === 'active',
    (each) => maskRecording(each, true, now),
  );

/** The end of the Session stops every recording. */
export const stopAll = (state: SessionState): Step =>
  ofAll(
    state,
    () => true,
    (each) => stopRecording(ownerOf(state), each),
  );

/** Speech is not told of after a hangup was ordered. */
export function hearRecordingNotice(state: SessionState, notice: RecordingNotice): Step {
  const isSpeech = notice.type === 'speech.started' || notice.type === 'speech.ended';
  if (isSpeech && state.ending !== undefined) return { state, events: [], effects: [] };
  return ofAll(
    state,
    ({ recordingUuid }) => recordingUuid === notice.recordingUuid,
    (each) => hearRecording(ownerOf(state), each, notice),
  );
}

/** Takes the deadlines of recordings that are due at `now`; nothing happens to the others. */
export const recordingsDue = (state: SessionState, now: number): Step =>
  ofAll(
    state,
    () => true,
    (each) => recordingDeadline(ownerOf(state), each, now),
  );

const ownerOf = ({ sessionUuid }: SessionState) => ({ session_uuid: sessionUuid });

type Live = SessionState['recordings'][number];

/** A step of each recording that is meant, as one of the Session. */
function ofAll(state: SessionState, isMeant: (recording: Live) => boolean, next: (recording: Live) => RecordingStep): Step {
  const events: RecordingStep['events'][number][] = [];
  const effects: Effect[] = [];
  const recordings: RecordingRecord[] = [];
  const left: Live[] = [];
  for (const each of state.recordings) {
    if (!isMeant(each)) {
      left.push(each);
      continue;
    }
    const step = next(each);
    if (step.recording !== undefined) left.push(step.recording);
    events.push(...step.events);
    effects.push(...step.effects);
    recordings.push(...step.records);
  }
  return { state: { ...state, recordings: left }, events, effects, recordings };
}
