/**
 * A planned hand-over of a Session to another node: which Sessions can go, and the state as the other node takes it up.
 * A call goes between two things that it does: what is played, recorded, collected or under way in SIP is not moved.
 */
import type { SessionState } from './session.ts';

/** Whether the Session could go on at another node as it is now. */
export function isMovable(state: SessionState): boolean {
  const isUp = state.phase === 'answered' && state.hasLeg && state.ending === undefined && state.closedAt === undefined;
  const isPlain = state.type !== 'websocket' && !state.held && !state.holding && state.seat === undefined;
  const isIdle =
    state.playback === undefined &&
    state.collect === undefined &&
    state.collection === undefined &&
    state.transfer === undefined &&
    state.detection === undefined &&
    state.recordings.length === 0 &&
    state.sending.length === 0 &&
    state.setting.length === 0 &&
    state.untold.length === 0;
  return isUp && isPlain && isIdle && state.membership?.phase !== 'joining';
}

/**
 * The state on a node whose clock is `aheadMs` ahead of the one that it comes from. That node listens anew, and tells a
 * key that is down again.
 */
export function carriedOver(state: SessionState, aheadMs: number): SessionState {
  const deadlines = Object.fromEntries(Object.entries(state.deadlines).map(([name, at]) => [name, at + aheadMs]));
  const answeredAt = state.answeredAt === undefined ? undefined : state.answeredAt + aheadMs;
  return { ...state, deadlines, answeredAt, press: undefined, quietUntil: state.quietUntil + aheadMs };
}
