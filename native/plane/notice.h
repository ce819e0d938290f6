// What the plane tells upward: fixed records of eight 32-bit words, packed into the buffer the worker hands to each
// tick.
#pragma once
#include <cstdint>
#include <vector>

namespace sidetone {

/** The numbers are shared with src/media/worker/notice.ts. */
enum class NoticeKind : uint32_t {
  media_started = 1,
  media_timeout = 2,
  digit = 3,             // a: character code, b: duration in ms, c: 1 where it was heard in the audio
  playback_started = 4,  // a: playback
  playback_ended = 5,    // a: playback; all that was fed has been sent
  playback_stopped = 6,  // a: playback
  // a: playback, b: milliseconds queued, c: samples fed so far, d: milliseconds of silence because nothing was fed
  playback_hungry = 7,
  room_joined = 8,  // a: room; the first mixed frame has been sent
  room_left = 9,    // a: room
  voice = 10,       // a: whether the member talks
  moved = 11,       // the participant has come to this plane
  // Notices of recordings carry the number of the recording in place of a leg's.
  recording_started = 12,  // the first audio is durable
  recording_ended = 13,    // a: duration in ms, b: bytes of the file
  recording_failed = 14,   // a: RecordingFile::Fault, b: duration in ms of what the file holds
  speech_started = 15,     // a: whether it is the first, b: silence before it in ms
  speech_ended = 17,
  stream_played = 18,   // a: milliseconds of the audio that has been played out
  keys_sent = 19,       // a: the number of the keys that have been sent
  playback_moved = 16,  // a: playback, b: samples heard of it before a seek
  answerer = 20,        // a: Answerer, b: milliseconds since the detection began
  greeting_ended = 21,  // a: whether with a beep
  link = 22,            // a: LinkState of a WebRTC leg
  payload_type = 23,    // a: the payload type that comes in place of the one in use
  key_down = 24,        // a: character code, c: 1 where it was heard in the audio; then a digit or `key_up`
  key_up = 25,          // the key that was down is up, or was none, and no digit of it comes
  pipe_silent = 40,     // nothing came from the other node for 300 ms
};

struct Notice {
  NoticeKind kind;
  uint32_t leg;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t more[4] = {0, 0, 0, 0};  // c, d, and two reserved
};
static_assert(sizeof(Notice) == 32, "one record of the notice buffer");

using Notices = std::vector<Notice>;

}  // namespace sidetone
