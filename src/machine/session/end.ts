/** The end of a Session: one way in for every cause, so that it ends once. */

import type { Event } from '../../event/event.ts';
import type { HangupBy, HangupCause } from '../../event/hangup.ts';
import { RECORDING_LAST_MS } from '../../limits.ts';
import { type CollectResult, digitsCollected } from '../dtmf/collect.ts';
import { playbackEnded } from '../playback/playback.ts';
import { leave } from '../room/membership.ts';
import type { Effect, SessionInput, Step } from './input.ts';
import { endDetection } from './operation/detection.ts';
import { endPayments } from './operation/payment.ts';
import { hearRecordingNotice, stopAll } from './operation/recording.ts';
import { volumesFailed } from './operation/running.ts';
import { digitsStopped } from './operation/sent-digits.ts';
import { endTransfer } from './operation/transfer.ts';
import { type Ending, isInbound, type SessionState } from './session.ts';

/**
 * The time that the far end has to confirm an ordered end, in milliseconds. Timers F and H take 32 s, and nobody should
 * wait that long for an event.
 */
const TEARDOWN_MS = 5_000;

const DESCRIPTION: Readonly<Record<HangupCause, string>> = {
  completed: 'The call was hung up',
  busy: 'The called party is busy',
  rejected: 'The call was declined',
  timeout: 'The call was not answered in time',
  not_answered: 'The called party could not be reached',
  invalid_number: 'The number is not valid',
  cancelled: 'The call was cancelled before it was answered',
  carrier_congested: 'The carrier has no capacity at the moment',
  carrier_unreachable: 'The carrier could not be reached',
  failed: 'The call failed',
  number_not_found: 'The number is not in service',
};

/** The party of an inbound call is its callee, of an outbound call its caller (interface, `hangup_by`). */
export const applicationSide = (state: SessionState): HangupBy => (isInbound(state) ? 'callee' : 'caller');

/** Why a Session ends. `operationUuid` is that of the command that ended it, if one did. */
export const ending = (cause: HangupCause, by: HangupBy, operationUuid?: string, description = DESCRIPTION[cause]): Ending => ({
  cause,
  by,
  description,
  operationUuid,
});

/** Orders the end: the event follows when the far end has confirmed it, or after `TEARDOWN_MS`. */
export function orderEnd(state: SessionState, why: Ending, order: Effect, now: number): Step {
  if (!state.hasLeg) return end({ ...state, ending: why }, why, now);
  return {
    state: { ...state, ending: why, deadlines: { teardown: now + TEARDOWN_MS } },
    events: [],
    effects: [order],
  };
}

/** Whether the far end ended the call: by its BYE, which may give a cause of the network, or as a party does. */
const isOfFarEnd = ({ by, hungUp }: Ending): boolean => hungUp === true || (by !== 'system' && by !== 'network');

/**
 * The call is over. `why` counts only where no end was ordered before. What is still running is told of first: a
 * collection, a playback, a membership, recordings (contract §2, Order at the end). The Session ends with it, or when
 * the last recording is finished.
 */
export function end(state: SessionState, why: Ending, now: number, effects: readonly Effect[] = []): Step {
  const { playback, collect, membership, sessionUuid } = state;
  const paid = endPayments(state);
  const stopped = stopAll({
    ...state,
    closedAt: state.closedAt ?? now,
    ending: state.ending ?? why,
    playback: undefined,
    collect: undefined,
    membership: undefined,
    collection: undefined,
    press: undefined,
    transfer: undefined,
    detection: undefined,
    sending: [],
    setting: [],
    deadlines: { recordings: now + RECORDING_LAST_MS },
  });
  const last = finish(stopped.state, now);
  return {
    state: last.state,
    events: [
      ...paid.events,
      ...(collect === undefined ? [] : [digitsCollected(sessionUuid, collect, collectEnded(collect.digits))]),
      ...(playback === undefined ? [] : [playbackEnded(sessionUuid, playback, 'stopped')]),
      ...volumesFailed(sessionUuid, state.setting),
      ...leave(sessionUuid, membership, 'hangup').events,
      ...digitsStopped(state),
      ...endTransfer(state, state.ending === undefined && isOfFarEnd(why)),
      ...endDetection(state, now),
      ...stopped.events,
      ...last.events,
    ],
    effects: [...effects, ...stopped.effects],
    ...(paid.payments.length === 0 ? {} : { payments: paid.payments }),
    recordings: stopped.recordings ?? [],
  };
}

/** An input after the call is over: only its recordings, and the patience for them, still count. */
export function closing(state: SessionState, input: SessionInput, now: number): Step {
  if (input.type === 'broken') return finish(state, now, true);
  if (input.type === 'deadline') return finish(state, now, now >= (state.deadlines.recordings ?? 0));
  if (input.type !== 'leg.media' || !('recordingUuid' in input.notice)) return { state, events: [], effects: [] };
  const heard = hearRecordingNotice(state, input.notice);
  const last = finish(heard.state, now);
  return { ...heard, state: last.state, events: [...heard.events, ...last.events] };
}

/** The end, once nothing is left to wait for; those recordings that are left out tell of their own. */
function finish(state: SessionState, now: number, isLate = false): Pick<Step, 'state' | 'events' | 'effects'> {
  const { answeredAt, ending: reason, closedAt = now, sessionUuid, recordings, cutOff } = state;
  const isOrphan = reason?.isOrphan === true;
  if (reason === undefined || (recordings.length > 0 && !isLate)) return { state, events: [], effects: [] };
  const ended: Event = {
    event: 'session.ended',
    session_uuid: sessionUuid,
    answered: answeredAt !== undefined && !isOrphan,
    hangup_cause: reason.cause,
    hangup_by: reason.by,
    hangup_description: reason.description,
    duration_seconds:
      answeredAt === undefined || isOrphan || cutOff !== undefined ? 0 : Math.max(0, Math.floor((closedAt - answeredAt) / 1000)),
    ...(reason.operationUuid === undefined ? {} : { operation_uuid: reason.operationUuid }),
    ...state.report,
  };
  return { state: { ...state, phase: 'ended', endedAt: now, deadlines: {}, recordings: [] }, events: [ended], effects: [] };
}

const collectEnded = (digits: string): CollectResult => ({
  status: 'cancelled',
  digits,
  terminator: '',
  reason: 'session_ended',
});
