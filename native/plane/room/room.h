// In a room everyone hears everyone else. What members say is summed once for each rate they speak at, the sums are
// carried to the other rates present, and each member hears the sum at its own rate without itself. So members of one
// rate meet exactly, one of a lower rate costs those of a higher one nothing, and what a member costs does not depend
// on how many there are.
//
//   said × gain ─► sum[rate] ─┬─────────────► total[rate] ─► − self, saturate, × gain ─► encode     a talker
//                 sum[other] ─┴─ bridge ─────►             └► saturate, encode: once for all        the listeners
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernel/tone/voice.h"
#include "plane/audio/codec.h"
#include "plane/audio/converter.h"
#include "plane/audio/player.h"
#include "plane/audio/rate.h"
#include "plane/notice.h"
#include "plane/participant.h"
#include "plane/room/whispers.h"

namespace sidetone {

class Room;

/** One member's place. Gains are Q14, as they were at the end of the last tick and as they are to become. */
struct Seat {
  Room* room = nullptr;
  Participant* party = nullptr;
  Leg* rtp = nullptr;    // the same, where it is one
  uint32_t settled = 0;  // ticks since nothing but the other of a bridge of two is to be heard by it
  size_t place = 0;      // in the room's list
  size_t group = 0;      // index of its rate
  bool muted = false;
  bool coach = false;  // heard by one member at most (whispers.h)
  bool leaving = false;
  bool told = false;
  bool unheard = false;  // its next frame rises: the first of a leg may come ticks after it has joined
  int32_t from_percent = 100;
  int32_t to_percent = 100;
  int32_t from_gain = 0;
  int32_t to_gain = 0;
  const int16_t* pcm = nullptr;  // what it said in this tick, gain applied; nullptr: nothing
  int16_t last = 0;              // its last sample
  int32_t fall = 0;              // the last samples of coaches that it heard and that were cut off
  VoiceActivity voice;

  /** Whether we hold it: it hears nothing of the room then. */
  bool held() const;
  /** The gain that the others are to hear it with. */
  int32_t from_goal() const;
  /** The gain that it is to hear the others with. */
  int32_t to_goal() const;
};

class Room {
 public:
  Room(uint32_t id, FilterBank& filters);
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  uint32_t id() const { return id_; }
  /** The phase of the tick in which it is ticked, and its members with it (phases.h). */
  size_t phase() const { return phase_; }
  void phase(size_t phase) { phase_ = phase; }
  /** Whether a tick of it does nothing. */
  bool idle() const { return seats_.empty() && recorders_.empty() && !player_.active(); }
  size_t members() const { return seats_.size(); }
  Player& player() { return player_; }
  /** Makes the player of its hold music, which notices call by that number. */
  void open_music(uint32_t id);
  /** The player of its hold music, or nullptr. It is heard by a member that is alone, unless we hold it, while nothing
   * else is played. */
  Player* music() { return music_ ? &music_->player : nullptr; }
  uint32_t music_id() const { return music_ ? music_->id : 0; }
  /** The same, where it is to be heard by that member in this tick. It is recorded nowhere. */
  Player* music_for(const Seat& seat) {
    return music_ && music_->listener == &seat && music_->player.sounding() ? &music_->player : nullptr;
  }
  /** The highest rate of its members. */
  size_t top() const;

