/** Every rate limit (interface, Limits; contract §10): capacity is the burst, refill is tokens a second. */

export type BucketScope = 'call' | 'room' | 'application';

export interface Bucket {
  readonly scope: BucketScope;
  readonly capacity: number;
  readonly refill: number;
}

const call = (capacity: number, refill: number): Bucket => ({ scope: 'call', capacity, refill });
const room = (capacity: number, refill: number): Bucket => ({ scope: 'room', capacity, refill });
const application = (capacity: number, refill: number): Bucket => ({ scope: 'application', capacity, refill });

export const buckets = {
  // Per command in a call.
  answer: call(10, 5),
  reject: call(10, 5),
  cancel: call(10, 5),
  hangup: call(10, 5),
  hold: call(5, 2),
  unhold: call(5, 2),
  transfer: call(2, 0.5),
  /** Shared by playback/seek, recording mask and recording unmask. */
  seek: call(20, 20),
  playback_stop: call(20, 20),
  playback_pause: call(20, 20),
  playback_resume: call(20, 20),
  playback_restart: call(20, 20),
  playback_play: call(8, 4),
  recording_stop: call(20, 20),
  recording_create: call(4, 1),
  dtmf_collect: call(4, 0.8),
  dtmf_cancel: call(4, 0.8),
  dtmf_send: call(10, 5),
  room_mute: call(15, 10),
  room_unmute: call(15, 10),
  card_collect: call(4, 0.8),
  cvv_collect: call(4, 0.8),
  card_cancel: call(4, 0.8),
  cvv_cancel: call(4, 0.8),
  charge: call(2, 0.2),
  // Per room.
  member_add: room(100, 30),
  member_delete: room(100, 30),
  room_pause: room(15, 10),
  room_resume: room(15, 10),
  room_seek: room(15, 10),
  room_playback_volume: room(15, 10),
  room_stop: room(15, 10),
  room_play: room(8, 3),
  /** Shared by record and record/stop. */
  room_record: room(8, 3),
  // Per application.
  dial: application(20, 10),
  connect_websocket: application(20, 10),
  session_list: application(40, 20),
  session_get: application(100, 50),
  room_create: application(10, 2),
  room_list: application(40, 20),
  room_get: application(100, 50),
  room_delete: application(100, 30),
  member_list: application(100, 50),
  member_get: application(100, 50),
  recording_list: application(100, 50),
  recording_get: application(100, 50),
  recording_search: application(100, 50),
  ingest: application(100, 50),
  room_member_volume: application(100, 50),
  message_send: application(20, 10),
  message_get: application(40, 20),
  app_get: application(40, 20),
  app_patch: application(5, 1),
  /** Shared by all operators, too. */
  mcp: application(40, 20),
  /** Shared by making and revoking. */
  webrtc_token: application(20, 10),
  // Per token of a browser.
  whip_offer: call(10, 1),
  whip_patch: call(40, 10),
} as const satisfies Record<string, Bucket>;

export type BucketName = keyof typeof buckets;

/**
 * Refusals of an application that are kept under an `Idempotency-Key`. Beyond it a request is judged again, and never
 * refused for it.
 */
export const KEPT_REFUSALS = application(100, 10);
