/**
 * Rooms over nodes: what the node of a Session and the home of its Room say to each other. The home mixes; the
 * Session's node decides about its membership and tells it.
 *
 *   node of the Session                       home of the Room
 *     take ──────────────────────────────────► the seat, if the Room has one     (before the join is committed)
 *     open: codec, where RTP goes ───────────► one end of the pipe, in the mix   (after it)
 *     notes: muted, volume, news, left ──────► ◄────── notes: joined, talking, closed, lost, news
 */

import type { Reach } from '../../machine/room/home-watch.ts';
import type { Volumes } from '../../machine/room/membership.ts';
import type { SessionState } from '../../machine/session/session.ts';
import type { LegAudio, PipeCodec, PipeEnd } from '../../media/engine.ts';
import type { Problem } from '../../problem.ts';
import type { RoomNews } from './leg.ts';

/** One seat, as long as it is taken: `link` is new each time. */
export interface SeatName {
  readonly roomId: string;
  readonly sessionUuid: string;
  readonly link: string;
}

export type SeatNote =
  | { readonly note: 'muted'; readonly muted: boolean }
  | ({ readonly note: 'volume' } & Volumes)
  /** The member has left, and that is committed. The last note of the Session's node. */
  | { readonly note: 'left' }
  /** The first mixed frame was sent to the member. */
  | { readonly note: 'joined' }
  | { readonly note: 'talking'; readonly talking: boolean }
  /** The Room is being deleted. */
  | { readonly note: 'closed' }
  /** The home's end of the pipe is lost. */
  | { readonly note: 'lost' }
  /** The home ends: whoever gets this is to take the Room. */
  | { readonly note: 'inherit' }
  | { readonly note: 'news'; readonly news: RoomNews };

interface Taking extends SeatName {
  readonly appUuid: string;
  readonly isBot: boolean;
  readonly coach?: string;
}

export type SeatRequest =
  /** `reserved`: the Session has not been answered yet. */
  | ({ readonly type: 'take'; readonly reserved: boolean } & Taking)
  /** `isJoined`: the member was in the Room before its home was lost. */
  | ({
      readonly type: 'open';
      readonly muted: boolean;
      readonly volumes?: Volumes;
      readonly codec: PipeCodec;
      readonly end: PipeEnd;
      readonly isJoined: boolean;
    } & Taking)
  | ({ readonly type: 'note'; readonly number: number; readonly note: SeatNote } & SeatName)
  /** The home asks whether these are still there. */
  | { readonly type: 'check'; readonly seats: readonly SeatName[] }
  /** A bot's node asks who is in the Room. */
  | { readonly type: 'members'; readonly roomId: string };

export interface RoomMember {
  readonly sessionUuid: string;
  readonly isBot: boolean;
}

export type SeatReply =
  | { readonly type: 'taken'; readonly voiceActivityEvents: boolean; readonly epoch: number }
  | { readonly type: 'open'; readonly end: PipeEnd; readonly epoch: number }
  | { readonly type: 'ok' }
  /** There is no such seat. */
  | { readonly type: 'gone' }
  /** The Room is not here. */
  | { readonly type: 'moved' }
  /** The Room is about to be opened here, or at another node: ask again. */
  | { readonly type: 'opening' }
  | { readonly type: 'refused'; readonly problem: Problem }
  /** The links of seats that are not there. */
  | { readonly type: 'absent'; readonly links: readonly string[] }
  | { readonly type: 'members'; readonly members: readonly RoomMember[] };

/** The seat that a Session is to have in a Room. */
export interface SeatWish {
  readonly roomId: string;
  readonly appUuid: string;
  readonly sessionUuid: string;
  readonly isBot: boolean;
  /** The Session has not been answered yet. */
  readonly reserved: boolean;
  readonly coach: string | undefined;
}

/** What was ordered of a member, which a new home is told. */
export interface SeatTerms {
  readonly muted: boolean;
  readonly volumes: Volumes;
  /** The Session of the member that alone hears it. */
  readonly coach: string | undefined;
}

/** The seats of this node's Sessions in Rooms that other nodes mix, as the Sessions use them. */
export interface SeatsAway {
  /** Puts the leg of a Session into its Room. False: it has no seat there. */
  join(sessionUuid: string, roomId: string, audio: LegAudio, terms: SeatTerms): boolean;
  seat(sessionUuid: string, roomId: string): SeatAway | undefined;
  /** A Session of this node goes on at another one, or at one that is not known: `''`. */
  handedOver(state: Pick<SessionState, 'sessionUuid' | 'membership'>, nodeId: string): void;
}

interface SeatAway {
  setMuted(muted: boolean): void;
  /** Resolves with whether the home has set it. */
  setVolume(direction: 'from_member' | 'to_member', percent: number): Promise<boolean>;
}

/** A Room has a new home. */
export interface NewHome {
  readonly roomId: string;
  readonly nodeId: string;
  readonly epoch: number;
}

/** The protocol of the nodes that know L16 in pipes; those of an older release are offered what they know. */
export const L16_PROTOCOL = 2;

export interface RoomPeers {
  /** The literal address that this node's ends of pipes are bound to. */
  readonly pipeHost: string;
  /** The result is undefined when there was no answer; then it may have been taken. */
  ask(nodeId: string, request: SeatRequest): Promise<SeatReply | undefined>;
  reach(nodeId: string): Promise<Reach>;
  /** Tells whether a node was declared dead, or has left. */
  isDead(nodeId: string): boolean;
  /** The protocol of a node (`PROTOCOL` in cluster/membership/join.ts); 0 of one that is not known. */
  protocol(nodeId: string): number;
  tellHome(home: NewHome): void;
  /** Asks the home of a Room that nobody is in to give it up. */
  askRelease(nodeId: string, roomId: string): Promise<boolean>;
  serve(work: {
    answer(request: SeatRequest, from: string): Promise<SeatReply>;
    homeChanged(home: NewHome): void;
    /** Gives up a Room of this node that nobody is in. */
    giveUp(roomId: string): Promise<boolean>;
  }): void;
}
