/**
 * The keys of a Session's far end. A key that goes down stops a prompt with `barge_in` and holds the timer of the next
 * key; it counts, and is told, when it is let go.
 */
import { DTMF_PRESS_MAX_MS } from '../../../limits.ts';
import { type CollectStep, digitsCollected, key, press, promptOf, release } from '../../dtmf/collect.ts';
import { pressSecurely, releaseSecurely } from '../../payment/collection.ts';
import type { Effect, Step } from '../input.ts';
import type { SessionState } from '../session.ts';
import { collecting as collectingSecurely, isSecuredKey, securedKey } from './payment.ts';

const stay = (state: SessionState): Step => ({ state, events: [], effects: [] });

/**
 * A key went down. It is of no concern where it belongs to a secure collection that is over, or where the call is
 * being ended.
 */
export function keyDown(before: SessionState, digit: string, now: number): Step {
  const { collection, collect } = before;
  if (before.ending !== undefined || (collection === undefined && isSecuredKey(before, 0, now))) return stay(before);
  const state = { ...before, press: { digit, until: now + DTMF_PRESS_MAX_MS } };
  if (collection !== undefined) return collectingSecurely(state, collection, pressSecurely(collection, now), now);
  return collect === undefined ? stay(state) : collecting(state, collect, press(collect, digit, now));
}

/** No key is down any more, as far as can be known: the timer goes on. */
export function keyUp(state: SessionState, now: number): SessionState {
  if (state.press === undefined) return state;
  const { collect, collection } = state;
  return {
    ...state,
    press: undefined,
    collect: collect && release(collect, now),
    collection: collection && releaseSecurely(collection, now),
  };
}

/** A key was let go. One that came by SIP INFO, as one message, says nothing of a key that is down in the audio. */
export function digit(
  before: SessionState,
  pressed: string,
  durationMs: number,
  method: 'rfc4733' | 'inband' | 'sip_info',
  now: number,
): Step {
  const state = method === 'sip_info' ? before : keyUp(before, now);
  const secured = securedKey(state, pressed, durationMs, now);
  if (secured !== undefined) return secured;
  const received = {
    event: 'dtmf.received',
    session_uuid: state.sessionUuid,
    digit: pressed,
    duration_ms: durationMs,
    method,
  } as const;
  if (state.collect === undefined) return { state, events: [received], effects: [] };
  const collected = collecting(state, state.collect, key(state.collect, pressed, now));
  return { ...collected, events: [received, ...collected.events] };
}

/** Puts a step of the collection of digits into the Session's state. */
export function collecting(state: SessionState, before: Parameters<typeof promptOf>[0], next: CollectStep): Step {
  const effects: Effect[] = next.stopPrompt ? [{ do: 'stop_playback', operationUuid: promptOf(before) }] : [];
  if ('collect' in next) return { state: { ...state, collect: next.collect }, events: [], effects };
  return {
    state: { ...state, collect: undefined },
    events: [digitsCollected(state.sessionUuid, before, next.done)],
    effects,
  };
}
