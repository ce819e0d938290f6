/** The events of Rooms and their members (interface, Room events). */
export type MemberDirection = 'from_member' | 'to_member';
export type VolumeDirection = 'from_member' | 'to_member' | 'both';

export type RoomEvent =
  | { event: 'room.created'; app_uuid: string; room_id: string }
  | { event: 'room.deleted'; app_uuid: string; room_id: string; reason: 'closed' | 'timeout' }
  | { event: 'room.member.joined'; session_uuid: string; room_id: string }
  | { event: 'room.member.left'; session_uuid: string; room_id: string; reason: MemberLeft }
  | { event: 'room.member.muted' | 'room.member.unmuted'; session_uuid: string; room_id: string }
  | { event: 'room.member.voice_activity_changed'; session_uuid: string; room_id: string; talking: boolean }
  | {
      event: 'room.member.volume_changed';
      session_uuid: string;
      room_id: string;
      operation_uuid: string;
      volume: number;
      direction: VolumeDirection;
    }
  | {
      event: 'room.member.volume_change_failed';
      session_uuid: string;
      room_id: string;
      operation_uuid: string;
      volume: number;
      direction: VolumeDirection;
      applied_directions: readonly MemberDirection[];
      failed_directions: readonly MemberDirection[];
    }
  | {
      event: 'room.playback.ended';
      room_id: string;
      operation_uuid: string;
      urls: readonly string[];
      reason: 'completed' | 'stopped';
    }
  | {
      event: 'room.playback.failed';
      room_id: string;
      operation_uuid: string;
      urls: readonly string[];
      error: 'playback_error' | 'playback_timeout';
    };

/** Contract §4. `orphan`: its node or its leg is lost. */
export type MemberLeft = 'hangup' | 'removed' | 'moved' | 'room_closed' | 'orphan';
