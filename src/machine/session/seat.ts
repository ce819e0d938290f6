/**
 * A seat in a Room that was taken when the Session was made (`room_id` of a dial or connectWebsocket). It becomes a
 * membership with the answer:
 *
 *   seat ─answered→ joining, `session.answered` waits ─heard in the mix, or the Room is gone, or the wait is over→ told
 *
 * `room.member.joined` comes before `session.answered`, so that whoever reads the events finds the caller in the Room.
 */
import type { Event } from '../../event/event.ts';
import { ROOM_SEAT_CONFIRM_MS } from '../../limits.ts';
import { commandMember, type Seat } from '../room/membership.ts';
import type { Step } from './input.ts';
import type { SessionState } from './session.ts';

/** Takes the seat of a Session that has just been answered; `answered` is told when the Session is heard in the mix. */
export function takeSeat(state: SessionState, seat: Seat, answered: readonly Event[], now: number): Step {
  const joined = commandMember(state.sessionUuid, undefined, { type: 'member_join', ...seat }, '');
  return {
    state: {
      ...state,
      seat: undefined,
      membership: joined.membership,
      untold: answered,
      // Nothing to tell is nothing to wait for, and a deadline that nobody takes away stays due for ever.
      deadlines: answered.length === 0 ? state.deadlines : { ...state.deadlines, seat: now + ROOM_SEAT_CONFIRM_MS },
    },
    events: joined.events,
    effects: joined.effects,
  };
}

/**
 * Tells the answer once the seat is taken, lost, or waited for too long (`isOver`). What else is told of the Session in
 * the meantime waits behind its answer: at most a second's events, as the wait is no longer. All of it comes before the
 * end of the call. `waited` says whether the answer had waited before this step.
 */
export function tellAnswer(next: Step, waited: boolean, isOver: boolean): Step {
  const { untold, membership, closedAt, deadlines } = next.state;
  if (untold.length === 0) return next;
  if (membership?.phase === 'joining' && !isOver && closedAt === undefined) {
    return waited ? { ...next, state: { ...next.state, untold: [...untold, ...next.events] }, events: [] } : next;
  }
  const { seat: _, ...others } = deadlines;
  const isJoined = ({ event }: Event): boolean => event === 'room.member.joined';
  const joined = next.events.filter(isJoined);
  const later = next.events.filter((event) => !isJoined(event));
  return { ...next, state: { ...next.state, untold: [], deadlines: others }, events: [...joined, ...untold, ...later] };
}
