/**
 * The far end of a call may be gone without a word (interface, Orphaned Session cleanup). Two kinds of calls are
 * watched for it, because no media timeout runs for them: an answered call that is held, and an outbound call in early
 * media. The leg is asked for signs of life, and the Session ends when there was none for ORPHAN_TIMEOUT_SEC.
 */
import type { LegSignal } from '../../notice/signal.ts';
import { ending, orderEnd } from './end.ts';
import type { Step } from './input.ts';
import type { Deadlines, SessionState } from './session.ts';

/**
 * A held call is asked this many times in its orphan timeout; one in early media more often, because asking it sends no
 * message.
 */
const HELD_PROBES = 2;
const EARLY_PROBES = 8;

const isHeld = (state: SessionState): boolean => state.phase === 'answered' && (state.held || state.holding);
const isEarly = (state: SessionState): boolean => state.phase === 'early_media' && state.type === 'phone_out';

/** The deadlines of a Session whose far end has just been heard. */
function watched(state: SessionState, now: number): Deadlines {
  const { orphan: _orphan, probe: _probe, ...others } = state.deadlines;
  const probes = isHeld(state) ? HELD_PROBES : isEarly(state) ? EARLY_PROBES : 0;
  if (probes === 0 || !state.hasLeg || state.ending !== undefined) return others;
  const { orphanTimeoutMs } = state.terms;
  return { ...others, orphan: now + orphanTimeoutMs, probe: now + orphanTimeoutMs / probes };
}

/** Starts, restarts or ends the watch, when the far end was heard or the call went on. */
export const watch = (state: SessionState, now: number): SessionState => ({ ...state, deadlines: watched(state, now) });

/** Tells whether the Session is watched for silence. */
export const isWatched = (state: SessionState): boolean => state.deadlines.probe !== undefined;

/**
 * Tells whether a signal shows that the far end is there. What we play to it, or record of it, shows nothing, nor does
 * a transfer that it has not answered.
 */
export function isSignOfLife(signal: LegSignal): boolean {
  if (signal.type === 'leg.media') return ['digit', 'key.down', 'media.started'].includes(signal.notice.type);
  return signal.type !== 'leg.transfer' || signal.phase !== 'refused' || signal.status !== 0;
}

/** Asks the leg for a sign of life. */
export function probe(state: SessionState, now: number): Step {
  const probes = isHeld(state) ? HELD_PROBES : EARLY_PROBES;
  const next = { ...state.deadlines, probe: now + state.terms.orphanTimeoutMs / probes };
  return { state: { ...state, deadlines: next }, events: [], effects: [{ do: 'probe' }] };
}

/** The far end was silent for too long: the end tells of the Session as if it had never been answered. */
export function silenced(state: SessionState, now: number): Step {
  const why = { ...ending('timeout', 'system', undefined, 'Nothing came from the far end'), isOrphan: true } as const;
  const order = state.phase === 'answered' ? 'hangup' : 'cancel';
  return orderEnd(state, why, { do: order }, now);
}
