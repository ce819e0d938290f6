/**
 * Finds a home for Rooms whose home is lost, for the pipes of this node that lead there.
 *
 *   lost ─compare-and-set on the Room's row→ this node is the home
 *                                          → another is: the pipes go there
 *                                          → there is no such Room any more: its members are told that it is closed
 *
 * One search is under way for each Room. What is told meanwhile (a pipe has found that the next home is lost as well)
 * changes what the search looks for, so that no loss is forgotten.
 */

import { type Clock, sleep } from '../../clock.ts';
import type { RoomStore } from '../../database/call/rooms.ts';
import type { RoomRow } from '../../database/journal/journal.ts';
import { warnUnlessAway } from '../../database/journal/journal.ts';
import { HOME_SEARCH_TRIES, HOME_TRUSTED_TRIES, SEAT_NOTE_RETRY_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { NewHome } from '../ports/room-peers.ts';
import type { HomeLost } from './pipe.ts';

interface Lost {
  readonly home: NewHome;
  readonly why: HomeLost;
}

export interface HomeSearchOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeId: string;
  readonly homes: Pick<RoomStore, 'seize' | 'where'>;
  /** Whether a pipe of this node leads to that home, at that epoch or an earlier one. */
  leadsTo(home: NewHome): boolean;
  /** This node has become the home. */
  become(row: RoomRow): Promise<void>;
  /** Another node is the home. */
  follow(home: NewHome): void;
  /** The Room is gone. */
  closed(roomId: string): void;
  /** No home was found: the members are in no Room any more. */
  failed(roomId: string): void;
}

export class HomeSearch {
  readonly #options: HomeSearchOptions;
  /** What is looked for, by Room: the loss that was told last. */
  readonly #searches = new Map<string, Lost>();

  constructor(options: HomeSearchOptions) {
    this.#options = options;
  }

  /** Tells whether a home of the Room is being looked for, so that this node may become it any moment. */
  has(roomId: string): boolean {
    return this.#searches.has(roomId);
  }

  /** The home of a Room is lost. */
  async lost(home: NewHome, why: HomeLost): Promise<void> {
    const { roomId } = home;
    const before = this.#searches.get(roomId);
    // What is known of the same home stays: `moved` is only what it says of itself.
    if (before === undefined || !isSame(before.home, home)) this.#searches.set(roomId, { home, why });
    if (before !== undefined) return;
    try {
      if (!(await this.#search(roomId))) this.#options.failed(roomId);
    } finally {
      this.#searches.delete(roomId);
    }
  }

  /** Resolves with false when it was given up. */
  async #search(roomId: string): Promise<boolean> {
    const { clock, log, leadsTo } = this.#options;
    for (let tries = 0; tries < HOME_SEARCH_TRIES; tries++) {
      const lost = this.#searches.get(roomId);
      // The pipes may have followed the Room meanwhile.
      if (lost === undefined || !leadsTo(lost.home)) return true;
      // A home that does not know the Room may be one that is just opening it; later it is one that never will.
      const mayTake = lost.why !== 'moved' || tries >= HOME_TRUSTED_TRIES;
      const isFound = await this.#find(lost, mayTake).catch((error: unknown) => {
        warnUnlessAway(log, error, { room_id: roomId }, 'the new home of a Room is looked for again');
        return false;
      });
      if (isFound && this.#searches.get(roomId) === lost) return true;
      await sleep(clock, SEAT_NOTE_RETRY_MS);
    }
    return false;
  }

  async #find({ home: { roomId, nodeId: lostId, epoch }, why }: Lost, mayTake: boolean): Promise<boolean> {
    const { homes, nodeId, log, become, follow, closed } = this.#options;
    const row = mayTake ? await homes.seize(roomId, lostId, epoch) : undefined;
    if (row !== undefined) {
      log.warn({ room_id: roomId, from: lostId, why }, 'this node is the home of a Room from now on');
      await become(row);
      return true;
    }
    const found = await homes.where(roomId);
    if (found === undefined) {
      closed(roomId);
      return true;
    }
    // This node is about to open it, or nobody has it at the moment, or it is still the one that is lost.
    if (found.nodeId === null || found.nodeId === nodeId) return false;
    if (isSame({ roomId, nodeId: found.nodeId, epoch: found.epoch }, { roomId, nodeId: lostId, epoch })) return false;
    follow({ roomId, nodeId: found.nodeId, epoch: found.epoch });
    return true;
  }
}

const isSame = (a: NewHome, b: NewHome): boolean => a.nodeId === b.nodeId && a.epoch === b.epoch;
