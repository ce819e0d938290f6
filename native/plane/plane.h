// The media plane of one worker: its legs, rooms and recordings, and the tick that drives them. Each tick sends one
// frame of 20 ms for every leg, in phases (phases.h), each of which fetches every packet that has come before.
// Deadlines are absolute, so a stall is caught up at once and leaves no delay behind. A stall of more than
// `catch_up_max` ticks is jumped over.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plane/audio/converter.h"
#include "plane/handover.h"
#include "plane/leg/leg.h"
#include "plane/leg_sockets.h"
#include "plane/notice.h"
#include "plane/phases.h"
#include "plane/room/room.h"
#include "plane/stream/stream_leg.h"

namespace sidetone {

/** What one `Plane::run` did. */
struct TickReport {
  uint32_t ticks = 0;  // that it ended
  uint32_t skipped = 0;
  int64_t lateness_us = 0;  // of the start of a phase of these behind its deadline, the worst
  int64_t busy_us = 0;
};

class Plane {
 public:
  /**
   * Makes a plane. A leg that hears nothing for `media_timeout_us` tells so. `rings` says whether io_uring is used
   * where the system permits it. On failure the result is nullptr and `error` an errno.
   */
  static std::unique_ptr<Plane> create(int64_t media_timeout_us, int& error, bool rings = true);
  ~Plane();
  Plane(const Plane&) = delete;
  Plane& operator=(const Plane&) = delete;

  /** Opens a leg: binds its RTP and RTCP port. Returns 0 or an errno (EADDRINUSE; EEXIST for a number in use). */
  int open(uint32_t id, const Address& rtp, const Address& rtcp);
  /**
   * Opens a WebRTC leg on a port; `ssrc` is the source that SDP says it sends as. Returns 0 or an errno (EEXIST; EAGAIN
   * when the port has all the links it can).
   */
  int open_webrtc(uint32_t id, uint32_t ssrc, std::shared_ptr<WebrtcPort> port, IceCredentials own,
                  const Fingerprint& expected);
  /**
   * Closes a leg: stops its playback (noticed), sends RTCP BYE and gives the ports back. `counters` becomes its last
   * ones. False when there is no such leg.
   */
  bool close(uint32_t id, Counters& counters, const Now& now);
  /** Applies an offer or answer to a leg, in clear when `keys` is nullptr. False when there is no such leg. */
  bool negotiate(uint32_t id, const Negotiated& parameters, const Now& now, const SrtpKeys* keys = nullptr);
  /** Makes a leg one end of a pipe to another node (leg.h). False when there is no such leg. */
  bool pipe(uint32_t id, uint32_t own, uint32_t theirs, bool at_once);
  // Playback on a leg or in a room. `id` is the number of either. Each is false when there is no such leg, room or
  // playback.
  /** Begins a playback at a rate in Hz and a volume in percent. The one before it ends as stopped (noticed). */
  bool play(uint32_t id, uint32_t playback, uint32_t rate_hz, int32_t volume_percent);
  /** Queues samples at the playback's rate. False also when its queue is full (5 s). */
  bool feed(uint32_t id, uint32_t playback, const int16_t* pcm, size_t count);
  /** Nothing more will be fed: the playback ends (noticed) when its queue has been sent. */
  bool finish(uint32_t id, uint32_t playback);
  /** Stops the playback at once, over a ramp of 5 ms (noticed). */
  bool stop(uint32_t id, uint32_t playback);
  /** Pauses or resumes the playback, over a ramp of 5 ms. */
  bool pause(uint32_t id, uint32_t playback, bool paused);
  /** What is fed from now on is another place of the playback; a `playback_moved` notice tells how far it was. */
  bool seek(uint32_t id, uint32_t playback);
  /** Sets the volume, in percent, of what plays on a leg or in a room now. */
  bool play_volume(uint32_t id, int32_t percent);
  /** Reads the counters of a leg. False when there is no such leg. */
  bool counters(uint32_t id, Counters& counters);
  /** The leg of a number, or nullptr. */
  Leg* leg(uint32_t id);
  /** The leg or stream leg of a number, or nullptr. */
  Participant* participant(uint32_t id);

  /** Turns the detection of keys in the audio of a leg on or off. False when there is no such leg. */
  bool detect_tones(uint32_t id, bool on);
  /** Detects who has answered on a leg, from now on; notices tell. False when there is no such leg. */
  bool detect_answerer(uint32_t id, uint32_t timeout_ms);
  /** Sends keys to the far end of a leg (key_sender.h). False when there is no such leg, or too many wait. */
  bool send_keys(uint32_t id, uint32_t number, const std::string& keys, uint32_t duration_ms, uint32_t gap_ms);

  /** Opens a stream leg, whose far end is script. False when the number is in use or there is no inbox. */
  bool open_stream(uint32_t id, std::shared_ptr<StreamInbox> inbox, const StreamFormat& to, const StreamFormat& from);
  /** Moves the frames of stream legs to `out` if they fit in `room` bytes. Returns how many bytes they are. */
  size_t take_frames(uint8_t* out, size_t room);

  // Recordings. Legs, rooms and recordings are numbered together.
  /**
   * Begins a recording of the leg or room `of`. A `rate_hz` of 0 means the rate of that leg or room. Notices tell what
   * becomes of it. False when there is no such leg or room.
   */
  bool record(uint32_t of, RecorderOptions options);
  /** Records silence, or leaves a gap, until it is unmasked. False when there is no such recording. */
  bool mask(uint32_t of, uint32_t recording, bool masked);
  /** Ends a recording with what it has (noticed). False when there is no such recording. */
  bool stop_recording(uint32_t of, uint32_t recording);

