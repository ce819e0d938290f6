#include "plane/jitter_buffer.h"

#include <cstring>

namespace sidetone {
namespace {

constexpr float forget = 0.997f;  // a memory of about 330 packets
constexpr float quantile = 0.97f;
constexpr float weight_most = 1e6f;
// Hysteresis: a tick meets the network at any phase, so a delay within a frame above the target is no excess.
constexpr int64_t above_us = 22'000;
constexpr int64_t below_us = 12'000;

/** The units from `unit` on that lie in one word of the validity map. */
struct Bits {
  Bits(uint32_t unit, size_t most) {
    const uint32_t at = unit % JitterBuffer::ring_units;
    word = at / 64;
    const uint32_t shift = at % 64;
    count = most < 64 - shift ? most : 64 - shift;
    mask = (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << shift;
  }
  size_t word;
  size_t count;
  uint64_t mask;
};

}  // namespace

int64_t JitterBuffer::unwrapped(uint32_t timestamp) const { return static_cast<int32_t>(timestamp - origin_); }

void JitterBuffer::start(uint32_t timestamp, int64_t arrival_us) {
  const int64_t kept_target = target_us_;
  const uint32_t kept_late = late_;
  *this = JitterBuffer();
  target_us_ = kept_target;
  late_ = kept_late;
  started_ = true;
  origin_ = timestamp;
  next_ = timestamp;
  end_ = timestamp;
  start_us_ = arrival_us;
  base_now_ = arrival_us;
  base_before_ = arrival_us;
  base_turn_us_ = arrival_us + base_window_us;
}

void JitterBuffer::learn(int64_t transit_us, int64_t arrival_us) {
  if (arrival_us >= base_turn_us_) {
    base_before_ = base_now_;
    base_now_ = transit_us;
    base_turn_us_ = arrival_us + base_window_us;
  }
  if (transit_us < base_now_) base_now_ = transit_us;
  int64_t bin = (transit_us - base_us()) / bin_us;
  if (bin < 0) bin = 0;
  if (bin >= bins) bin = bins - 1;
  // A packet weighs more than the one before it, which is as if all before were forgotten by as much, and touches one bin only.
  weight_ /= forget;
  if (weight_ > weight_most) {
    for (float& entry : histogram_) entry /= weight_;
    seen_ /= weight_;
    weight_ = 1;
  }
  histogram_[bin] += weight_;
  seen_ += weight_;
  if (seen_ < 8.0f * weight_) return;  // too little seen to judge
  float sum = 0;
  int reach = 0;
  while (reach < bins - 1 && (sum += histogram_[reach]) < quantile * seen_) reach++;
  const int64_t wanted = (reach + 1) * bin_us + 20'000;
  target_us_ = wanted < target_min_us ? target_min_us : wanted > target_max_us ? target_max_us : wanted;
}

bool JitterBuffer::insert(uint32_t timestamp, const uint8_t* payload, size_t count, int64_t arrival_us) {
  if (count == 0 || count > ring_units / 2) return false;
  if (!started_) start(timestamp, arrival_us);
  int64_t ahead = static_cast<int32_t>(timestamp - next_);
  const bool jumped = ahead + static_cast<int64_t>(count) > ring_units || ahead < -static_cast<int64_t>(10 * ring_units);
  if (jumped) {
    start(timestamp, arrival_us);
    ahead = 0;
  }
  if (ahead + static_cast<int64_t>(count) <= 0 && !playing_ && static_cast<int64_t>(end_ - timestamp) <= ring_units) {
    next_ = timestamp;  // an earlier packet overtaken before anything was heard
    ahead = 0;
  }
  learn(arrival_us - unwrapped(timestamp) * unit_us, arrival_us);
  if (ahead + static_cast<int64_t>(count) <= 0) {
    late_++;
    if (++late_in_row_ >= late_resync) start(timestamp, arrival_us);  // the sender's timeline paused, or the path grew longer for good
    else return false;
  }
  late_in_row_ = 0;
  bool fresh = false;
  const int32_t past = static_cast<int32_t>(next_ - timestamp);
  for (size_t i = past > 0 ? static_cast<size_t>(past) : 0; i < count;) {
    const uint32_t at = (timestamp + static_cast<uint32_t>(i)) % ring_units;
    const Bits bits(at, count - i);
    const uint64_t missing = bits.mask & ~valid_[bits.word];
    if (missing == bits.mask) {
      std::memcpy(ring_ + at, payload + i, bits.count);
    } else {
      for (size_t unit = 0; unit < bits.count; unit++) {
        if ((missing >> ((at + unit) % 64) & 1) != 0) ring_[at + unit] = payload[i + unit];
      }
    }
    valid_[bits.word] |= bits.mask;
    fresh = fresh || missing != 0;
    i += bits.count;
  }
  const uint32_t end = timestamp + static_cast<uint32_t>(count);
  if (static_cast<int32_t>(end - end_) > 0) end_ = end;
  return fresh;
}

int64_t JitterBuffer::delay_us(int64_t now_us, uint32_t unheard_units) const {
  return now_us - base_us() - unwrapped(next_ - unheard_units) * unit_us;
}

JitterBuffer::Plan JitterBuffer::plan(int64_t now_us, uint32_t unheard_units) {
  if (!started_) return Plan::wait;
  const int64_t delay = delay_us(now_us, unheard_units);
  if (!playing_) {
    if (delay < target_us_) return Plan::wait;
    playing_ = true;
    return Plan::normal;
  }
  if (empty()) return delay < target_us_ ? Plan::wait : Plan::normal;
  if (delay > target_us_ + above_us) return Plan::accelerate;
  if (delay < target_us_ - below_us) return Plan::expand;
  return Plan::normal;
}

bool JitterBuffer::has(size_t count) const {
  if (!started_ || static_cast<int32_t>(end_ - next_) < static_cast<int32_t>(count)) return false;
  for (size_t i = 0; i < count;) {
    const Bits bits(next_ + static_cast<uint32_t>(i), count - i);
    if ((valid_[bits.word] & bits.mask) != bits.mask) return false;
    i += bits.count;
  }
  return true;
}

bool JitterBuffer::take(uint8_t* out, size_t count) {
  const bool whole = has(count);
  for (size_t i = 0; i < count;) {
    const Bits bits(next_ + static_cast<uint32_t>(i), count - i);
    valid_[bits.word] &= ~bits.mask;
    i += bits.count;
  }
  if (whole) {
    const size_t at = next_ % ring_units;
    const size_t first = count < ring_units - at ? count : ring_units - at;
    std::memcpy(out, ring_ + at, first);
    std::memcpy(out + first, ring_, count - first);
  }
  next_ += static_cast<uint32_t>(count);
  if (started_ && unwrapped(next_) > (1 << 30)) {  // re-anchor long before 32-bit arithmetic wraps
    const int64_t moved = unwrapped(next_);
    origin_ = next_;
    base_now_ += moved * unit_us;
    base_before_ += moved * unit_us;
  }
  return whole;
}

}  // namespace sidetone
