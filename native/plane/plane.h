// The legs of one media worker and their clock. Each tick drains everything that has arrived, then sends one frame for
// every leg. Deadlines are absolute and 20 ms apart: a stall is caught up at once, so it leaves no delay behind; only
// one beyond `catch_up_max` ticks is jumped over.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "plane/audio/converter.h"
#include "plane/handover.h"
#include "plane/leg/leg.h"
#include "plane/leg_sockets.h"
#include "plane/notice.h"
#include "plane/room/room.h"
#include "plane/stream/stream_leg.h"

namespace sidetone {

/** What one `Plane::run` did. */
struct TickReport {
  uint32_t ticks = 0;
  uint32_t skipped = 0;
  int64_t lateness_us = 0;  // of the tick's start behind its deadline, the worst
  int64_t busy_us = 0;
};

class Plane {
 public:
  /** Errors are an errno; the plane is then unusable. `rings`: whether it uses io_uring where it may. */
  static std::unique_ptr<Plane> create(int64_t media_timeout_us, int& error, bool rings = true);
  ~Plane();
  Plane(const Plane&) = delete;
  Plane& operator=(const Plane&) = delete;

  /** Binds both ports. Returns 0 or an errno (EADDRINUSE, EEXIST for an id in use). */
  int open(uint32_t id, const Address& rtp, const Address& rtcp);
  /** Stops a playback in progress (noticed), says BYE and gives the ports back. False where there is no such leg. */
  bool close(uint32_t id, Counters& counters, const Now& now);
  bool negotiate(uint32_t id, const Negotiated& parameters, const Now& now);
  // Playback, of a leg or of a room.
  bool play(uint32_t id, uint32_t playback, uint32_t rate_hz, int32_t volume_percent);
  bool feed(uint32_t id, uint32_t playback, const int16_t* pcm, size_t count);
  bool finish(uint32_t id, uint32_t playback);
  bool stop(uint32_t id, uint32_t playback);
  /** Holds or goes on with the playback, over a ramp. */
  bool pause(uint32_t id, uint32_t playback, bool paused);
  /** What is fed from now on is another place of the playback; a `playback_moved` notice tells how far it was. */
  bool seek(uint32_t id, uint32_t playback);
  /** Of what plays now. */
  bool play_volume(uint32_t id, int32_t percent);
  bool counters(uint32_t id, Counters& counters);
  Leg* leg(uint32_t id);
  Participant* participant(uint32_t id);

  /** Whether keys are heard in the audio of a leg. */
  bool detect_tones(uint32_t id, bool on);

  /** A leg whose far end is script. False where the number is in use or there is no inbox. */
  bool open_stream(uint32_t id, std::shared_ptr<StreamInbox> inbox, const StreamFormat& to, const StreamFormat& from);
  /** Moves the frames of stream legs out, if they fit; returns their bytes. */
  size_t take_frames(uint8_t* out, size_t room);

  // Recordings. Their numbers are from the range of legs and rooms too.
  /** Of a leg or a room; the rate is the leg's or room's own where `rate_hz` is 0. What becomes of it is noticed. */
  bool record(uint32_t of, RecorderOptions options);
  bool mask(uint32_t of, uint32_t recording, bool masked);
  bool stop_recording(uint32_t of, uint32_t recording);

  // Rooms. Numbers of rooms and legs are from one range. Where there is no such room, or no such member, nothing
  // happens but the notice said.
  /** False where the number is in use. */
  bool open_room(uint32_t id);
  /** Its playback stops, its members leave (each noticed), with the next tick. */
  bool close_room(uint32_t id);
  /** Tells `room_joined`, or `room_left` where there is no such room. A member of another room leaves that first, at
   * once. */
  bool join(uint32_t id, uint32_t room, bool muted, int32_t from_percent, int32_t to_percent);
  bool leave(uint32_t id);
  /** As `leave`, but at once, unheard. */
  bool drop(uint32_t id);
  bool mute(uint32_t id, bool muted);
  /** What it says to others (`from`), or hears of them. */
  bool volume(uint32_t id, bool from, int32_t percent);
  bool detect_voices(uint32_t room, bool on);

  /** Its number for `move`, the same process over. */
  uint32_t number() const { return box_->number(); }
  /** Hands a participant to another plane of the process, which tells `moved`. It leaves its room first. False where
   * that is impossible. */
  bool move(uint32_t id, uint32_t plane, const Now& now);

  /** Sleeps until the next deadline or `wake`, passing packets on meanwhile, then runs every tick that is due. */
  TickReport run();
  /** One tick at an instant of the caller's: what `run` does when one is due. */
  void tick(const Now& now);
  /** Written to by other threads to end the sleep of `run`. */
  int wake_fd() const { return wake_fd_; }
  /** Moves up to `room` waiting notices out; returns how many. */
  size_t take_notices(Notice* out, size_t room);
  size_t legs() const { return order_.size(); }

  static constexpr int64_t tick_us = 20'000;
  /** Half a second: what a far jitter buffer can still take as a burst. */
  static constexpr int64_t catch_up_max = 25;
  /** Between two looks at what is to be passed on as it comes, so that a thousand legs wake it two thousand times a
   * second and no more. */
  static constexpr int64_t prompt_rest_us = 500;

 private:
  Plane() = default;
  void frame(const Now& now);
  void take_handed();
  bool wait(int64_t now_us);
  void pass_on();
  void add(std::unique_ptr<Participant> party);
  std::unique_ptr<Participant> remove(uint32_t id, const Now& now);
  Player* player(uint32_t id);
  Recorder* recorder(uint32_t of, uint32_t id);
  void retire(std::vector<std::unique_ptr<Recorder>> recorders);
  Room* room(uint32_t id);

  int timer_fd_ = -1;
  int wake_fd_ = -1;
  int64_t media_timeout_us_ = 0;
  int64_t deadline_us_ = 0;
  FilterBank filters_;
  std::unordered_map<uint32_t, std::unique_ptr<Participant>> parties_;
  std::vector<Participant*> order_;
  std::unique_ptr<Sender> sender_;
  LegSockets sockets_;
  int64_t prompt_due_us_ = 0;
  std::unordered_map<uint32_t, std::unique_ptr<Room>> rooms_;
  std::vector<std::unique_ptr<Recorder>> finishing_;  // whose leg or room is gone
  StreamFrames frames_;
  std::shared_ptr<Handover> box_;
  Notices notices_;
};

}  // namespace sidetone
