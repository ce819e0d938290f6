/**
 * Transfers of a Session (docs/api.md, Transfer). One is under way at a time:
 *
 *   ordered --2xx to REFER--> accepted --final NOTIFY 2xx, or BYE of the far end--> completed --10 s--> hung up by us
 *      \                          \
 *       \--refused                 \--final NOTIFY, no answer in time, end of the Session--> failed
 */
import type { Event } from '../../../event/event.ts';
import { TRANSFERRED_HANGUP_MS } from '../../../limits.ts';
import type { LegSignal } from '../../../notice/signal.ts';
import { type Problem, problems } from '../../../problem.ts';
import type { Command, Step } from '../input.ts';
import { isCollectingSecurely, type SessionState, type Transfer } from '../session.ts';
import { transferFailed } from './operation-end.ts';

/** The 409 that a transfer would get now, or a secure collection because of a transfer. */
export function transferRefusal(state: SessionState): Problem | undefined {
  if (state.transfer !== undefined) return problems.conflict('A transfer is in progress');
  if (state.deadlines.transferred !== undefined) return problems.conflict('The call was transferred');
  return isCollectingSecurely(state) ? problems.conflict('Secure collection is in progress') : undefined;
}

/** Begins a transfer that `transferRefusal` permits. Its target is resolved: one that still names a Session is gone. */
export function transfer(
  state: SessionState,
  order: Extract<Command, { readonly type: 'transfer' }>,
  operationUuid: string,
  now: number,
): Step {
  const { target } = order;
  if ('sessionUuid' in target) return { state, events: [], effects: [], refused: problems.notFound('Session') };
  return {
    state: {
      ...state,
      transfer: { operationUuid, accepted: false },
      deadlines: { ...state.deadlines, transfer: now + order.timeoutMs },
    },
    events: [],
    effects: [{ do: 'transfer', target }],
  };
}

/** Takes what the far end answered to the REFER, and told by its NOTIFY. */
export function hearTransfer(
  state: SessionState,
  signal: Extract<LegSignal, { readonly type: 'leg.transfer' }>,
  now: number,
): Step {
  const { transfer: running } = state;
  if (running === undefined) return { state, events: [], effects: [] };
  if (signal.phase === 'accepted')
    return { state: { ...state, transfer: { ...running, accepted: true } }, events: [], effects: [] };
  const over = withoutTransfer(state);
  if (signal.phase !== 'completed') {
    return {
      state: over,
      events: [transferFailed(state.sessionUuid, running.operationUuid, signal.phase, signal.status)],
      effects: [],
    };
  }
  return {
    // The far end hangs up; if it does not, we do.
    state: { ...over, deadlines: { ...over.deadlines, transferred: now + TRANSFERRED_HANGUP_MS } },
    events: [completed(state, running)],
    effects: [],
  };
}

/** No final answer came in time. */
export function transferTimeout(state: SessionState): Step {
  const { transfer: running } = state;
  if (running === undefined) return { state, events: [], effects: [] };
  return {
    state: withoutTransfer(state),
    events: [transferFailed(state.sessionUuid, running.operationUuid, 'timeout')],
    effects: [],
  };
}

/**
 * What becomes of a transfer under way when the Session ends. A far end that hangs up after it accepted has gone to the
 * other call.
 */
export function endTransfer(state: SessionState, byFarEnd: boolean): readonly Event[] {
  const { transfer: running } = state;
  if (running === undefined) return [];
  return [
    running.accepted && byFarEnd
      ? completed(state, running)
      : transferFailed(state.sessionUuid, running.operationUuid, 'session_ended'),
  ];
}

function withoutTransfer(state: SessionState): SessionState {
  const { transfer: _transfer, ...deadlines } = state.deadlines;
  return { ...state, transfer: undefined, deadlines };
}

const completed = ({ sessionUuid }: SessionState, { operationUuid }: Transfer): Event => ({
  event: 'session.transfer.completed',
  session_uuid: sessionUuid,
  operation_uuid: operationUuid,
});
