/** The Session's machine: (state, input, now) → state, events, effects. Pure; it decides and never acts. */

import type { SipFacts } from '../../event/call-report.ts';
import type { Event } from '../../event/event.ts';
import type { MemberDirection } from '../../event/room-event.ts';
import { DTMF_SEND_DEFAULT_MS } from '../../limits.ts';
import type { LegEnd, LegSignal, MediaNotice } from '../../notice/signal.ts';
import { type Collect, digitsCollected, promptOf, promptOver, timeout } from '../dtmf/collect.ts';
import { collectionTimeout } from '../payment/collection.ts';
import { hearPlayback } from '../playback/playback.ts';
import {
  isSameVolume,
  leave,
  memberJoined,
  memberLost,
  memberTalking,
  roomMoved,
  type VolumeOrder,
  volumeSet,
} from '../room/membership.ts';
import { command } from './command.ts';
import { applicationSide, closing, end, ending, orderEnd } from './end.ts';
import { member } from './in-room.ts';
import { isSignOfLife, isWatched, probe, silenced, watch } from './in-silence.ts';
import { hearWebSocket } from './in-websocket.ts';
import type { Effect, SessionInput, Step } from './input.ts';
import { beginDetection, detectionTimeout, hearDetection } from './operation/detection.ts';
import { collecting, digit, keyDown, keyUp } from './operation/keys.ts';
import { collecting as collectingSecurely, hearPaymentPrompt } from './operation/payment.ts';
import { hearRecordingNotice, recordingsDue } from './operation/recording.ts';
import { cutOff } from './operation/running.ts';
import { digitsSent, sendDigits } from './operation/sent-digits.ts';
import { hearTransfer, transferTimeout } from './operation/transfer.ts';
import { takeSeat, tellAnswer } from './seat.ts';
import { isInbound, type Phase, rises, type SessionState } from './session.ts';

/** RFC 6455 §7.4.1: the connection was lost without a close frame. */
const WEBSOCKET_ABNORMAL_CLOSURE = 1006;

const stay = (state: SessionState): Step => ({ state, events: [], effects: [] });

/** One input. After `ended` nothing changes any more and nothing is emitted. */
export function step(before: SessionState, input: SessionInput, now: number): Step {
  const next = decide(before, input, now);
  return tellAnswer(next, before.untold.length > 0, input.type === 'deadline' && (before.deadlines.seat ?? Infinity) <= now);
}

function decide(before: SessionState, input: SessionInput, now: number): Step {
  if (before.phase === 'ended') return stay(before);
  if (before.closedAt !== undefined && input.type !== 'command') return closing(before, input, now);
  const state = touched(before, input, now);
  switch (input.type) {
    case 'begin':
      return start(state, now);
    case 'command':
      return command(state, input.command, input.operationUuid, now);
    case 'deadline':
      return deadline(state, now);
    case 'shutdown':
      return shutdown(state, now);
    case 'volume_set':
      return toldVolume(state, input.order, input.failed);
    case 'room_closed':
      if (state.seat?.roomId === input.roomId) return stay({ ...state, seat: undefined });
      if (state.membership?.roomId !== input.roomId) return stay(state);
      return member(state, leave(state.sessionUuid, state.membership, 'room_closed'));
    case 'hand_over':
      return stay(state);
    case 'room_moved':
      if (state.seat?.roomId === input.roomId) return stay({ ...state, seat: { ...state.seat, room: input.room } });
      return member(state, roomMoved(state.sessionUuid, state.membership, input.roomId, input.room));
    case 'broken':
      return end(state, ending('failed', 'system'), now, state.hasLeg ? [{ do: 'hangup' }] : []);
    default:
      return hear(state, input, now);
  }
}

/**
 * A volume was set, or could not be. One that was told as failed meanwhile is not told again. Several may be under way
 * by one Operation-Id, which the application chooses.
 */
function toldVolume(state: SessionState, order: VolumeOrder, failed: readonly MemberDirection[]): Step {
  const told = state.setting.findIndex((each) => isSameVolume(each, order));
  if (told < 0) return stay(state);
  const setting = state.setting.toSpliced(told, 1);
  return { state: { ...state, setting }, events: [volumeSet(state.sessionUuid, order, failed)], effects: [] };
}

