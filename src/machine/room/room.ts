/**
 * The machine of one Room (contract §4): its playback and its end. Members are the Sessions' own state; a Room counts
 * them.
 *
 *   open ─DELETE→ deleting ─last member left, or 10 s→ deleted
 *   playback: stopped ─play→ starting ─confirmed→ playing ⇄ paused ─stop, end, failure→ stopped
 *             starting ⇄ paused, where it is paused before its first sound
 *   recording: at most one at a time (machine/recording/recording.ts)
 */
import type { Event } from '../../event/event.ts';
import { ROOM_PLAYBACK_CONFIRM_MS, ROOM_TEARDOWN_MS } from '../../limits.ts';
import type { MediaNotice } from '../../notice/signal.ts';
import { type Problem, problems } from '../../problem.ts';
import type { PlaybackControl } from '../playback/playback.ts';
import {
  beginRecording,
  hearRecording,
  type Recording,
  type RecordingEffect,
  type RecordingRecord,
  type RecordingStep,
  type RecordingTerms,
  stopRecording,
} from '../recording/recording.ts';

export interface RoomPlayback {
  readonly operationUuid: string;
  readonly urls: readonly string[];
  readonly phase: 'starting' | 'playing' | 'paused' | 'stopping';
  /** Its start is confirmed. One that is paused before that has no sound to be confirmed by until it is resumed. */
  readonly hasStarted: boolean;
  /** When a start that is not confirmed has failed. */
  readonly confirmBy: number | undefined;
}

export interface RoomState {
  readonly roomId: string;
  readonly appUuid: string;
  readonly createdAt: number;
  readonly voiceActivityEvents: boolean;
  /** What a member that is alone hears while nothing is played. `""`: nothing. */
  readonly holdMusicUrl: string;
  readonly phase: 'open' | 'deleting' | 'deleted';
  /** The volume in percent. It is undefined until a command sets it: reported as 0, heard as 100. */
  readonly volume: number | undefined;
  readonly playback: RoomPlayback | undefined;
  readonly recording: Recording | undefined;
  /** When teardown that is not confirmed is given up. */
  readonly teardownBy: number | undefined;
}

type RoomPlaybackControl = Exclude<PlaybackControl, { readonly type: 'restart' }>;

export type RoomCommand =
  | { readonly type: 'delete' }
  | { readonly type: 'play'; readonly urls: readonly string[]; readonly loop: number; readonly volume: number | undefined }
  | RoomPlaybackControl
  | { readonly type: 'stop' }
  | { readonly type: 'volume'; readonly volume: number }
  | { readonly type: 'record'; readonly terms: RecordingTerms }
  | { readonly type: 'stop_recording' };

export type RoomInput =
  | { readonly type: 'begin' }
  /** The process before this one was lost; `playback` is what it played. */
  | { readonly type: 'recovered'; readonly playback: Pick<RoomPlayback, 'operationUuid' | 'urls'> | undefined }
  | { readonly type: 'command'; readonly command: RoomCommand; readonly operationUuid: string }
  | { readonly type: 'media'; readonly notice: MediaNotice }
  /** The last member has left. */
  | { readonly type: 'empty' }
  /** The platform is going down. */
  | { readonly type: 'shutdown' }
  /** A bug in this Room's own actor. */
  | { readonly type: 'broken' }
  | { readonly type: 'deadline' };

export type RoomEffect =
  | RecordingEffect
  | { readonly do: 'play'; readonly operationUuid: string; readonly loop: number; readonly volume: number }
  | { readonly do: 'stop'; readonly operationUuid: string }
  | { readonly do: 'control_playback'; readonly operationUuid: string; readonly control: PlaybackControl }
  | { readonly do: 'set_volume'; readonly volume: number }
  /** Every member is told to leave. */
  | { readonly do: 'dismiss' }
  | { readonly do: 'close' };

export interface RoomStep {
  readonly state: RoomState;
  readonly events: readonly Event[];
  readonly effects: readonly RoomEffect[];
  /** The records of the Room's recording that the store keeps. */
  readonly recordings?: readonly RecordingRecord[];
  readonly refused?: Problem;
}

const UNITY_PERCENT = 100;

/** A Room that is about to be created. */
export const newRoom = (
  about: Pick<RoomState, 'roomId' | 'appUuid' | 'voiceActivityEvents' | 'holdMusicUrl'>,
  now: number,
): RoomState => ({
  ...about,
  createdAt: now,
  phase: 'open',
  volume: undefined,
  playback: undefined,
  recording: undefined,
  teardownBy: undefined,
});

/** The earliest deadline, or undefined when none is armed. */
export function roomDeadline({ playback, teardownBy }: RoomState): number | undefined {
  const earliest = Math.min(playback?.confirmBy ?? Infinity, teardownBy ?? Infinity);
  return earliest === Infinity ? undefined : earliest;
}

