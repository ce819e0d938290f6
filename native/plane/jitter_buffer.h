// Adaptive jitter buffer for the codecs of one octet a timestamp unit (PCMU, PCMA, and G722 with its 8 kHz RTP clock, RFC 3551 §4.5.2).
//
// Octets lie in a ring at their timestamp, so packets of any length, reordered or doubled, fall into place. Two figures govern it: `base`, the
// fastest transit of the last seconds (which follows the drift of the two clocks), and `target`, the delay over `base` at which 97 % of
// packets are in time, one frame more, 20 to 200 ms. The caller stretches or compresses until the delay is the target: a stall on either
// side costs what came too late, never lasting delay. Time is an argument.
#pragma once
#include <cstddef>
#include <cstdint>

#include "plane/cache.h"

namespace sidetone {

class JitterBuffer {
 public:
  enum class Plan : uint8_t { wait, normal, accelerate, expand };

  /** Stores one packet's payload. Returns false where it came too late, or was there already. */
  bool insert(uint32_t timestamp, const uint8_t* payload, size_t count, int64_t arrival_us);
  /** What to do for the next frame; `unheard_units` were taken but not yet played out. */
  Plan plan(int64_t now_us, uint32_t unheard_units);
  /** Takes the next `count` units. False where any is missing (then nothing is copied); the timeline moves on either way. */
  bool take(uint8_t* out, size_t count);
  /** Whether the next `count` units are all there. */
  bool has(size_t count) const;
  /** Whether anything lies at or after the next unit. */
  bool empty() const { return !started_ || static_cast<int32_t>(end_ - next_) <= 0; }
  void reset() { *this = JitterBuffer(); }

  /** Calls into the cache where the next frame lies, and the next packet comes to lie. */
  void fetch_audio() const {
    __builtin_prefetch(&valid_[next_ % ring_units / 64]);
    cache_fetch(&ring_[next_ % ring_units], 384);
  }

  int64_t target_us() const { return target_us_; }
  /** Delay of what is heard at `now_us` over the fastest transit. */
  int64_t delay_us(int64_t now_us, uint32_t unheard_units) const;
  uint32_t late() const { return late_; }

  static constexpr uint32_t ring_units = 4096;
  static constexpr int64_t unit_us = 125;
  static constexpr int64_t target_min_us = 20'000;
  static constexpr int64_t target_max_us = 200'000;

 private:
  static constexpr int bins = 44;
  static constexpr int64_t bin_us = 5'000;
  static constexpr int64_t base_window_us = 4'000'000;
  static constexpr int late_resync = 6;

  void start(uint32_t timestamp, int64_t arrival_us);
  void learn(int64_t transit_us, int64_t arrival_us);
  int64_t unwrapped(uint32_t timestamp) const;
  int64_t base_us() const { return base_now_ < base_before_ ? base_now_ : base_before_; }

  bool started_ = false;
  bool playing_ = false;
  uint32_t next_ = 0;
  uint32_t end_ = 0;
  int64_t start_us_ = 0;
  uint32_t origin_ = 0;
  int64_t base_now_ = 0;
  int64_t base_before_ = 0;
  int64_t base_turn_us_ = 0;
  int64_t target_us_ = 25'000;
  int late_in_row_ = 0;
  uint32_t late_ = 0;
  float weight_ = 1;  // of the newest packet
  float seen_ = 0;    // of all packets together
  float histogram_[bins] = {};
  uint64_t valid_[ring_units / 64] = {};
  uint8_t ring_[ring_units] = {};
};

}  // namespace sidetone
