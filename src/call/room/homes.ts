/**
 * The homes of a cluster's Rooms, as one node sees them: each Room is mixed by one node. A Room that nobody is in is
 * given up to the node of its next member.
 */
import type { Clock } from '../../clock.ts';
import type { RoomStore } from '../../database/call/rooms.ts';
import type { RoomRow } from '../../database/journal/journal.ts';
import type { Adoption } from '../adoption.ts';
import type { RoomPeers } from '../ports/room-peers.ts';
import { untilStored } from '../until-stored.ts';
import type { RoomActor } from './room-actor.ts';

interface HomesOptions {
  readonly store: Pick<RoomStore, 'home' | 'settle' | 'release'>;
  readonly clock: Clock;
  readonly nodeId: string;
  readonly peers: Pick<RoomPeers, 'askRelease'>;
  readonly adoption: Adoption<RoomRow>;
  /** A Room of this node. */
  find(roomId: string): RoomActor | undefined;
  /** Looks whether a Room of this node is still its own by the row, and lets it go where it is not. */
  verify(roomId: string): Promise<void>;
  open(row: RoomRow): Promise<RoomActor | undefined>;
}

export class Homes {
  readonly #options: HomesOptions;
  readonly #settling = new Map<string, Promise<boolean>>();

  constructor(options: HomesOptions) {
    this.#options = options;
  }

  /** Tells whether the application has such a Room by its row, whoever mixes it. */
  async isKnown(appUuid: string, roomId: string): Promise<boolean> {
    return (await this.#options.store.home(appUuid, roomId)) !== undefined;
  }

  /**
   * The other node that mixes a Room. Undefined: this one does, or there is no such Room. `bring`: an empty Room comes
   * here.
   */
  async away(appUuid: string, roomId: string, bring: boolean): Promise<string | undefined> {
    const { store, peers, nodeId, find, verify } = this.#options;
    // Whoever is let in by a home of the past is one too many at the next: that home has read its members.
    await verify(roomId);
    if (find(roomId) !== undefined) return undefined;
    const home = await store.home(appUuid, roomId);
    if (home === undefined || home === nodeId) return undefined;
    if (home !== null && (!bring || (await peers.askRelease(home, roomId)) !== true)) return home;
    if (await this.#settle(roomId)) return undefined;
    // Another was quicker.
    return (await store.home(appUuid, roomId)) ?? undefined;
  }

  /** Takes a Room that has no home. Two that ask at once get the same one. */
  async #settle(roomId: string): Promise<boolean> {
    const under = this.#settling.get(roomId) ?? this.#take(roomId).finally(() => this.#settling.delete(roomId));
    this.#settling.set(roomId, under);
    return await under;
  }

  async #take(roomId: string): Promise<boolean> {
    const { store, adoption, find, open } = this.#options;
    const settled = adoption.hold(roomId);
    try {
      const row = await adoption.one(store.settle(roomId));
      return row === undefined ? find(roomId) !== undefined : (await open(row)) !== undefined;
    } finally {
      settled();
    }
  }

  /**
   * Gives a Room up to the node of its first member. False: somebody is in it, or something goes on in it. Nothing is
   * taken for it until the database has answered: it may be given up already, and be another node's.
   */
  async giveUp(room: RoomActor): Promise<boolean> {
    const { store, clock, find } = this.#options;
    const { roomId } = room.state;
    if (room.isLeaving || !room.isIdle) return false;
    room.isLeaving = true;
    const isReleased = await untilStored(clock, () => store.release(roomId, room.epoch));
    // If this statement did not release the Room, an earlier one did, or another node has it.
    if (find(roomId) === room) room.abandon();
    return isReleased;
  }
}
