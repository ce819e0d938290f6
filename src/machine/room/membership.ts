/**
 * The membership of a Session in a Room (contract §4), a part of the Session's state, for it is the Session that moves:
 *
 *   none ─join→ joining ─heard in the mix→ joined ─removed, moved, room closed, hangup→ none
 *
 * `room.member.joined` and `room.member.left` come in pairs: who never joined never leaves. The exceptions are a member
 * that is removed while it is joining, and one whose audio cannot be brought into the Room: its `left` says that no
 * `joined` will come, although the call goes on.
 */
import type { Event } from '../../event/event.ts';
import type { MemberDirection, MemberLeft, VolumeDirection } from '../../event/room-event.ts';
import { type Problem, problems } from '../../problem.ts';

export interface Membership {
  readonly roomId: string;
  /** The Room's number in the media plane, which its notices name. */
  readonly room: number;
  readonly phase: 'joining' | 'joined';
  readonly muted: boolean;
  /** The Room was created with `voice_activity_events`. */
  readonly voiceActivityEvents: boolean;
  /** The member talks. Bots in the Room hear of it; an event tells it only where `voiceActivityEvents` is set. */
  readonly talking: boolean;
  /** The Session that alone hears it. */
  readonly coach?: string;
  /** The volumes that were set, so that a new mix has them. */
  readonly volumes?: Volumes;
}

/** Percent; absent is 100. */
export interface Volumes {
  readonly from_member?: number;
  readonly to_member?: number;
}

/** A place in a Room that is kept for a Session which has not been answered yet. */
export interface Seat {
  readonly roomId: string;
  /** The Room's number in the media plane. */
  readonly room: number;
  readonly muted: boolean;
  readonly voiceActivityEvents: boolean;
}

export type MemberCommand =
  | {
      readonly type: 'member_join';
      readonly roomId: string;
      readonly room: number;
      readonly muted: boolean;
      readonly voiceActivityEvents: boolean;
      /** The Session of the member that alone hears it. */
      readonly coach?: string;
    }
  | { readonly type: 'member_leave'; readonly roomId: string }
  | { readonly type: 'member_mute' }
  | { readonly type: 'member_unmute' }
  | { readonly type: 'member_volume'; readonly volume: number; readonly direction: VolumeDirection };

export type MemberEffect =
  | {
      readonly do: 'member_join';
      readonly roomId: string;
      readonly muted: boolean;
      readonly coach?: string;
      readonly volumes?: Volumes;
    }
  | { readonly do: 'member_leave' }
  | { readonly do: 'member_set_muted'; readonly muted: boolean }
  | ({ readonly do: 'member_set_volume' } & VolumeOrder);

/** A volume that was admitted; what came of it is told when it has been carried out. */
export interface VolumeOrder {
  readonly roomId: string;
  readonly operationUuid: string;
  readonly volume: number;
  readonly direction: VolumeDirection;
}

/** Whether two orders ask for the same by the same Operation-Id. */
export const isSameVolume = (one: VolumeOrder, other: VolumeOrder): boolean =>
  one.operationUuid === other.operationUuid &&
  one.roomId === other.roomId &&
  one.volume === other.volume &&
  one.direction === other.direction;

export interface MembershipStep {
  readonly membership: Membership | undefined;
  readonly events: readonly Event[];
  readonly effects: readonly MemberEffect[];
}

const stay = (membership: Membership | undefined): MembershipStep => ({ membership, events: [], effects: [] });

/** The reason why a command of a Session that is up is refused, or undefined. */
export function roomRefusal(membership: Membership | undefined, command: MemberCommand): Problem | undefined {
  const joining = membership?.phase === 'joining';
  switch (command.type) {
    case 'member_join':
      return joining && membership.roomId !== command.roomId
        ? problems.conflict('Session is still joining a conference room')
        : undefined;
    case 'member_leave':
      return membership?.roomId === command.roomId ? undefined : problems.notFound('Member');
    case 'member_mute':
    case 'member_unmute':
      if (membership === undefined) return problems.conflict('Session is not in a room');
      if (joining) return problems.conflict('Session is still joining a conference room');
      if (membership.muted === (command.type === 'member_mute')) {
        return problems.conflict(`Session is already ${command.type === 'member_mute' ? 'muted' : 'unmuted'}`);
      }
      return undefined;
    case 'member_volume':
      if (membership === undefined) return problems.conflict('Session is not in a room');
      return joining ? problems.conflict('Session is still joining a conference room') : undefined;
  }
}

/** A command that was not refused. */
export function commandMember(
  sessionUuid: string,
  membership: Membership | undefined,
  command: MemberCommand,
  operationUuid: string,
): MembershipStep {
  switch (command.type) {
    case 'member_join':
      return join(sessionUuid, membership, command);
    case 'member_leave':
      return leave(sessionUuid, membership, 'removed');
    case 'member_mute':
    case 'member_unmute': {
      if (membership === undefined) return stay(membership);
      const muted = command.type === 'member_mute';
      const event = muted ? 'room.member.muted' : 'room.member.unmuted';
      return {
        membership: { ...membership, muted, talking: membership.talking && !muted },
        events: [
          { event, session_uuid: sessionUuid, room_id: membership.roomId },
          ...(muted ? silent(sessionUuid, membership) : []),
        ],
        effects: [{ do: 'member_set_muted', muted }],
      };
    }
    case 'member_volume': {
      if (membership === undefined) return stay(membership);
      const { volume, direction } = command;
      const { roomId } = membership;
      const set = Object.fromEntries(directionsOf(direction).map((each) => [each, volume]));
      return {
        membership: { ...membership, volumes: { ...membership.volumes, ...set } },
        events: [],
        effects: [{ do: 'member_set_volume', roomId, operationUuid, volume, direction }],
      };
    }
  }
}

