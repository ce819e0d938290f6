// Adaptive jitter buffer for octets of 125 us each: those of PCMU, PCMA, and G722 with its 8 kHz RTP clock (RFC 3551
// §4.5.2), and the numbers that stand for packets of Opus and L16 (coded_packets.h).
//
// Octets lie in a ring at their timestamp, so packets of any length, reordered or doubled, fall into place. Two figures
// govern it: `base`, the fastest transit of the last seconds (which follows the drift of the two clocks), and `target`,
// how much later than by `base` a packet may come and still be heard, 1 to 200 ms: so much that 99.5 % are in time.
// `slack` is what that is now; it moves in whole frames only, for ticks meet packets at a phase of their own, so it
// stays between the target and a frame more. The caller stretches or compresses where it is not: a stall on either side
// costs what came too late, never lasting delay. Time is an argument.
//
// A far end that pauses once, or a path that grows longer, is a step of all transit times after it. The target grows by
// the step with the first late packets; the base follows when no faster packet is in its windows, 4 to 8 s later. The
// target then falls by as much, so that the step is delay once and not twice.
//
// While packets are lost (`losing`), the slack is one frame more: the packet after a loss is then at hand when the lost
// one is due, so concealment knows both sides, and Opus its in-band copy. PESQ at 10 % of loss is 3.43 then and 3.09
// otherwise (bench/media-concealment), for 20 ms, which cost 0.02 of a MOS (G.107).
//
//   tick                  |         slack         |                     packets come every 20 ms, the fastest at ^
//   packets   ^    ~      ^    ~      ^    ~      ^    ~                and nearly all before ~ (target)
#pragma once
#include <cstddef>
#include <cstdint>

#include "plane/audio/codec.h"
#include "plane/cache.h"

namespace sidetone {

class JitterBuffer {
 public:
  enum class Plan : uint8_t { wait, normal, accelerate, expand };

  /** Stores one packet's payload. Returns false where it came too late, or was there already. */
  bool insert(uint32_t timestamp, const uint8_t* payload, size_t count, int64_t arrival_us);
  /** What to do for a frame that is heard at `now_us`. `growing`: it was stretched already, so the rest of a whole
   * frame is to follow. */
  Plan plan(int64_t now_us, bool growing);
  /** Takes the next `count` units, and moves the timeline on. False when any is missing: then nothing is taken. */
  bool take(uint8_t* out, size_t count);
  /** Moves the timeline on over `count` units that are missed. */
  void skip(size_t count);
  /** Copies the next `count` units and leaves them where they are. False when any is missing. */
  bool peek(uint8_t* out, size_t count) const;
  /** Whether the next `count` units are all there. */
  bool has(size_t count) const;
  /** How many of the next `most` units, from the first on, are there, or are missing. */
  size_t run(size_t most, bool there) const;
  /** The octet of the unit that lies so many after the next one, where it is there. */
  uint8_t octet(size_t ahead) const { return ring_[(next_ + ahead) % ring_units]; }
  /** The unit that is taken next. */
  uint32_t next() const { return next_; }
  /** Whether anything lies at or after the next unit. */
  bool empty() const { return !started_ || static_cast<int32_t>(end_ - next_) <= 0; }
  void reset() { *this = JitterBuffer(); }
  /** The next packet begins a stretch whose timestamps bear no relation to those before: what is known of transit times
   * and what was not heard yet is given up. The target stays. */
  void begin_anew() { started_ = false; }
  /** The next packet has the marker: it begins a talk spurt. After a pause it is heard at once, however early its
   * timestamp is: some far ends (FreeSWITCH with `vad`) leave the silence out of their timestamps. */
  void begin_spurt() { spurt_ = true; }

  /** Prefetches where the next frame lies, and where the next packet comes to lie. */
  void fetch_audio() const {
    __builtin_prefetch(&valid_[next_ % ring_units / 64]);
    __builtin_prefetch(&valid_[(next_ + fetched_units) % ring_units / 64]);
    cache_fetch(&ring_[next_ % ring_units], fetched_units);
  }

  int64_t target_us() const { return target_us_; }
  /** How much later than the fastest the packet of the next unit might come, were that unit heard at `now_us`. Once a
   * packet has come. */
  int64_t slack_us(int64_t now_us) const { return now_us - base_us() - unwrapped(next_) * unit_us; }
  /** Whether packets are being lost: `losses_least` losses, none of them longer than `loss_memory_us` after the last.
   */
  bool losing(int64_t now_us) const { return losses_ >= losses_least && now_us - lost_us_ < loss_memory_us; }
  /** Whole frames by which the slack is more than is kept, in units. */
  uint32_t spare_units(int64_t now_us) const;
  uint32_t late() const { return late_; }

  static constexpr uint32_t ring_units = 4096;
  static constexpr int64_t unit_us = 125;
  static constexpr int64_t frame_us = frame_units * unit_us;
  static constexpr int64_t target_min_us = 1'000;
  static constexpr int64_t target_max_us = 200'000;

 private:
  static constexpr int bins = 48;
  static constexpr uint32_t fetched_units = 512;  // what is heard next, and the packets after it
  static constexpr int64_t base_window_us = 4'000'000;
  static constexpr int late_resync = 6;
  static constexpr int64_t late_resync_us = 80'000;
  static constexpr int64_t loss_memory_us = 10'000'000;
  static constexpr uint8_t losses_least = 2;
  /** More missing frames in a row are a pause of the far end (silence suppression), not a loss. */
  static constexpr uint8_t loss_most_frames = 5;

  void count_loss(int64_t arrival_us);
  void move_on(size_t count);
  /** The slack that is asked for. */
  int64_t kept_us(int64_t now_us) const { return losing(now_us) ? target_us_ + frame_us : target_us_; }
  void start(uint32_t timestamp, int64_t arrival_us);
  void rebase(int64_t risen_us);
  void follow_base(int64_t transit_us, int64_t arrival_us);
  void learn(uint32_t timestamp, int64_t ahead, int64_t arrival_us);
  static int bin_of(int64_t late_us);
  static int64_t bin_end_us(int bin);
  int64_t unwrapped(uint32_t timestamp) const;
  int64_t base_us() const { return base_now_ < base_before_ ? base_now_ : base_before_; }

  bool started_ = false;
  bool playing_ = false;
  bool spurt_ = false;
  uint32_t next_ = 0;
  uint32_t end_ = 0;
  uint32_t origin_ = 0;
  int64_t base_now_ = 0;
  int64_t base_before_ = 0;
  int64_t base_turn_us_ = 0;
  int64_t overtaken_until_us_ = 0;  // until then packets come that were sent before the path grew shorter
  int64_t target_us_ = 5'000;
  int64_t grown_us_ = 0;  // when the slack grew last; 0: never
  uint32_t last_ = 0;     // the timestamp that came last
  int64_t last_us_ = 0;
  int64_t lost_us_ = 0;  // when the last loss was known
  int64_t late_since_us_ = 0;
  int late_in_row_ = 0;
  uint8_t losses_ = 0;  // up to `losses_least`
  uint8_t missed_ = 0;  // frames of which a part was not there when it was due, since the last packet in time
  uint32_t late_ = 0;
  float weight_ = 1;  // of the newest packet
  float seen_ = 0;    // of all packets together
  float histogram_[bins] = {};
  uint64_t valid_[ring_units / 64] = {};
  uint8_t ring_[ring_units] = {};
};

}  // namespace sidetone