  // Rooms. Numbers of rooms and legs are from one range. Where there is no such room, or no such member, nothing
  // happens but the notice said.
  /** Opens a room. False when the number is in use. */
  bool open_room(uint32_t id);
  /** Gives the hold music of a room (room.h) a number, under which it is played. False where there is no such room, or
   * the number is in use. */
  bool open_music(uint32_t room, uint32_t music);
  /** Closes a room: its playback stops and its members leave with the next tick (each noticed). */
  bool close_room(uint32_t id);
  /** Tells `room_joined`, or `room_left` where there is no such room. A member of another room leaves that first, at
   * once. */
  bool join(uint32_t id, uint32_t room, bool muted, int32_t from_percent, int32_t to_percent);
  /** Makes a member the coach of another one, from now on: only that one hears it. It is heard by nobody where
   * `coached` is no member of the same room, or leaves it. False when the coach is in no room. */
  bool coach(uint32_t id, uint32_t coached);
  /** Takes a member out of its room with the next tick, over a fade. */
  bool leave(uint32_t id);
  /** Takes a member out of its room at once, without a fade. */
  bool drop(uint32_t id);
  /** Mutes a member for all others, or ends that. */
  bool mute(uint32_t id, bool muted);
  /** Sets, in percent, how loud others hear a member (`from`), or how loud it hears them. */
  bool volume(uint32_t id, bool from, int32_t percent);
  /** Turns notices of members that begin and stop to talk on or off. */
  bool detect_voices(uint32_t room, bool on);

  /** The number of this plane for `move`, unique in the process. */
  uint32_t number() const { return box_->number(); }
  /**
   * Hands a leg to another plane of the process, which tells `moved`. The leg leaves its room first. False when there
   * is no such leg or plane.
   */
  bool move(uint32_t id, uint32_t plane, const Now& now);

  /** Sleeps until the next deadline or `wake`, passing packets on meanwhile, then runs every phase that is due; so on
   * until there is something to take, a tick is over that was late, or `quiet_ticks` are over. */
  TickReport run();
  /** The next phase at an instant of the caller's: what `run` does when one is due. The tick is over when this was the
   * last one that has legs or rooms: then it returns true. */
  bool step(const Now& now);
  /** One tick at an instant of the caller's: the phases that are left of it. */
  void tick(const Now& now);
  /** An eventfd: any thread ends the sleep of `run` by writing to it. */
  int wake_fd() const { return wake_fd_; }
  /** Moves up to `room` waiting notices out; returns how many. */
  size_t take_notices(Notice* out, size_t room);
  /** How many legs there are, stream legs included. */
  size_t legs() const { return parties_.size(); }

  static constexpr int64_t tick_us = sidetone::tick_us;
  static constexpr int64_t phase_us = tick_us / static_cast<int64_t>(Phases::count);
  /** Half a second: what a far jitter buffer can still take as a burst. */
  static constexpr int64_t catch_up_max = 25;
  /** Between two looks at what is to be passed on as it comes, so that a thousand legs wake it two thousand times a
   * second and no more. */
  static constexpr int64_t prompt_rest_us = 500;
  /** How long a plane without legs and rooms sleeps at most: it wakes twice a second instead of fifty times. */
  static constexpr int64_t rest_us = 25 * tick_us;
  /** Ticks with nothing to tell, after which `run` returns: the event loop of its caller costs as much as ten legs. */
  static constexpr uint32_t quiet_ticks = 5;
  /** A tick that is late by more is the last one of its report, so that its caller can tell how many were late: the
   * first step of src/media/worker/tick-lateness.ts. */
  static constexpr int64_t on_time_us = 1'000;

 private:
  /** When a sleep ended, and whether an order ended it. */
  struct Woken {
    int64_t us = 0;
    bool ordered = false;
  };

  Plane() = default;
  void frame(const Now& now);
  void begin_tick(const Now& now);
  bool next_phase();
  void run_due(int64_t time_us, TickReport& report);
  bool goes_on(const TickReport& report) const;
  void change_phase(Participant& party, size_t to);
  void take_handed();
  TickReport rest();
  Woken sleep_until(int64_t due_us);
  bool wait(int64_t now_us);
  void pass_on();
  void add(std::unique_ptr<Participant> party);
  std::unique_ptr<Leg> make_leg(uint32_t id, int& error, uint32_t ssrc = 0) const;
  std::unique_ptr<Participant> remove(uint32_t id, const Now& now, Counters* last = nullptr);
  Player* player(uint32_t id);
  Recorder* recorder(uint32_t of, uint32_t id);
  void retire(std::vector<std::unique_ptr<Recorder>> recorders);
  Room* room(uint32_t id);

  int timer_fd_ = -1;
  int wake_fd_ = -1;
  int64_t media_timeout_us_ = 0;
  size_t phase_ = 0;         // that is next
  int64_t deadline_us_ = 0;  // of it
  int64_t late_us_ = 0;      // the worst since the last tick that was reported
  FilterBank filters_;
  std::unordered_map<uint32_t, std::unique_ptr<Participant>> parties_;
  Phases phases_;
  std::unique_ptr<Sender> sender_;
  LegSockets sockets_;
  int64_t prompt_due_us_ = 0;
  std::unordered_map<uint32_t, std::unique_ptr<Room>> rooms_;
  std::unordered_map<uint32_t, uint32_t> music_;      // the rooms of hold music, by its number
  std::vector<std::unique_ptr<Recorder>> finishing_;  // whose leg or room is gone
  StreamFrames frames_;
  std::shared_ptr<Handover> box_;
  Notices notices_;
};

}  // namespace sidetone
