/** The Rooms of this node as the doors see them: commands in, answers out. */

import type { RoomCommand } from '../../machine/room/room.ts';
import type { Problem } from '../../problem.ts';
import type { Answer, CommandContext } from './sessions.ts';

/** A Room as a list shows it (interface, Rooms). */
export interface ListedRoomView {
  readonly room_id: string;
  readonly created_at: string;
  readonly member_count: number;
  readonly playback_status: 'stopped' | 'playing' | 'paused';
  readonly voice_activity_events: boolean;
}

/** A Room as GET shows it (interface, Room). */
export interface RoomView extends ListedRoomView {
  readonly playback_operation_uuid: string;
  readonly playback_urls: readonly string[];
  readonly playback_volume: number;
}

export interface MemberView {
  readonly uuid: string;
  readonly muted: boolean;
}

/** A Room of this node with those who are in it, for the operator. */
export interface LiveRoom {
  readonly roomId: string;
  readonly appUuid: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly members: readonly { readonly sessionUuid: string; readonly muted: boolean; readonly talking: boolean }[];
}

export interface CreateRequest {
  readonly voice_activity_events: boolean;
  /** What a member that is alone hears while nothing is played. */
  readonly hold_music_url?: string;
}

export interface JoinRequest {
  readonly session_uuid: string;
  readonly muted: boolean;
  /** The Session of the member that alone is to hear it. */
  readonly coach?: string;
}

export interface Rooms {
  create(request: CreateRequest, context: CommandContext): Promise<Answer | Problem>;
  list(appUuid: string): readonly ListedRoomView[] | Problem | Promise<readonly ListedRoomView[] | Problem>;
  /** Tells whether this node mixes the Room, whatever its application. */
  isHere(roomId: string): boolean;
  /** Tells whether the application has such a Room, on whatever node. */
  knows(appUuid: string, roomId: string): Promise<boolean>;
  get(appUuid: string, roomId: string): RoomView | undefined;
  /**
   * Waits for a Room that has just come to this node, whatever its application, until its members are known. Resolves
   * with a problem where that takes long, and where the Room is not here then. Undefined: no such Room is coming.
   */
  opening(roomId: string): Promise<Problem | undefined> | undefined;
  /** Delete, and the commands of its playback. The Room is the application's. */
  order(roomId: string, order: RoomCommand, context: CommandContext): Promise<Answer | Problem>;
  join(roomId: string, request: JoinRequest, context: CommandContext): Promise<Answer | Problem>;
  leave(roomId: string, sessionUuid: string, context: CommandContext): Promise<Answer | Problem>;
  members(roomId: string): readonly MemberView[];
  /** The Rooms that this node mixes, of all applications, newest first. */
  live(): readonly LiveRoom[];
}