/** Any command or signal is activity: it puts the orphan deadline of an unanswered call off. */
function touched(state: SessionState, input: SessionInput, now: number): SessionState {
  if (state.deadlines.orphan === undefined || !state.hasLeg || input.type === 'deadline' || isWatched(state)) return state;
  return { ...state, deadlines: { ...state.deadlines, orphan: now + state.terms.orphanTimeoutMs } };
}

const createdType = ({ type }: SessionState): 'phone_in' | 'sip' | 'webrtc' =>
  type === 'sip' || type === 'webrtc' ? type : 'phone_in';

function start(state: SessionState, now: number): Step {
  const { sessionUuid: session_uuid, callerId: caller_id, did } = state;
  if (!state.hasLeg) return cutOffByCrash(state);
  // It goes on from a node that is lost: only what ran there has failed. One that the far end holds is watched anew,
  // since no media timeout runs for it.
  if (state.cutOff !== undefined) {
    const next = heldByUs(watch({ ...state, cutOff: undefined }, now), false);
    return { ...next, events: [...cutOff(session_uuid, state.cutOff, true), ...next.events] };
  }
  if (!isInbound(state)) return { state, events: [], effects: [{ do: 'start' }] };
  return {
    // `ringing` at once: the 180 is the first thing that is done with the call.
    state: { ...state, phase: 'ringing' },
    events: [{ event: 'session.created', session_uuid, caller_id, did, type: createdType(state), ...sip(state.sip) }],
    effects: [{ do: 'ring' }],
  };
}

/**
 * A process is gone, and the call with it: what ran has failed, the connection is lost, and the Session is in no Room
 * any more.
 */
function cutOffByCrash(state: SessionState): Step {
  const { sessionUuid: session_uuid, cutOff: ran = {} } = state;
  const left = member(state, leave(session_uuid, state.membership, 'orphan'));
  const connection: Event[] =
    state.type === 'websocket' && state.phase === 'answered' && ran.disconnected !== true
      ? [{ event: 'websocket.disconnected', session_uuid, reason: 'network_error', close_code: WEBSOCKET_ABNORMAL_CLOSURE }]
      : [];
  return { ...left, events: [...cutOff(session_uuid, ran), ...left.events, ...connection] };
}

function hear(before: SessionState, signal: LegSignal, now: number): Step {
  const state = isWatched(before) && isSignOfLife(signal) ? watch(before, now) : before;
  const { sessionUuid: session_uuid } = state;
  switch (signal.type) {
    case 'leg.ringing':
      return advance(state, 'ringing', 'session.ringing_started', now);
    case 'leg.early_media':
      return advance(state, 'early_media', 'session.early_media_started', now);
    case 'leg.answered':
      return answered(state, signal.sip, now);
    case 'leg.held':
      if (state.held || state.phase !== 'answered') return stay(state);
      return {
        state: watch({ ...state, held: true }, now),
        events: [{ event: 'session.held', session_uuid, by: 'far_end' }],
        effects: [],
      };
    case 'leg.resumed':
      if (!state.held) return stay(state);
      return {
        state: watch({ ...state, held: false }, now),
        events: [{ event: 'session.resumed', session_uuid, by: 'far_end' }],
        effects: [],
      };
    case 'leg.own_hold':
      return heldByUs(state, signal.on);
    case 'leg.transfer':
      return hearTransfer(state, signal, now);
    case 'leg.transfer_requested': {
      const { target, toSessionUuid: to_session_uuid } = signal;
      const named = to_session_uuid === undefined ? {} : { to_session_uuid };
      const asked = { event: 'session.transfer.requested', session_uuid, target, ...named } as const;
      return { state, events: [asked], effects: [] };
    }
    case 'leg.alive':
      return stay(state);
    case 'leg.ended':
      return legEnded(state, signal.end, now);
    case 'leg.connected':
    case 'leg.failed':
    case 'leg.disconnected':
    case 'leg.played':
      return hearWebSocket(state, signal, now);
    case 'leg.digit':
      return digit(state, signal.digit, signal.durationMs, 'sip_info', now);
    case 'leg.media':
      return hearMedia(state, signal.notice, now);
  }
}

/** Our hold is told when it has taken effect, once for each change. */
function heldByUs(state: SessionState, on: boolean): Step {
  if (on === state.toldHolding || state.phase !== 'answered') return stay(state);
  const event = on ? 'session.held' : 'session.resumed';
  const told = { event, session_uuid: state.sessionUuid, by: 'application' } as const;
  return { state: { ...state, toldHolding: on }, events: [told], effects: [] };
}

