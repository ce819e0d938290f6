// Adaptive jitter buffer for the codecs of one octet a timestamp unit (PCMU, PCMA, and G722 with its 8 kHz RTP clock,
// RFC 3551 §4.5.2).
//
// Octets lie in a ring at their timestamp, so packets of any length, reordered or doubled, fall into place. Two figures
// govern it: `base`, the fastest transit of the last seconds (which follows the drift of the two clocks), and `target`,
// how much later than by `base` a packet may come and still be heard, 1 to 200 ms: so much that 99.5 % are in time.
// `slack` is what that is now; it moves in whole frames only, for ticks meet packets at a phase of their own, so it
// stays between the target and a frame more. The caller stretches or compresses where it is not: a stall on either side
// costs what came too late, never lasting delay. Time is an argument.
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
  /** Takes the next `count` units. False when any is missing (then nothing is copied); the timeline moves on either
   * way. */
  bool take(uint8_t* out, size_t count);
  /** Copies the next `count` units and leaves them where they are. False when any is missing. */
  bool peek(uint8_t* out, size_t count) const;
  /** Whether the next `count` units are all there. */
  bool has(size_t count) const;
  /** Whether anything lies at or after the next unit. */
  bool empty() const { return !started_ || static_cast<int32_t>(end_ - next_) <= 0; }
  void reset() { *this = JitterBuffer(); }

  /** Prefetches where the next frame lies, and where the next packet comes to lie. */
  void fetch_audio() const {
    __builtin_prefetch(&valid_[next_ % ring_units / 64]);
    cache_fetch(&ring_[next_ % ring_units], 384);
  }

  int64_t target_us() const { return target_us_; }
  /** How much later than the fastest the packet of the next unit might come, were that unit heard at `now_us`. Once a
   * packet has come. */
  int64_t slack_us(int64_t now_us) const { return now_us - base_us() - unwrapped(next_) * unit_us; }
  /** Whole frames by which the slack is more than the target asks for, in units. */
  uint32_t spare_units(int64_t now_us) const;
  uint32_t late() const { return late_; }

  static constexpr uint32_t ring_units = 4096;
  static constexpr int64_t unit_us = 125;
  static constexpr int64_t frame_us = frame_units * unit_us;
  static constexpr int64_t target_min_us = 1'000;
  static constexpr int64_t target_max_us = 200'000;

 private:
  static constexpr int bins = 48;
  static constexpr int64_t base_window_us = 4'000'000;
  static constexpr int late_resync = 6;
  static constexpr int64_t late_resync_us = 80'000;

  void start(uint32_t timestamp, int64_t arrival_us);
  void learn(uint32_t timestamp, int64_t ahead, int64_t arrival_us);
  static int bin_of(int64_t late_us);
  static int64_t bin_end_us(int bin);
  int64_t unwrapped(uint32_t timestamp) const;
  int64_t base_us() const { return base_now_ < base_before_ ? base_now_ : base_before_; }

  bool started_ = false;
  bool playing_ = false;
  uint32_t next_ = 0;
  uint32_t end_ = 0;
  uint32_t origin_ = 0;
  int64_t base_now_ = 0;
  int64_t base_before_ = 0;
  int64_t base_turn_us_ = 0;
  int64_t target_us_ = 5'000;
  uint32_t last_ = 0;  // the timestamp that came last
  int64_t last_us_ = 0;
  int64_t late_since_us_ = 0;
  int late_in_row_ = 0;
  uint32_t late_ = 0;
  float weight_ = 1;  // of the newest packet
  float seen_ = 0;    // of all packets together
  float histogram_[bins] = {};
  uint64_t valid_[ring_units / 64] = {};
  uint8_t ring_[ring_units] = {};
};

}  // namespace sidetone