function join(
  sessionUuid: string,
  before: Membership | undefined,
  { roomId, room, muted, voiceActivityEvents, coach }: Extract<MemberCommand, { type: 'member_join' }>,
): MembershipStep {
  if (before?.roomId === roomId) return stay(before);
  const left = leave(sessionUuid, before, 'moved');
  const coaching = coach === undefined ? {} : { coach };
  return {
    membership: { roomId, room, phase: 'joining', muted, voiceActivityEvents, talking: false, ...coaching },
    events: left.events,
    effects: [...left.effects, { do: 'member_join', roomId, muted, ...coaching }],
  };
}

/** Another node mixes the Room from now on: the member joins that mix, and nothing but the end of its word is told. */
export function roomMoved(sessionUuid: string, membership: Membership | undefined, roomId: string, room: number): MembershipStep {
  if (membership?.roomId !== roomId) return stay(membership);
  const { muted, coach, volumes } = membership;
  return {
    membership: { ...membership, room, talking: false },
    events: silent(sessionUuid, membership),
    effects: [
      {
        do: 'member_join',
        roomId,
        muted,
        ...(coach === undefined ? {} : { coach }),
        ...(volumes === undefined ? {} : { volumes }),
      },
    ],
  };
}

/** Exactly one event of each volume that was admitted: changed, or failed in one direction or both. */
export function volumeSet(sessionUuid: string, order: VolumeOrder, failed: readonly MemberDirection[]): Event {
  const { roomId, operationUuid, volume, direction } = order;
  const about = { session_uuid: sessionUuid, room_id: roomId, operation_uuid: operationUuid, volume, direction };
  if (failed.length === 0) return { event: 'room.member.volume_changed', ...about };
  const applied = directionsOf(direction).filter((each) => !failed.includes(each));
  return { event: 'room.member.volume_change_failed', ...about, applied_directions: applied, failed_directions: failed };
}

export const directionsOf = (direction: VolumeDirection): readonly MemberDirection[] =>
  direction === 'both' ? ['from_member', 'to_member'] : [direction];

/** The first mixed frame was sent to the member. A late notice of a Room it has left means nothing. */
export function memberJoined(sessionUuid: string, membership: Membership | undefined, room: number): MembershipStep {
  if (membership?.phase !== 'joining' || membership.room !== room) return stay(membership);
  return {
    membership: { ...membership, phase: 'joined' },
    events: [{ event: 'room.member.joined', session_uuid: sessionUuid, room_id: membership.roomId }],
    effects: [],
  };
}

/**
 * Speech began or stopped. An event tells it only where the Room asks for it, and never of a member that is muted: its
 * last word was `false`.
 */
export function memberTalking(sessionUuid: string, membership: Membership | undefined, talking: boolean): MembershipStep {
  if (membership?.phase !== 'joined' || (membership.muted && talking)) return stay(membership);
  if (membership.talking === talking) return stay(membership);
  const { roomId, voiceActivityEvents } = membership;
  return {
    membership: { ...membership, talking },
    events: voiceActivityEvents ? [voiceChanged(sessionUuid, roomId, talking)] : [],
    effects: [],
  };
}

/** The event that a member who talked is heard no more, where the Room asks for it. */
const silent = (sessionUuid: string, { talking, voiceActivityEvents, roomId }: Membership): readonly Event[] =>
  talking && voiceActivityEvents ? [voiceChanged(sessionUuid, roomId, false)] : [];

const voiceChanged = (sessionUuid: string, roomId: string, talking: boolean): Event => ({
  event: 'room.member.voice_activity_changed',
  session_uuid: sessionUuid,
  room_id: roomId,
  talking,
});

/**
 * The media plane says that the member is out although nobody asked: the Room's worker is lost, or no pipe to the
 * node of the Room could be made. One that was joining is told too, because its call goes on and its application waits.
 */
export function memberLost(sessionUuid: string, membership: Membership | undefined, room: number): MembershipStep {
  if (membership?.room !== room) return stay(membership);
  const { roomId } = membership;
  return {
    membership: undefined,
    events: [...silent(sessionUuid, membership), memberLeft(sessionUuid, roomId, 'orphan')],
    effects: [],
  };
}

/** Out of the Room, whatever the reason. */
export function leave(sessionUuid: string, membership: Membership | undefined, reason: MemberLeft): MembershipStep {
  if (membership === undefined) return stay(membership);
  const isTold = membership.phase === 'joined' || reason === 'removed';
  return {
    membership: undefined,
    events: [
      // Whoever talked is heard no more, whatever took it out (contract §4).
      ...silent(sessionUuid, membership),
      ...(isTold ? [memberLeft(sessionUuid, membership.roomId, reason)] : []),
    ],
    effects: [{ do: 'member_leave' }],
  };
}

const memberLeft = (sessionUuid: string, roomId: string, reason: MemberLeft): Event => ({
  event: 'room.member.left',
  session_uuid: sessionUuid,
  room_id: roomId,
  reason,
});