/** The far end is gone, or was silent for too long. */
function legEnded(state: SessionState, leg: LegEnd, now: number): Step {
  const { cause, by, description, orphaned, hungUp, sip: said, quality } = leg;
  const report = { ...(said === undefined ? {} : { sip: said }), ...(quality === undefined ? {} : { quality }) };
  const why = {
    ...ending(cause, by, undefined, description),
    ...(hungUp === true ? ({ hungUp } as const) : {}),
    ...(orphaned === true ? ({ isOrphan: true } as const) : {}),
  };
  return end({ ...state, hasLeg: false, report }, why, now);
}

/** The field of an event that tells what SIP said, if it said anything. */
const sip = (facts: SipFacts | undefined): { readonly sip?: SipFacts } => (facts === undefined ? {} : { sip: facts });

/** The far end of a dial moves on; on an inbound call it is ourselves who did, and nobody needs to be told. */
function advance(
  state: SessionState,
  phase: Phase,
  event: 'session.ringing_started' | 'session.early_media_started',
  now: number,
): Step {
  if (!rises(state.phase, phase) || state.ending !== undefined) return stay(state);
  return {
    state: state.type === 'phone_out' ? watch({ ...state, phase }, now) : { ...state, phase },
    events: state.type === 'phone_out' ? [{ event, session_uuid: state.sessionUuid }] : [],
    effects: [],
  };
}

function answered(state: SessionState, facts: SipFacts | undefined, now: number): Step {
  if (state.phase === 'answered') return stay(state);
  // The 200 crossed our order to end: the leg is told again, and the call was never answered for the application.
  if (state.ending !== undefined) return { state, events: [], effects: [{ do: 'hangup' }] };
  const operation = state.answering === undefined ? {} : { operation_uuid: state.answering };
  const deadlines = { duration: now + state.terms.maxDurationMs };
  const live: SessionState = { ...state, phase: 'answered', answeredAt: now, answering: undefined, deadlines };
  const { state: up, effects: listens } = beginDetection(live, now);
  const events = [{ event: 'session.answered', session_uuid: state.sessionUuid, ...operation, ...sip(facts) } as const];
  const { sendAtAnswer: digits, answering = '' } = state;
  const keys = { type: 'send_digits', digits, durationMs: DTMF_SEND_DEFAULT_MS, gapMs: DTMF_SEND_DEFAULT_MS } as const;
  const sent = digits === '' ? stay(up) : sendDigits(up, keys, answering);
  const seated = state.seat === undefined ? { ...stay(sent.state), events } : takeSeat(sent.state, state.seat, events, now);
  return { ...seated, effects: [...listens, ...seated.effects, ...sent.effects] };
}

function hearMedia(state: SessionState, notice: MediaNotice, now: number): Step {
  const { membership, sessionUuid } = state;
  if (notice.type === 'machine.detected' || notice.type === 'machine.greeting_ended') return hearDetection(state, notice, now);
  if (notice.type === 'room.joined') return member(state, memberJoined(sessionUuid, membership, notice.room));
  if (notice.type === 'room.left')
    return notice.isAsked === true ? stay(state) : member(state, memberLost(sessionUuid, membership, notice.room));
  if (notice.type === 'voice') return member(state, memberTalking(sessionUuid, membership, notice.talking));
  if ('recordingUuid' in notice) return hearRecordingNotice(state, notice);
  if (notice.type === 'digit') return digit(state, notice.digit, notice.durationMs, notice.method, now);
  if (notice.type === 'key.down') return keyDown(state, notice.digit, now);
  if (notice.type === 'key.up') return stay(keyUp(state, now));
  if (notice.type === 'media.timeout') {
    if (state.held || state.phase !== 'answered' || state.ending !== undefined) return stay(state);
    return orderEnd(state, ending('timeout', 'system', undefined, 'No audio came from the far end'), { do: 'hangup' }, now);
  }
  if (notice.type === 'keys.sent') return digitsSent(state, notice.keysOf);
  if (notice.type === 'media.lost') return mediaLost(state, now);
  const prompted = hearPaymentPrompt(state, notice, now);
  if (prompted !== undefined) return prompted;
  const { collect } = state;
  if (collect !== undefined && 'operationUuid' in notice && notice.operationUuid === promptOf(collect)) {
    return hearPrompt(state, collect, notice, now);
  }
  const heard = hearPlayback(state.sessionUuid, state.playback, notice);
  return { state: { ...state, playback: heard.playback }, events: heard.events, effects: [] };
}

