/**
 * Answering machine detection of a dialled Session (docs/api.md). The media plane listens from the answer on, beside
 * the call:
 *
 *   asked ─answered→ listening ─human, unknown→ (over)
 *                              ─machine→ greeting ─beep, silence→ (over)
 *
 * Each of the two has exactly one event, in the lane of the Session and before its end: `completed` of every dial that
 * asked for it and was answered, `greeting.ended` after a `machine`. The end of the call, a crash, or a plane that says
 * nothing in time leaves the verdict `unknown`, and a greeting without a beep.
 */
import type { Event } from '../../../event/event.ts';
import { MACHINE_DETECTION_GRACE_MS, MACHINE_GREETING_MAX_MS } from '../../../limits.ts';
import type { MediaNotice } from '../../../notice/signal.ts';
import type { Effect, Step } from '../input.ts';
import type { SessionState } from '../session.ts';
import { detectionCompleted, greetingEnded } from './operation-end.ts';

/** The Session has just been answered. */
export function beginDetection(state: SessionState, now: number): { readonly state: SessionState; readonly effects: Effect[] } {
  const { detection } = state;
  if (detection === undefined) return { state, effects: [] };
  const { timeoutMs } = detection;
  const due = now + timeoutMs + MACHINE_DETECTION_GRACE_MS;
  return {
    state: {
      ...state,
      detection: { ...detection, phase: 'listening' },
      deadlines: { ...state.deadlines, detection: due },
    },
    effects: [{ do: 'detect_machine', timeoutMs }],
  };
}

/**
 * The state after a step that took `ms` to store. The media plane listens from when the answer is stored, and has its
 * time from then on.
 */
export function detectedFromStored(before: SessionState, after: SessionState, ms: number): SessionState {
  const due = after.deadlines.detection;
  if (due === undefined || due === before.deadlines.detection) return after;
  return { ...after, deadlines: { ...after.deadlines, detection: due + ms } };
}

/** Takes what the media plane tells of who answered. What is not of the phase that it is in comes too late. */
export function hearDetection(
  state: SessionState,
  notice: Extract<MediaNotice, { readonly type: `machine.${string}` }>,
  now: number,
): Step {
  const { detection, sessionUuid } = state;
  const phase = notice.type === 'machine.detected' ? 'listening' : 'greeting';
  if (detection?.phase !== phase) return { state, events: [], effects: [] };
  if (notice.type === 'machine.greeting_ended') return tell(over(state), greetingEnded(sessionUuid, notice.beep));
  const completed = detectionCompleted(sessionUuid, notice.result, notice.afterMs);
  if (notice.result !== 'machine') return tell(over(state), completed);
  const deadlines = { ...state.deadlines, detection: now + MACHINE_GREETING_MAX_MS + MACHINE_DETECTION_GRACE_MS };
  return tell({ ...state, detection: { ...detection, phase: 'greeting' }, deadlines }, completed);
}

/** The plane has not said in time what it should have. */
export const detectionTimeout = (state: SessionState, now: number): Step => {
  const [event] = endDetection(state, now);
  return event === undefined ? { state: over(state), events: [], effects: [] } : tell(over(state), event);
};

/** What is told when the call ends, or nothing more can be heard of it. */
export function endDetection({ detection, sessionUuid, answeredAt }: SessionState, now: number): readonly Event[] {
  if (detection?.phase === 'listening') return [detectionCompleted(sessionUuid, 'unknown', now - (answeredAt ?? now))];
  return detection?.phase === 'greeting' ? [greetingEnded(sessionUuid, false)] : [];
}

const tell = (state: SessionState, event: Event): Step => ({ state, events: [event], effects: [] });

function over(state: SessionState): SessionState {
  const { detection: _detection, ...deadlines } = state.deadlines;
  return { ...state, detection: undefined, deadlines };
}
