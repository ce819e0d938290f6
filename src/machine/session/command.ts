/** Commands of the application. A refusal is a value: the 409 of the interface. */

import { type Problem, problems } from '../../problem.ts';
import { beginCollect, digitsCollected, holdForKey, promptOf } from '../dtmf/collect.ts';
import { applicationSide, ending, orderEnd } from './end.ts';
import { isMemberCommand, memberCommand } from './in-room.ts';
import { watch } from './in-silence.ts';
import type { CallCommand, Command, Step } from './input.ts';
import { cancelPayment, collectPayment, paymentRefusal } from './operation/payment.ts';
import { audible, playback, replaced } from './operation/playback.ts';
import { isRecordingCommand, recordingCommand } from './operation/recording.ts';
import { sendDigits, sendRefusal } from './operation/sent-digits.ts';
import { transfer, transferRefusal } from './operation/transfer.ts';
import { isInbound, type SessionState } from './session.ts';

const stay = (state: SessionState): Step => ({ state, events: [], effects: [] });

const CANNOT_PLAY = 'Session cannot play audio in its current state';
const CANNOT: Readonly<Record<CallCommand['type'], string>> = {
  answer: 'Session cannot be answered in its current state',
  reject: 'Session cannot be rejected in its current state',
  cancel: 'Session cannot be cancelled in its current state',
  hold: 'Session cannot be held in its current state',
  unhold: 'Session is not on hold',
  send_digits: 'Session cannot send digits in its current state',
  transfer: 'Session cannot be transferred in its current state',
  hangup: 'Session cannot be ended in its current state',
  play: CANNOT_PLAY,
  play_stream: CANNOT_PLAY,
  play_silence: CANNOT_PLAY,
  play_push: CANNOT_PLAY,
  stop_playback: 'Session has no audio in its current state',
  control_playback: 'Session has no audio in its current state',
  collect: 'Session cannot collect digits in its current state',
  cancel_collect: 'Session cannot collect digits in its current state',
  collect_payment: 'Session is not connected',
  cancel_payment: 'Session is not connected',
};

/**
 * The 409 a command would get now, or undefined: asked before its work, such as opening sources, and again by `command`
 * itself.
 */
export function refusal(state: SessionState, type: CallCommand['type']): Problem | undefined {
  if (type === 'cancel_collect' && state.collect === undefined) return problems.notFound('DTMF collection');
  const secured = paymentRefusal(state, type);
  if (type === 'cancel_payment' && secured !== undefined) return secured;
  if (!permits(state, type)) return problems.conflict(CANNOT[type]);
  if (secured !== undefined) return secured;
  if (type === 'collect' && state.collect !== undefined) return problems.conflict('Session is already collecting digits');
  if (type === 'send_digits') return sendRefusal(state);
  if (type === 'transfer') return transferRefusal(state);
  if (type === 'hold' && state.holding) return problems.conflict('Session is already on hold');
  if (type === 'unhold' && !state.holding) return problems.conflict(CANNOT.unhold);
  return undefined;
}

function permits(state: SessionState, type: CallCommand['type']): boolean {
  const live = state.hasLeg && state.phase !== 'ended';
  const unanswered = live && state.phase !== 'answered';
  const isCall = live && !unanswered && state.type !== 'websocket' && state.ending === undefined;
  const hasAudio = live && state.ending === undefined && (state.phase === 'answered' || isInbound(state));
  switch (type) {
    case 'answer':
      return unanswered && isInbound(state) && state.ending === undefined && state.answering === undefined;
    case 'reject':
      return unanswered && isInbound(state) && state.answering === undefined;
    case 'cancel':
      return unanswered && state.type === 'phone_out';
    case 'transfer':
      // A browser is no SIP far end: it cannot be referred.
      return isCall && state.type !== 'webrtc';
    case 'hold':
    case 'unhold':
    case 'send_digits':
      return isCall;
    case 'hangup':
      return true;
    case 'play':
    case 'play_stream':
    case 'play_silence':
    case 'play_push':
    case 'collect':
    case 'cancel_collect':
    case 'collect_payment':
    case 'cancel_payment':
      return hasAudio;
    case 'stop_playback':
    case 'control_playback':
      // With nothing playing it is admitted and fails as `no_active_playback`, whatever the state (contract §2).
      return hasAudio || (state.phase !== 'ended' && state.playback === undefined);
  }
}