/**
 * A prompt that cannot be heard fails its collection; a prompt that is over, or was replaced by a play, starts its
 * clocks.
 */
function hearPrompt(state: SessionState, collect: Collect, notice: MediaNotice, now: number): Step {
  // A key may have ended the prompt while its failure was on the way.
  if (notice.type === 'playback.started' || collect.phase === 'collecting') return stay(state);
  if (notice.type !== 'playback.failed') return stay({ ...state, collect: promptOver(collect, now) });
  const result = { status: 'failure', digits: collect.digits, terminator: '', reason: notice.reason } as const;
  return {
    state: { ...state, collect: undefined },
    events: [digitsCollected(state.sessionUuid, collect, result)],
    effects: [],
  };
}

function deadline(state: SessionState, now: number): Step {
  const { ring, orphan, duration, teardown, probe: probeAt, transfer, transferred, detection } = state.deadlines;
  const due = (at: number | undefined) => at !== undefined && at <= now;
  if (due(teardown)) return end(state, ending('failed', 'system'), now);
  if (due(ring)) return orderEnd(state, ending('timeout', 'system'), { do: 'cancel' }, now);
  if (due(duration)) {
    const why = ending('completed', 'system', undefined, 'The call reached its longest duration');
    return orderEnd(state, why, { do: 'hangup' }, now);
  }
  if (due(orphan)) return isWatched(state) ? silenced(state, now) : orphaned(state, now);
  if (due(probeAt)) return probe(state, now);
  if (due(transfer)) return transferTimeout(state);
  if (due(detection)) return detectionTimeout(state, now);
  if (due(transferred)) {
    const why = ending('completed', 'system', undefined, 'The call was transferred');
    return orderEnd(state, why, { do: 'hangup' }, now);
  }
  if (state.recordings.some(({ confirmBy }) => due(confirmBy))) return recordingsDue(state, now);
  if (due(state.press?.until)) return stay(keyUp(state, now));
  const { collection } = state;
  if (collection !== undefined) return collectingSecurely(state, collection, collectionTimeout(collection, now), now);
  return state.collect === undefined ? stay(state) : collecting(state, state.collect, timeout(state.collect, now));
}

/** Synthetic where the leg is lost; an unanswered inbound call that nobody takes is declined as timed out. */
function orphaned(state: SessionState, now: number): Step {
  if (!state.hasLeg)
    return end(state, { ...ending('timeout', 'system', undefined, 'The Session was lost'), isOrphan: true }, now);
  if (state.playback !== undefined || state.collect !== undefined) {
    return stay({ ...state, deadlines: { ...state.deadlines, orphan: now + state.terms.orphanTimeoutMs } });
  }
  // The 200 may be out already, which only a BYE takes back.
  if (state.answering !== undefined) return orderEnd(state, ending('timeout', 'system'), { do: 'hangup' }, now);
  return orderEnd(state, ending('timeout', 'system'), { do: 'reject', reason: 'timeout' }, now);
}

/** The worker that carried the sound is lost: the call ends, whatever it is doing. */
function mediaLost(state: SessionState, now: number): Step {
  if (state.ending !== undefined) return stay(state);
  const why = ending('timeout', 'system', undefined, 'The sound of the call was lost');
  const isRinging = isInbound(state) && state.phase !== 'answered' && state.answering === undefined;
  if (isRinging) return orderEnd(state, why, { do: 'reject', reason: 'timeout' }, now);
  return orderEnd(state, why, { do: state.type === 'phone_out' && state.phase !== 'answered' ? 'cancel' : 'hangup' }, now);
}

function shutdown(state: SessionState, now: number): Step {
  if (state.ending !== undefined) return stay(state);
  if (!state.hasLeg) return orphaned(state, now);
  const cause = state.phase === 'answered' ? 'completed' : applicationSide(state) === 'caller' ? 'cancelled' : 'rejected';
  const order: Effect =
    state.phase === 'answered' ? { do: 'hangup' } : state.type === 'phone_out' ? { do: 'cancel' } : { do: 'hangup' };
  return orderEnd(state, ending(cause, 'system', undefined, 'The platform is shutting down'), order, now);
}