  /** Seats a participant that sits nowhere. Volumes in percent. The seat lives until it is left. */
  Seat& join(Participant& party, bool muted, int32_t from_percent, int32_t to_percent);
  /** Makes a member the coach of another one, as long as that is in the room. nullptr: nobody hears it. */
  void coach(Seat& seat, Seat* coached);
  /** The member fades out in the next tick and is gone after it. */
  static void leave(Seat& seat);
  /** The member is gone at once; what it last said fades without it. */
  void drop(Seat& seat, Notices& notices);
  /** Mutes a member for all others, or ends that. */
  void mute(Seat& seat, bool muted, Notices& notices);
  /** Sets, in percent, what others hear of the member (`from`), or what it hears of them. */
  static void set_volume(Seat& seat, bool from, int32_t percent);
  void detect_voices(bool on, Notices& notices);
  /** Begins a recording of the whole mix. */
  void record(std::unique_ptr<Recorder> recorder);
  Recorder* recorder(uint32_t id);
  std::vector<std::unique_ptr<Recorder>> take_recorders();
  void pause(uint32_t frames);
  /** Makes everyone leave. The room is `over` when the last one has. */
  void close();
  bool closing() const { return closing_; }
  const std::vector<std::unique_ptr<Seat>>& seats() const { return seats_; }
  /** Whether since the last call a member has begun to pass on its packets as they come. */
  bool began_relay() { return std::exchange(began_relay_, false); }
  bool over() const { return closing_ && seats_.empty(); }

  /** Members take what their far ends say, which they contribute; then the room is mixed, and given to each. */
  void tick(const Now& now, Notices& notices);
  /** Adds what a member says to the mix of this tick. */
  void contribute(Seat& seat, int16_t* pcm, size_t count, bool heard, Notices& notices);
  /** Fills what the member hears. False when that is silence; `out` is then untouched. */
  bool hear(Seat& seat, int16_t* out);
  /** Whether the member hears the sum as it is, but for itself. */
  bool hears_plain(const Seat& seat) const;
  /** Fills 20 ms of G.711 with what such a member hears; the whole sum is encoded once a tick for all who hear it. */
  void encode(const Seat& seat, Codec codec, uint8_t* out);
  /** Tells what became of a member after it was sent its frame. The seat may be gone then. */
  void settle(Seat& seat, Notices& notices);

  /** Ticks in which nothing may change before a bridge of two is made. */
  static constexpr uint32_t settle_ticks = 10;
  /** Every change of gain takes a quarter of a frame, 5 ms. */
  static constexpr size_t ramp_divisor = 4;

 private:
  struct Group {
    size_t members = 0;
    size_t recorders = 0;
    bool spoken = false;    // its own sum is not all zero
    bool sounding = false;  // its total is not
    bool whole_made = false;
    bool encoded_made[2] = {false, false};
    int32_t tail = 0;  // last samples of members that were cut off
    std::vector<int32_t> sum;
    std::vector<int32_t> total;      // the sum with what came over bridges
    const int32_t* heard = nullptr;  // the total, or the sum where nothing came
    std::vector<int16_t> whole;
    uint8_t encoded[2][frame_units];
  };

  struct Music {
    uint32_t id = 0;
    Player player;
    const Seat* listener = nullptr;  // who is alone, or was: the music fades for it
  };

  void hold();
  void bridge_two(const Now& now);
  void unbridge();
  bool alone_with(const Seat& from, const Seat& to, const Now& now) const;
  void begin();
  static void let_fall(Group& group, int32_t from);
  void mix(const Now& now, Notices& notices);
  Group& group(size_t index);
  void enter(Seat& seat, size_t index);
  void bridge();
  void make_whole(Group& group);
  const uint8_t* encoded(Group& group, Codec codec);
  void tape(Notices& notices);
  void remove(Seat& seat, Notices& notices);
  static void voice(Seat& seat, VoiceActivity::Change change, Notices& notices);

  const uint32_t id_;
  size_t phase_ = 0;
  FilterBank& filters_;
  bool closing_ = false;
  bool voices_ = false;
  bool began_relay_ = false;
  Player player_;
  size_t played_at_ = rates;  // index of the rate at which the player sounds; `rates` while it is silent
  std::vector<std::unique_ptr<Seat>> seats_;
  std::vector<std::unique_ptr<Recorder>> recorders_;
  std::unique_ptr<Group> groups_[rates];
  std::unique_ptr<RateBridge> bridges_[rates][rates];
  Whispers whispers_;
  std::unique_ptr<Music> music_;
};

}  // namespace sidetone
