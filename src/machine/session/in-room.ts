/** The Session as a member of a Room: what its membership decides, put back into its state. */
import { problems } from '../../problem.ts';
import { commandMember, type MemberCommand, type MembershipStep, roomRefusal } from '../room/membership.ts';
import type { Command, Step } from './input.ts';
import { paymentRefusal } from './operation/payment.ts';
import { volumesFailed } from './operation/running.ts';
import type { SessionState } from './session.ts';

const ROOM_COMMANDS: ReadonlySet<string> = new Set<MemberCommand['type']>([
  'member_join',
  'member_leave',
  'member_mute',
  'member_unmute',
  'member_volume',
]);

export const isMemberCommand = (command: Command): command is MemberCommand => ROOM_COMMANDS.has(command.type);

/** A command about the Session's Room. Only an answered call that is not ending can be in one. */
export function memberCommand(state: SessionState, order: MemberCommand, operationUuid: string): Step {
  const up = state.hasLeg && state.phase === 'answered' && state.ending === undefined;
  const refused = up
    ? (paymentRefusal(state, order.type) ?? roomRefusal(state.membership, order))
    : problems.conflict('Session is not answered');
  if (refused !== undefined) return { state, events: [], effects: [], refused };
  const step = member(state, commandMember(state.sessionUuid, state.membership, order, operationUuid));
  const orders = step.effects.flatMap((effect) => (effect.do === 'member_set_volume' ? [effect] : []));
  const setting = orders.map(({ roomId, volume, direction }) => ({ roomId, operationUuid, volume, direction }));
  return { ...step, state: { ...step.state, setting: [...step.state.setting, ...setting] } };
}

/**
 * A step of the membership as one of the Session. Volumes that were being set in a Room which it leaves have failed:
 * their outcome, from the node that mixes the Room, may come when the Room is gone.
 */
export function member(state: SessionState, { membership, events, effects }: MembershipStep): Step {
  const before = state.membership?.roomId;
  const hasLeft = before !== undefined && membership?.roomId !== before;
  const failed = hasLeft ? state.setting.filter(({ roomId }) => roomId === before) : [];
  const setting = failed.length === 0 ? state.setting : state.setting.filter((each) => !failed.includes(each));
  return {
    state: { ...state, membership, setting },
    events: [...volumesFailed(state.sessionUuid, failed), ...events],
    effects,
  };
}
