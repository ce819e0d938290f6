/** The signals that only a Session of type `websocket` hears (interface, WebSocket Session events). */
import type { Event } from '../../event/event.ts';
import type { LegSignal } from '../../notice/signal.ts';
import { end, ending } from './end.ts';
import type { Step } from './input.ts';
import { takeSeat } from './seat.ts';
import type { SessionState } from './session.ts';

export type WebSocketSignal = Extract<
  LegSignal,
  { readonly type: 'leg.connected' | 'leg.failed' | 'leg.disconnected' | 'leg.played' }
>;

/** `connecting` becomes `answered` without a `session.answered`; every end is told as the connection's own first. */
export function hearWebSocket(state: SessionState, signal: WebSocketSignal, now: number): Step {
  const { sessionUuid: session_uuid, answering: operation_uuid = '' } = state;
  switch (signal.type) {
    case 'leg.connected':
      if (state.phase !== 'connecting') return { state, events: [], effects: [] };
      // It was to end before it was there: it is told again.
      if (state.ending !== undefined) return { state, events: [], effects: [{ do: 'hangup' }] };
      return connected(state, signal.subprotocol, now);
    case 'leg.failed': {
      const { reason, error } = signal;
      return over(state, signal, { event: 'websocket.failed', session_uuid, operation_uuid, reason, error }, now);
    }
    case 'leg.disconnected': {
      const { reason, closeCode: close_code } = signal;
      // It was hung up on while its connection came up, so nobody was told of one.
      if (state.phase === 'connecting') return over(state, signal, undefined, now);
      return over(state, signal, { event: 'websocket.disconnected', session_uuid, reason, close_code }, now);
    }
    case 'leg.played':
      return {
        state,
        events: [{ event: 'websocket.audio_playback_completed', session_uuid, duration_ms: signal.durationMs }],
        effects: [],
      };
  }
}

/** The Session is up, and takes its seat in a Room if it has one. */
function connected(state: SessionState, subprotocol: string | undefined, now: number): Step {
  const { sessionUuid: session_uuid, answering: operation_uuid = '' } = state;
  const up: SessionState = {
    ...state,
    phase: 'answered',
    answeredAt: now,
    answering: undefined,
    deadlines: { duration: now + state.terms.maxDurationMs },
  };
  const spoken = subprotocol === undefined ? {} : { subprotocol };
  const told: Event = { event: 'websocket.connected', session_uuid, operation_uuid, ...spoken };
  if (state.seat === undefined) return { state: up, events: [told], effects: [] };
  const seated = takeSeat(up, state.seat, [], now);
  return { ...seated, events: [told, ...seated.events] };
}

function over(
  state: SessionState,
  { end: why }: Extract<WebSocketSignal, { readonly end: unknown }>,
  told: Event | undefined,
  now: number,
): Step {
  const ended = end({ ...state, hasLeg: false }, ending(why.cause, why.by, undefined, why.description), now);
  return { ...ended, events: told === undefined ? ended.events : [told, ...ended.events] };
}
