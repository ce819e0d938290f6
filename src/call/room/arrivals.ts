/** Sessions of other nodes that go on at this one, as members of the Rooms that they were in. */
import type { Clock } from '../../clock.ts';
import type { RoomStore } from '../../database/call/rooms.ts';
import type { NewHome } from '../ports/room-peers.ts';
import type { SessionActor } from '../session/session-actor.ts';
import { untilStored } from '../until-stored.ts';
import type { Guests } from './guests.ts';
import type { RoomActor } from './room-actor.ts';

interface ArrivalsOptions {
  readonly clock: Clock;
  readonly homes: Pick<RoomStore, 'where'>;
  readonly guests: Pick<Guests, 'release'>;
  session(sessionUuid: string): SessionActor | undefined;
  /** A Room of this node. */
  find(roomId: string): RoomActor | undefined;
  /** The cap of an application, for one that was promised its place. */
  mostPromised(roomId: string, appUuid: string): Promise<number>;
  /** Makes the seat of a Session in a Room of another node. Returns the number under which its notices come. */
  openPipe(home: NewHome, actor: SessionActor): number;
}

export class Arrivals {
  readonly #options: ArrivalsOptions;
  /** The Sessions whose Rooms are looked for, by Room and Session. */
  readonly #following = new Map<string, SessionActor>();

  constructor(options: ArrivalsOptions) {
    this.#options = options;
  }

  /** Tells whether the Room of a Session that has come here is being looked for. */
  has(sessionUuid: string, roomId: string): boolean {
    return this.#following.has(`${roomId} ${sessionUuid}`);
  }

  /** A Session of another node goes on at this one: so does its seat. */
  async follow(actor: SessionActor): Promise<void> {
    const { membership, sessionUuid } = actor.state;
    if (membership === undefined) return;
    const name = `${membership.roomId} ${sessionUuid}`;
    this.#following.set(name, actor);
    try {
      await this.#follow(actor, membership.roomId);
    } finally {
      if (this.#following.get(name) === actor) this.#following.delete(name);
    }
  }

  async #follow(actor: SessionActor, roomId: string): Promise<void> {
    const { homes, clock, find, session, mostPromised, openPipe } = this.#options;
    const { sessionUuid, appUuid } = actor.state;
    const isIn = () => session(sessionUuid) === actor && actor.state.membership?.roomId === roomId;
    const look = async () => (find(roomId) === undefined ? await homes.where(roomId) : undefined);
    const mostMembers = await mostPromised(roomId, appUuid);
    const home = await untilStored(clock, look, isIn);
    if (!isIn()) return;
    const room = find(roomId);
    if (room !== undefined) this.#seat(room, actor, mostMembers);
    else if (home === undefined || home.nodeId === null) actor.signal({ type: 'room_closed', roomId });
    else {
      const { nodeId, epoch } = home;
      actor.signal({ type: 'room_moved', roomId, room: openPipe({ roomId, nodeId, epoch }, actor) });
    }
  }

  /** Seats a Session of this node that was a member before. Its node may have been lost, and its place with it. */
  #seat(room: RoomActor, actor: SessionActor, mostMembers: number): void {
    this.#options.guests.release(room, actor.state.sessionUuid);
    seatAgain(room, actor, mostMembers);
  }
}

/** Seats a Session of this process in a Room of this process, in which it was a member before. */
export function seatAgain(room: RoomActor, actor: SessionActor, mostMembers: number): void {
  const { sessionUuid, type } = actor.state;
  const { roomId } = room.state;
  const isOut = !room.has(sessionUuid);
  const isFull = isOut && room.places.length >= mostMembers;
  // A Room that is being deleted waits until it has left.
  if (isOut && !isFull) room.take(sessionUuid);
  if (isFull || room.state.phase !== 'open') {
    actor.signal({ type: 'room_closed', roomId });
    return;
  }
  room.confirm(sessionUuid, type === 'websocket');
  actor.signal({ type: 'room_moved', roomId, room: room.media.number });
}
