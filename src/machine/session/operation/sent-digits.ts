/**
 * Digits that the application sends to the far end (docs/api.md, Sending digits). They go out one string after the
 * other.
 */
import type { Event } from '../../../event/event.ts';
import { DTMF_SENDS_WAITING_MAX } from '../../../limits.ts';
import { type Problem, problems } from '../../../problem.ts';
import type { Command, Step } from '../input.ts';
import { isCollectingSecurely, type SessionState } from '../session.ts';
import { dtmfSent } from './operation-end.ts';

/** The 409 that a string of digits would get now: one is sent, and DTMF_SENDS_WAITING_MAX wait behind it. */
export function sendRefusal(state: SessionState): Problem | undefined {
  if (isCollectingSecurely(state)) return problems.conflict('Secure collection is in progress');
  const isFull = state.sending.length > DTMF_SENDS_WAITING_MAX;
  return isFull ? problems.conflict(`${DTMF_SENDS_WAITING_MAX} digit strings are waiting already`) : undefined;
}

/** Sends a string that `sendRefusal` permits, after those that are being sent. */
export function sendDigits(
  state: SessionState,
  { digits, durationMs, gapMs }: Extract<Command, { readonly type: 'send_digits' }>,
  operationUuid: string,
): Step {
  return {
    state: { ...state, sending: [...state.sending, { operationUuid, digits }] },
    events: [],
    effects: [{ do: 'send_digits', operationUuid, digits, durationMs, gapMs }],
  };
}

/** The last key of a string has been sent. */
export function digitsSent(state: SessionState, operationUuid: string): Step {
  const sent = state.sending.find((each) => each.operationUuid === operationUuid);
  if (sent === undefined) return { state, events: [], effects: [] };
  const sending = state.sending.filter((each) => each !== sent);
  return { state: { ...state, sending }, events: [dtmfSent(state.sessionUuid, sent, 'completed')], effects: [] };
}

/** The call ended before they were sent whole. */
export const digitsStopped = ({ sessionUuid, sending }: SessionState): readonly Event[] =>
  sending.map((each) => dtmfSent(sessionUuid, each, 'stopped'));
