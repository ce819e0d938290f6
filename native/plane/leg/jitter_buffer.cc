#include "plane/leg/jitter_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sidetone {
namespace {

constexpr float forget = 0.997f;    // a memory of about 330 packets
constexpr float quantile = 0.995f;  // with that memory: one spike is forgotten, two in a second are not
constexpr float weight_most = 1e6f;
constexpr float seen_least = 8;            // packets, before a network is called good
constexpr int64_t whole_wait_us = 60'000;  // at the beginning, for a whole frame of packets that are shorter
constexpr int64_t together_us = 5'000;
// Less is no step of the path: a clock that is off by 1,000 ppm moves the base by this much in a window.
constexpr int64_t step_least_us = 4'000;
// Hysteresis: growing costs a frame of delay, growing late costs sound, so it is wide on the side of shrinking only.
constexpr int64_t below_us(int64_t target_us) { return 250 + (target_us > 48'000 ? (target_us - 48'000) / 8 : 0); }
constexpr int64_t above_us(int64_t target_us) { return 1'000 + target_us / 4; }
// That width would only be delay on the best of networks, where nothing grew for a while: 1 ms of a leg's 12.
constexpr int64_t above_least_us = 250;
constexpr int64_t grown_rest_us = 30'000'000;
// The target falls by a 256th of what is left for each packet, and by 1 ms a second at least.
constexpr int64_t fall_divisor = 256;
constexpr int64_t fall_least_us = 20;

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
  base_now_ = arrival_us;
  base_before_ = arrival_us;
  base_turn_us_ = arrival_us + base_window_us;
  last_ = timestamp;
  last_us_ = arrival_us;
}

/** Finer where networks are good: 1 ms to 16 ms, 2 ms to 48, then 10 ms. */
int JitterBuffer::bin_of(int64_t late_us) {
  if (late_us < 16'000) return late_us < 0 ? 0 : static_cast<int>(late_us / 1'000);
  if (late_us < 48'000) return 16 + static_cast<int>((late_us - 16'000) / 2'000);
  const int64_t bin = 32 + (late_us - 48'000) / 10'000;
  return bin < bins ? static_cast<int>(bin) : bins - 1;
}

int64_t JitterBuffer::bin_end_us(int bin) {
  return bin < 16   ? (bin + 1) * int64_t{1'000}
         : bin < 32 ? 16'000 + (bin - 15) * int64_t{2'000}
                    : 48'000 + (bin - 31) * int64_t{10'000};
}

/** Counts lateness from a base that is `risen_us` later. The deadline of a packet stays where it was, for the packets
 * that were late by this step have set the target. A step above `target_max_us` has not, as learn() passes over it. */
void JitterBuffer::rebase(int64_t risen_us) {
  if (risen_us <= target_max_us) target_us_ = std::max(target_us_ - risen_us, target_min_us);
  std::fill_n(histogram_, bins, 0.0f);
  weight_ = 1;
  seen_ = 0;
}

/** Keeps the base, which is the least transit of this window and the one before. What it moves later by is taken off
 * the target. What it moves earlier by is not put on it, or the delay of the longer path would stay. */
void JitterBuffer::follow_base(int64_t transit_us, int64_t arrival_us) {
  const int64_t before_us = base_us();
  if (arrival_us >= base_turn_us_) {
    base_before_ = base_now_;
    base_now_ = transit_us;
    base_turn_us_ = arrival_us + base_window_us;
  }
  base_now_ = std::min(base_now_, transit_us);
  const int64_t risen_us = base_us() - before_us;
  if (risen_us >= step_least_us) rebase(risen_us);
  if (risen_us <= -step_least_us) overtaken_until_us_ = arrival_us - risen_us;
}

/** Learns how late a packet came that lies `ahead` units after the next one, counted from the frame that first needs
 * it. */
void JitterBuffer::learn(uint32_t timestamp, int64_t ahead, int64_t arrival_us) {
  const int64_t transit_us = arrival_us - unwrapped(timestamp) * unit_us;
  follow_base(transit_us, arrival_us);
  // What was held back together comes together: one event, of which the first packet has told how long it was.
  const int64_t since = static_cast<int32_t>(timestamp - last_);
  const bool together = since > 0 && arrival_us - last_us_ < together_us && arrival_us - last_us_ < since * unit_us;
  last_ = timestamp;
  last_us_ = arrival_us;
  // A packet that is still on the longer path tells nothing of the shorter one.
  const bool overtaken = since < 0 && arrival_us < overtaken_until_us_;
  if (together || overtaken) return;
  constexpr int64_t frame = frame_units;
  const int64_t late_us = transit_us - base_us() + ((ahead % frame + frame) % frame) * unit_us;
  if (late_us > target_max_us) return;  // no buffer is for that: it is lost, or the far end's time has jumped
  // A packet weighs more than the one before it, which is as if all before were forgotten by as much, and touches one
  // bin only.
  weight_ /= forget;
  if (weight_ > weight_most) {
    for (float& entry : histogram_) entry /= weight_;
    seen_ /= weight_;
    weight_ = 1;
  }
  histogram_[bin_of(late_us)] += weight_;
  seen_ += weight_;
  float sum = 0;
  int reach = 0;
  while (reach < bins - 1 && (sum += histogram_[reach]) < quantile * seen_) reach++;
  const int64_t wanted = bin_end_us(reach);
  if (wanted >= target_us_) target_us_ = std::min(wanted, target_max_us);
  else if (seen_ >= seen_least * weight_)
    target_us_ = std::max(wanted, target_us_ - std::max((target_us_ - wanted) / fall_divisor, fall_least_us));
}