const stay = (state: RoomState): RoomStep => ({ state, events: [], effects: [] });

/**
 * The reason why a command would be refused now, or undefined. It is asked before the work for it, and again by the
 * step. `isOpening`: the sources of a play are being opened, which is carried out from then on.
 */
export function roomRefusal(state: RoomState, type: RoomCommand['type'], isOpening = false): Problem | undefined {
  if (type === 'delete' || type === 'volume') return undefined;
  if (state.phase !== 'open') return problems.conflict('Room is being deleted');
  const { playback, recording } = state;
  const isRecording = type === 'record' || type === 'stop_recording';
  if (type === 'stop_recording' && recording === undefined) return problems.recordingNotActive();
  if (type === 'stop_recording' && recording?.phase === 'stopping')
    return problems.conflict('Room recording stop is already in progress');
  const changing =
    isOpening || playback?.phase === 'starting' || playback?.phase === 'stopping' || recording?.phase === 'stopping';
  if ((isRecording || type === 'play' || type === 'stop') && changing)
    return problems.conflict('Another room media transition is in progress');
  if (type === 'record' && recording !== undefined) return problems.conflict('Room is already being recorded');
  if (!isRecording && type !== 'play' && playback === undefined) return problems.conflict('Nothing is playing in the room');
  return undefined;
}

/** One input, at `now`. A Room that is deleted hears nothing more; an order that waited behind its end finds none. */
export function stepRoom(state: RoomState, input: RoomInput, now: number): RoomStep {
  if (state.phase === 'deleted')
    return { ...stay(state), ...(input.type === 'command' ? { refused: problems.notFound('Room') } : {}) };
  switch (input.type) {
    case 'begin':
      return { ...stay(state), events: [{ event: 'room.created', app_uuid: state.appUuid, room_id: state.roomId }] };
    case 'recovered': {
      const { playback } = input;
      return playback === undefined
        ? stay(state)
        : { ...stay(state), events: [playbackFailed(state, playback, 'playback_error')] };
    }
    case 'command':
      return command(state, input.command, input.operationUuid, now);
    case 'media':
      return hear(state, input.notice);
    case 'empty':
      return state.phase === 'deleting' && state.recording === undefined ? deleted(state, 'closed') : stay(state);
    case 'broken':
      return broken(state, now);
    case 'shutdown':
      return state.recording === undefined ? stay(state) : recorded(state, stopRecording(ownerOf(state), state.recording));
    case 'deadline':
      return deadline(state, now);
  }
}

function command(state: RoomState, given: RoomCommand, operationUuid: string, now: number): RoomStep {
  const refused = roomRefusal(state, given.type);
  if (refused !== undefined) return { ...stay(state), refused };
  const { playback } = state;
  switch (given.type) {
    case 'delete':
      return state.phase === 'deleting' ? stay(state) : teardown(state, now);
    case 'play': {
      const volume = given.volume ?? state.volume ?? UNITY_PERCENT;
      const begun = { operationUuid, urls: given.urls, ...starting(now) };
      return {
        state: { ...state, playback: begun, volume: given.volume ?? state.volume },
        events: ended(state).events,
        effects: [{ do: 'play', operationUuid, loop: given.loop, volume }],
      };
    }
    case 'record':
      return recorded(state, beginRecording(ownerOf(state), given.terms, operationUuid, now));
    case 'stop_recording':
      return state.recording === undefined ? stay(state) : recorded(state, stopRecording(ownerOf(state), state.recording));
    case 'volume':
      return { state: { ...state, volume: given.volume }, events: [], effects: [{ do: 'set_volume', volume: given.volume }] };
    default:
      return playback === undefined ? stay(state) : control(state, playback, given, now);
  }
}

/** A playback whose sound is awaited from `now` on. */
const starting = (now: number): Pick<RoomPlayback, 'phase' | 'hasStarted' | 'confirmBy'> => ({
  phase: 'starting',
  hasStarted: false,
  confirmBy: now + ROOM_PLAYBACK_CONFIRM_MS,
});

const ownerOf = ({ roomId }: RoomState) => ({ room_id: roomId });

/** A step of the recording as one of the Room. */
const recorded = (state: RoomState, { recording, events, effects, records }: RecordingStep): RoomStep => ({
  state: { ...state, recording },
  events,
  effects,
  recordings: records,
});

/** Ends the playback and the recording, and tells the members to leave. */
function teardown(before: RoomState, now: number): RoomStep {
  const { state, events } = ended({ ...before, phase: 'deleting', teardownBy: now + ROOM_TEARDOWN_MS });
  const stopped = state.recording === undefined ? stay(state) : recorded(state, stopRecording(ownerOf(state), state.recording));
  return { ...stopped, events: [...events, ...stopped.events], effects: [...stopped.effects, { do: 'dismiss' }] };
}

