/** What the Rooms of a node stand on. */
import type { RoomStore } from '../../database/call/rooms.ts';
import type { MediaEngine } from '../../media/engine.ts';
import type { RoomNews } from '../ports/leg.ts';
import type { RoomPeers } from '../ports/room-peers.ts';
import type { SessionActor } from '../session/session-actor.ts';
import type { RoomEnvironment } from './room-actor.ts';

interface RoomLimits {
  readonly maxRooms: number;
  readonly maxMembersPerRoom: number;
}

/** The rows of a cluster's Rooms. */
export type RoomHomes = Pick<
  RoomStore,
  'home' | 'settle' | 'release' | 'make' | 'unmake' | 'list' | 'seize' | 'where' | 'members'
>;

export interface RoomRegistryOptions extends Omit<RoomEnvironment, 'dismiss' | 'onDeleted' | 'onNeverBegan' | 'onTaken'> {
  readonly media: Pick<MediaEngine, 'openRoom' | 'openPlaylist' | 'openPipe'>;
  readonly records: Pick<RoomStore, 'adopt' | 'mine'>;
  /** How the Rooms of a cluster get their homes; undefined where this process has them all. */
  readonly homes?: RoomHomes | undefined;
  /** The other nodes of a cluster. */
  readonly peers?: RoomPeers | undefined;
  limits(appUuid: string): Promise<RoomLimits | undefined>;
  /** A live Session of this node. */
  session(sessionUuid: string): SessionActor | undefined;
  /** Tells whether a Session of the application is live by its row. One that is not here is moving. */
  isLive(appUuid: string, sessionUuid: string): Promise<boolean>;
  /** Tells the bots of this node that are in a Room. */
  tellBots?(sessionUuid: string, roomId: string, news: RoomNews): void;
}
