/**
 * Rooms that come to this node, which is their home by their rows from then on. Those who are in a Room keep their
 * places before anybody else gets one: the members of this node, then those that the rows name, wherever they are.
 */
import type { Clock } from '../../clock.ts';
import type { RoomStore } from '../../database/call/rooms.ts';
import type { RoomRow } from '../../database/journal/journal.ts';
import type { Log } from '../../log.ts';
import type { NewHome, RoomPeers } from '../ports/room-peers.ts';
import type { SessionActor } from '../session/session-actor.ts';
import { untilStored } from '../until-stored.ts';
import type { Guests } from './guests.ts';
import type { Pipe } from './pipe.ts';
import type { RoomActor } from './room-actor.ts';

export interface TakeoversOptions {
  readonly nodeId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly homes: Pick<RoomStore, 'where' | 'members'>;
  readonly peers: Pick<RoomPeers, 'tellHome'>;
  readonly guests: Pick<Guests, 'expect'>;
  session(sessionUuid: string): SessionActor | undefined;
  mostMembers(appUuid: string): Promise<number>;
  /** A Room of this node. */
  find(roomId: string): RoomActor | undefined;
  /** Opens a Room that this node has become the home of, and takes up what was under way in it. */
  adopt(row: RoomRow): Promise<RoomActor | undefined>;
  /** The pipes of this node that led to the home before. */
  pipesOf(roomId: string): readonly Pipe[];
  drop(pipe: Pipe): void;
  /** The Session of the pipe is in no Room any more. */
  lost(pipe: Pipe): void;
  moveOut(room: RoomActor, home: NewHome): void;
}

export class Takeovers {
  readonly #options: TakeoversOptions;
  /** The Rooms that this node has by their rows and is about to open. */
  readonly #opening = new Map<string, { readonly epoch: number; readonly opened: Promise<void> }>();
  /** How often Rooms of dead nodes are being taken over at the moment, whose names are not known yet. */
  #takingOver = 0;

  constructor(options: TakeoversOptions) {
    this.#options = options;
  }

  /** Tells whether the members of a Room that has come here are not known yet. */
  has(roomId: string): boolean {
    return this.#opening.has(roomId);
  }

  /** Tells whether the Room may be one of those that are just coming here. */
  mayBring(roomId: string): boolean {
    return this.#takingOver > 0 || this.has(roomId);
  }

  /** Takes over Rooms of dead nodes. */
  async all(adopt: () => Promise<readonly RoomRow[]>): Promise<readonly RoomRow[]> {
    this.#takingOver++;
    try {
      const rows = await adopt();
      for (const row of rows) {
        await this.becomeHome(row).catch((error: unknown) =>
          this.#options.log.warn({ room_id: row.roomId, error: String(error) }, 'the members of a Room are late'),
        );
      }
      return rows;
    } finally {
      this.#takingOver--;
    }
  }

  /** Resolves once the members of a Room that has just come here are known. Undefined: it has not. */
  opening(roomId: string): Promise<void> | undefined {
    return this.#opening.get(roomId)?.opened.catch(() => {});
  }

  /** Opens a Room, once for all who ask at the same time. */
  becomeHome(row: RoomRow): Promise<void> {
    const { roomId, epoch } = row;
    const under = this.#opening.get(roomId);
    if (under !== undefined && under.epoch >= epoch) return under.opened;
    // One of before, which another node had meanwhile, is let go before the Room is opened as what it is now.
    const opening = under === undefined ? this.#open(row) : under.opened.catch(() => {}).then(() => this.#open(row));
    const opened = opening.finally(() => {
      if (this.#opening.get(roomId)?.opened === opened) this.#opening.delete(roomId);
    });
    this.#opening.set(roomId, { epoch, opened });
    return opened;
  }

  async #open(row: RoomRow): Promise<void> {
    const { peers, nodeId, homes, find, adopt, clock, mostMembers, moveOut } = this.#options;
    const { roomId, epoch } = row;
    const known = find(roomId);
    // Another node had taken it meanwhile, and was lost before it could tell: what is here has no row any more.
    if (known !== undefined && known.epoch < epoch) moveOut(known, { roomId, nodeId, epoch });
    const room = find(roomId) ?? (await adopt(row));
    if (room === undefined) return;
    const isOpen = () => find(roomId) === room;
    const read = async () => {
      room.mostMembers = await mostMembers(row.appUuid);
      return { home: await homes.where(roomId), members: await homes.members(roomId) };
    };
    // Nobody else looks for the members once the Room is here, so they are read until the database answers.
    const rows = await untilStored(clock, read, isOpen);
    if (rows === undefined || !isOpen()) return;
    const { home, members } = rows;
    // Another node took it while this one was opening it.
    if (typeof home?.nodeId === 'string' && home.nodeId !== nodeId) {
      moveOut(room, { roomId, nodeId: home.nodeId, epoch: home.epoch });
      return;
    }
    this.#place(room, members);
    peers.tellHome({ roomId, nodeId, epoch });
  }

  #place(room: RoomActor, members: Awaited<ReturnType<RoomStore['members']>>): void {
    const { nodeId, guests, session, pipesOf } = this.#options;
    const { roomId } = room.state;
    for (const pipe of pipesOf(roomId)) if (this.#hasPlace(pipe)) this.#moveIn(room, pipe);
    for (const { sessionUuid, nodeId: theirs } of members) {
      if (room.has(sessionUuid)) continue;
      const actor = session(sessionUuid);
      // One of this node that is not here yet is being taken over: it comes to its place, or tells that it has left.
      if (theirs !== nodeId || actor === undefined) guests.expect(room, sessionUuid, theirs);
      // One without a pipe was taken over before the Room was, and its leave is being stored.
      else if (actor.state.membership?.roomId === roomId) room.take(sessionUuid);
    }
    for (const pipe of pipesOf(roomId))
      if (room.places.length < room.mostMembers) this.#moveIn(room, pipe);
      else this.#turnAway(room, pipe);
  }

  /** Tells whether the last home gave the Session a place. One that was joining may have it of the home before only. */
  #hasPlace({ isPromised, sessionUuid, name: { roomId } }: Pipe): boolean {
    const membership = this.#options.session(sessionUuid)?.state.membership;
    return isPromised || (membership?.roomId === roomId && membership.phase === 'joined');
  }

  /** A member of this node joins the mix of a Room that has come here. */
  #moveIn(room: RoomActor, pipe: Pipe): void {
    const { sessionUuid } = pipe;
    const { roomId } = room.state;
    const session = this.#options.session(sessionUuid);
    const { seat, membership } = session?.state ?? {};
    // Its join or its dial is being stored, or it is not answered yet. One that only asks for its seat may get none.
    if (seat?.roomId === roomId || (membership?.roomId !== roomId && pipe.isPromised)) room.reserve(sessionUuid);
    else if (membership?.roomId === roomId) room.take(sessionUuid);
    if (membership?.phase === 'joined') room.confirm(sessionUuid, session?.state.type === 'websocket');
    session?.signal({ type: 'room_moved', roomId, room: room.media.number });
    this.#options.drop(pipe);
  }

  /** A Session that was to come into a Room which is full by now is in none, and its dial has no seat. */
  #turnAway(room: RoomActor, pipe: Pipe): void {
    const { lost, session, drop } = this.#options;
    lost(pipe);
    session(pipe.sessionUuid)?.signal({ type: 'room_closed', roomId: room.state.roomId });
    drop(pipe);
  }
}