function control(
  state: RoomState,
  playback: RoomPlayback,
  given: RoomPlaybackControl | { readonly type: 'stop' },
  now: number,
): RoomStep {
  const { operationUuid } = playback;
  const changed = (to: Partial<RoomPlayback>): RoomState => ({ ...state, playback: { ...playback, ...to } });
  if (given.type === 'stop')
    return { state: changed({ phase: 'stopping' }), events: [], effects: [{ do: 'stop', operationUuid }] };
  const effects = [{ do: 'control_playback', operationUuid, control: given }] as const;
  // A paused playback is silent, so nothing can confirm its start: its time to start is counted from the resume.
  if (given.type === 'pause' && playback.phase !== 'stopping')
    return { state: changed({ phase: 'paused', confirmBy: undefined }), events: [], effects };
  if (given.type === 'resume' && playback.phase === 'paused')
    return { state: changed(playback.hasStarted ? { phase: 'playing' } : starting(now)), events: [], effects };
  return { state, events: [], effects };
}

/** The Room ends: what it played has failed, and its members are told to leave. */
function broken(before: RoomState, now: number): RoomStep {
  if (before.phase !== 'open') return deleted(before, 'timeout');
  const { playback } = before;
  const told = playback === undefined ? [] : [playbackFailed(before, playback, 'playback_error')];
  const ended = teardown({ ...before, playback: undefined }, now);
  return { ...ended, events: [...told, ...ended.events] };
}

/** The playback is over without a failure: one terminal event, with the whole playlist of the play request. */
function ended(state: RoomState, reason: 'completed' | 'stopped' = 'stopped'): RoomStep {
  const { playback, roomId } = state;
  if (playback === undefined) return stay(state);
  const { operationUuid, urls } = playback;
  return {
    state: { ...state, playback: undefined },
    events: [{ event: 'room.playback.ended', room_id: roomId, operation_uuid: operationUuid, urls, reason }],
    effects: [],
  };
}

const playbackFailed = (
  { roomId }: RoomState,
  { operationUuid, urls }: Pick<RoomPlayback, 'operationUuid' | 'urls'>,
  error: 'playback_error' | 'playback_timeout',
): Event => ({ event: 'room.playback.failed', room_id: roomId, operation_uuid: operationUuid, urls, error });

function failed(state: RoomState, playback: RoomPlayback, error: 'playback_error' | 'playback_timeout'): RoomStep {
  return {
    state: { ...state, playback: undefined },
    events: [playbackFailed(state, playback, error)],
    effects: [{ do: 'stop', operationUuid: playback.operationUuid }],
  };
}

/** One that was paused, or is being stopped, as its first sound was heard stays so. */
const confirmed = ({ phase }: RoomPlayback): Pick<RoomPlayback, 'phase' | 'hasStarted' | 'confirmBy'> => ({
  phase: phase === 'starting' ? 'playing' : phase,
  hasStarted: true,
  confirmBy: undefined,
});

/** Notices of an operation that is not the current one are late ones of a playback already told of. */
function hear(state: RoomState, notice: MediaNotice): RoomStep {
  const { playback, recording } = state;
  if ('recordingUuid' in notice) {
    if (recording?.recordingUuid !== notice.recordingUuid) return stay(state);
    return recorded(state, hearRecording(ownerOf(state), recording, notice));
  }
  if (playback === undefined || !('operationUuid' in notice) || notice.operationUuid !== playback.operationUuid)
    return stay(state);
  switch (notice.type) {
    case 'playback.started':
      return stay({ ...state, playback: { ...playback, ...confirmed(playback) } });
    case 'playback.completed':
      return ended(state, 'completed');
    case 'playback.stopped':
      return ended(state, 'stopped');
    case 'playback.failed':
      return { ...failed(state, playback, 'playback_error'), effects: [] };
  }
}

function deadline(state: RoomState, now: number): RoomStep {
  const { playback, teardownBy } = state;
  if (teardownBy !== undefined && teardownBy <= now) return deleted(state, 'timeout');
  if (playback?.confirmBy !== undefined && playback.confirmBy <= now) return failed(state, playback, 'playback_timeout');
  return stay(state);
}

function deleted(state: RoomState, reason: 'closed' | 'timeout'): RoomStep {
  return {
    state: { ...state, phase: 'deleted', teardownBy: undefined },
    events: [{ event: 'room.deleted', app_uuid: state.appUuid, room_id: state.roomId, reason }],
    effects: [{ do: 'close' }],
  };
}

/** `playback_status` of the interface: `playing` from the confirmation on. */
export function playbackStatus({ playback }: RoomState): 'stopped' | 'playing' | 'paused' {
  if (playback === undefined || playback.phase === 'starting') return 'stopped';
  return playback.phase === 'paused' ? 'paused' : 'playing';
}