/** Counts a loss once sound goes on after frames that were missed: until then it may be a pause. */
void JitterBuffer::count_loss(int64_t arrival_us) {
  if (missed_ <= loss_most_frames) {
    if (arrival_us - lost_us_ >= loss_memory_us) losses_ = 0;
    if (losses_ < losses_least) losses_++;
    lost_us_ = arrival_us;
  }
  missed_ = 0;
}

bool JitterBuffer::insert(uint32_t timestamp, const uint8_t* payload, size_t count, int64_t arrival_us) {
  if (count == 0 || count > ring_units / 2) return false;
  if (!started_) start(timestamp, arrival_us);
  int64_t ahead = static_cast<int32_t>(timestamp - next_);
  const bool after_pause = std::exchange(spurt_, false) && missed_ > loss_most_frames;
  const bool jumped = ahead + static_cast<int64_t>(count) > ring_units ||
                      ahead < -static_cast<int64_t>(10 * ring_units) ||
                      (after_pause && ahead + static_cast<int64_t>(count) <= 0);
  if (jumped) {
    start(timestamp, arrival_us);
    ahead = 0;
  }
  if (ahead + static_cast<int64_t>(count) <= 0 && !playing_ && static_cast<int64_t>(end_ - timestamp) <= ring_units) {
    next_ = timestamp;  // an earlier packet overtaken before anything was heard
    ahead = 0;
  }
  learn(timestamp, ahead, arrival_us);
  if (ahead + static_cast<int64_t>(count) <= 0) {
    late_++;
    if (missed_ > 0) missed_--;  // it was late, not lost
    else if (losses_ > 0) losses_--;
    if (late_in_row_++ == 0) late_since_us_ = arrival_us;
    // The sender's timeline paused, or the path grew longer for good; what only was held back comes at once.
    if (late_in_row_ < late_resync || arrival_us - late_since_us_ < late_resync_us) return false;
    rebase(arrival_us - unwrapped(timestamp) * unit_us - base_us());
    start(timestamp, arrival_us);
  }
  late_in_row_ = 0;
  if (missed_ > 0) count_loss(arrival_us);
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

uint32_t JitterBuffer::spare_units(int64_t now_us) const {
  const int64_t frames = (slack_us(now_us) - kept_us(now_us)) / frame_us;
  return frames <= 0 ? 0 : static_cast<uint32_t>(frames < 50 ? frames : 50) * frame_units;
}

JitterBuffer::Plan JitterBuffer::plan(int64_t now_us, bool growing) {
  if (!started_) return Plan::wait;
  const int64_t slack = slack_us(now_us);
  if (!playing_) {
    if (slack < target_us_ || (slack < whole_wait_us && !has(frame_units))) return Plan::wait;
    playing_ = true;
    return Plan::normal;
  }
  const int64_t below = growing ? 0 : below_us(target_us_);
  if (slack < target_us_ - below && empty()) return Plan::wait;
  if (slack < kept_us(now_us) - below && !empty()) {
    grown_us_ = now_us;
    return Plan::expand;
  }
  const bool steady = target_us_ == target_min_us && (grown_us_ == 0 || now_us - grown_us_ > grown_rest_us);
  const int64_t above = steady ? above_least_us : above_us(target_us_);
  if (slack < kept_us(now_us) + frame_us + above || empty() || now_us < overtaken_until_us_) return Plan::normal;
  return Plan::accelerate;
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

bool JitterBuffer::peek(uint8_t* out, size_t count) const {
  if (!has(count)) return false;
  const size_t at = next_ % ring_units;
  const size_t first = count < ring_units - at ? count : ring_units - at;
  std::memcpy(out, ring_ + at, first);
  std::memcpy(out + first, ring_, count - first);
  return true;
}

size_t JitterBuffer::run(size_t most, bool there) const {
  if (!started_) return there ? 0 : most;
  size_t count = 0;
  while (count < most) {
    const uint32_t at = (next_ + static_cast<uint32_t>(count)) % ring_units;
    if ((valid_[at / 64] >> at % 64 & 1) != (there ? 1 : 0)) break;
    count++;
  }
  return count;
}

bool JitterBuffer::take(uint8_t* out, size_t count) {
  if (!peek(out, count)) return false;
  for (size_t i = 0; i < count;) {
    const Bits bits(next_ + static_cast<uint32_t>(i), count - i);
    valid_[bits.word] &= ~bits.mask;
    i += bits.count;
  }
  move_on(count);
  return true;
}

void JitterBuffer::skip(size_t count) {
  if (missed_ <= loss_most_frames) missed_++;
  move_on(count);
}

void JitterBuffer::move_on(size_t count) {
  next_ += static_cast<uint32_t>(count);
  if (unwrapped(next_) > (1 << 30)) {  // re-anchor long before 32-bit arithmetic wraps
    const int64_t moved = unwrapped(next_);
    origin_ = next_;
    base_now_ += moved * unit_us;
    base_before_ += moved * unit_us;
  }
}

}  // namespace sidetone