/** One command, at `now`. */
export function command(state: SessionState, order: Command, operationUuid: string, now: number): Step {
  if (isMemberCommand(order)) return memberCommand(state, order, operationUuid);
  if (isRecordingCommand(order)) return recordingCommand(state, order, operationUuid, now);
  const refused = refusal(state, order.type);
  if (refused !== undefined) return { ...stay(state), refused };
  // A second order to end changes nothing: the first one's cause stands.
  const isEnding = state.ending !== undefined;
  switch (order.type) {
    case 'answer':
      return { state: { ...state, answering: operationUuid }, events: [], effects: [{ do: 'answer' }] };
    case 'reject': {
      if (isEnding) return stay(state);
      return orderEnd(state, ending(order.reason, 'callee', operationUuid), { do: 'reject', reason: order.reason }, now);
    }
    case 'hold':
    case 'unhold':
      return hold(state, order.type === 'hold', now);
    case 'send_digits':
      return sendDigits(state, order, operationUuid);
    case 'transfer':
      return transfer(state, order, operationUuid, now);
    case 'cancel':
      return isEnding ? stay(state) : orderEnd(state, ending('cancelled', 'caller', operationUuid), { do: 'cancel' }, now);
    case 'hangup':
      return isEnding ? stay(state) : hangup(state, operationUuid, now);
    case 'play':
    case 'play_stream':
    case 'play_silence':
    case 'play_push':
    case 'stop_playback':
    case 'control_playback':
      return playback(state, order, operationUuid);
    case 'collect':
      return collect(state, order, operationUuid, now);
    case 'cancel_collect':
      return cancelCollect(state);
    case 'collect_payment':
      return collectPayment(state, order, operationUuid, now);
    case 'cancel_payment':
      return cancelPayment(state, order.kind, now);
  }
}

/**
 * The far end is told, and the event follows when it knows. Nothing comes from it meanwhile, so it is watched for
 * silence.
 */
const hold = (state: SessionState, on: boolean, now: number): Step => ({
  state: watch({ ...state, holding: on }, now),
  events: [],
  effects: [{ do: 'hold', on }],
});

/** DELETE, answered or not: BYE, CANCEL, or a decline. A call whose leg is lost has nobody left to be told. */
function hangup(state: SessionState, operationUuid: string, now: number): Step {
  const by = applicationSide(state);
  if (state.phase === 'answered') return orderEnd(state, ending('completed', by, operationUuid), { do: 'hangup' }, now);
  if (!isInbound(state)) {
    const order = state.type === 'phone_out' ? 'cancel' : 'hangup';
    return orderEnd(state, ending('cancelled', by, operationUuid), { do: order }, now);
  }
  const why = ending('rejected', by, operationUuid);
  // The 200 may be out already: then it takes a BYE.
  if (state.answering !== undefined) return orderEnd(state, why, { do: 'hangup' }, now);
  return orderEnd(state, why, { do: 'reject', reason: 'rejected' }, now);
}

/**
 * The prompt is played under a name of its own and is no playback: its end is heard by the collection alone.
 */
function collect(state: SessionState, order: Extract<Command, { type: 'collect' }>, operationUuid: string, now: number): Step {
  const prompted = order.promptUrls.length > 0;
  const begins = beginCollect(operationUuid, order.terms, prompted, now);
  const begun = { ...state, collect: state.press === undefined ? begins : holdForKey(begins, state.press.digit, now) };
  if (!prompted) return stay(begun);
  return {
    state: { ...begun, playback: undefined },
    events: replaced(state),
    effects: [...audible(state), { do: 'play', operationUuid: promptOf(begins), loop: 1, volume: 100 }],
  };
}

function cancelCollect(state: SessionState): Step {
  const { collect: running, sessionUuid } = state;
  if (running === undefined) return stay(state);
  const result = { status: 'cancelled', digits: running.digits, terminator: '' } as const;
  return {
    state: { ...state, collect: undefined },
    events: [digitsCollected(sessionUuid, running, result)],
    effects: running.phase === 'prompting' ? [{ do: 'stop_playback', operationUuid: promptOf(running) }] : [],
  };
}
