/** Orders to a leg about its seat in a Room, which this node mixes or another one. */
import { directionsOf, type MemberEffect, type VolumeOrder } from '../../machine/room/membership.ts';
import type { SessionInput } from '../../machine/session/input.ts';
import type { SessionState } from '../../machine/session/session.ts';
import type { MediaRoom, RoomMember } from '../../media/engine.ts';
import type { Leg } from '../ports/leg.ts';
import type { SeatsAway } from '../ports/room-peers.ts';

/** The Rooms in which Sessions of this node have seats. */
export interface RoomsOfSeats {
  /** The mix of a live Room. */
  mediaRoom(roomId: string): MediaRoom | undefined;
  /** The sound of a member of a Room that this node mixes. */
  audioOf(sessionUuid: string, roomId: string): RoomMember | undefined;
  /** The seats in Rooms that other nodes mix. Undefined where there are no other nodes. */
  away(): SeatsAway | undefined;
}

/** The Session whose seat it is. */
export interface Seated {
  readonly state: Pick<SessionState, 'sessionUuid' | 'membership'>;
  readonly rooms: RoomsOfSeats;
  signal(input: SessionInput): void;
  /** The input is taken before anything that waits, so that an end that waits does not hide it. */
  signalNext(input: SessionInput): void;
}

/** Carries out what the machine orders about the seat of a Session. What comes of it is told as an input. */
export function performSeat(leg: Leg, effect: MemberEffect, session: Seated): void {
  switch (effect.do) {
    case 'member_join':
      join(leg, effect, session);
      break;
    case 'member_leave':
      leg.audio?.leave();
      break;
    case 'member_set_muted':
      (seatAway(session) ?? leg.audio)?.setMuted(effect.muted);
      break;
    case 'member_set_volume':
      setVolume(leg, effect, session);
      break;
  }
}

/** Its seat in a Room that another node mixes. */
function seatAway({ state: { membership, sessionUuid }, rooms }: Seated): ReturnType<SeatsAway['seat']> {
  return membership === undefined ? undefined : rooms.away()?.seat(sessionUuid, membership.roomId);
}

/** The outcome is told next. */
function setVolume(leg: Leg, order: VolumeOrder, session: Seated): void {
  const directions = directionsOf(order.direction);
  const away = seatAway(session);
  if (away === undefined) {
    const failed = directions.filter((direction) => leg.audio?.setVolume(direction, order.volume) !== true);
    session.signalNext({ type: 'volume_set', order, failed });
    return;
  }
  void Promise.all(directions.map((direction) => away.setVolume(direction, order.volume))).then((set) =>
    session.signal({ type: 'volume_set', order, failed: directions.filter((_, at) => set[at] !== true) }),
  );
}

/** A Room that is gone by now tells the Session so by itself. */
function join(
  { audio }: Leg,
  { roomId, muted, coach, volumes = {} }: Extract<MemberEffect, { readonly do: 'member_join' }>,
  { state: { sessionUuid, membership }, rooms: { mediaRoom, audioOf, away }, signal, signalNext }: Seated,
): void {
  const room = mediaRoom(roomId);
  if (room === undefined) {
    const terms = { muted, volumes, coach };
    if (audio === undefined || away()?.join(sessionUuid, roomId, audio, terms) !== true) signal({ type: 'room_closed', roomId });
    return;
  }
  if (room.number !== membership?.room) {
    // The Room was at another node when its seat was taken: the member joins this mix once it has the number of it.
    signalNext({ type: 'room_moved', roomId, room: room.number });
    return;
  }
  const coaching = coach === undefined ? {} : { coach: { of: audioOf(coach, roomId) } };
  const { from_member: fromVolumePercent = 100, to_member: toVolumePercent = 100 } = volumes;
  audio?.join(room, { muted, fromVolumePercent, toVolumePercent, ...coaching });
}
