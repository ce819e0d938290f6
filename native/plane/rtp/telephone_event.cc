#include "plane/rtp/telephone_event.h"

#include <algorithm>

namespace sidetone {
namespace {

constexpr char keys[] = "0123456789*#ABCD";
}  // namespace

bool TelephoneEvent::finished(uint32_t timestamp) const {
  for (int i = 0; i < done_count_; i++) {
    if (done_[i] == timestamp) return true;
  }
  if (done_count_ == 0) return false;
  const uint32_t newest = done_[(done_next_ + remembered - 1) % remembered];
  const int32_t age = static_cast<int32_t>(newest - timestamp);
  return age > 0 && age < timeline_units();  // a straggler; older than that is a sender that began a new timeline
}

char TelephoneEvent::down() const { return active_ ? keys[segment_.event] : '\0'; }

void TelephoneEvent::remember(uint32_t timestamp) {
  done_[done_next_] = timestamp;
  done_next_ = (done_next_ + 1) % remembered;
  if (done_count_ < remembered) done_count_++;
}

void TelephoneEvent::finish(bool end, Digit& digit) {
  digit.key = keys[segment_.event];
  digit.duration_ms = (base_units_ + segment_.units) / (clock_hz_ / 1000);
  remember(segment_.timestamp);
  told_ = segment_;
  told_end_ = end;
  active_ = false;
}

/** Whether an event that begins at `timestamp` is the next segment of the same key. */
bool TelephoneEvent::continues(const Segment& before, uint8_t event, uint32_t timestamp, bool marker) const {
  const uint32_t passed = timestamp - before.timestamp;
  if (event != before.event || passed < segment_least_units || passed > 0x10000) return false;
  // A segment that is marked as a new key, which it must not be, follows the one before it without a gap: 100 ms at
  // most.
  return !marker || passed - before.units <= marked_gap_units();
}

/** Whether an event is only another segment of the key that was told last, which is then remembered as told. */
bool TelephoneEvent::continues_told(uint8_t event, uint32_t timestamp, bool marker, uint32_t units) {
  if (done_count_ == 0 || !continues(told_, event, timestamp, marker)) return false;
  if (told_end_ && told_.units < segment_least_units) return false;  // it had ended earlier: this is the key again
  remember(timestamp);
  told_ = {event, timestamp, units};
  told_end_ = true;
  return true;
}

bool TelephoneEvent::receive(const uint8_t* payload, size_t count, uint32_t timestamp, bool marker, int64_t now_us,
                             Digit& digit) {
  if (count < 4 || payload[0] > 15) return false;
  const uint8_t event = payload[0];
  const bool end = (payload[1] & 0x80) != 0;
  const uint32_t units = static_cast<uint32_t>(payload[2]) << 8 | payload[3];
  if (active_ && timestamp == segment_.timestamp) {
    if (event != segment_.event) return false;
    if (units > segment_.units) segment_.units = units;  // reordered updates never shrink it
    heard_us_ = now_us;
    if (!end) return false;
    finish(true, digit);
    return true;
  }
  if (finished(timestamp)) {
    if (timestamp == told_.timestamp && units > told_.units) told_.units = units;
    return false;
  }
  if (active_ && static_cast<int32_t>(timestamp - segment_.timestamp) < 0 &&
      static_cast<int32_t>(segment_.timestamp - timestamp) < timeline_units())
    return false;
  bool complete = false;
  uint32_t base = 0;
  if (active_ && continues(segment_, event, timestamp, marker)) {
    base = std::min(base_units_ + (timestamp - segment_.timestamp), base_most_units());
  } else if (active_) {
    finish(false, digit);
    complete = true;
  } else if (continues_told(event, timestamp, marker, units)) {
    return false;
  }
  active_ = true;
  segment_ = {event, timestamp, units};
  base_units_ = base;
  heard_us_ = now_us;
  // The only packet of a key that came is an end: a key all the same. Never two keys from one packet: the rest waits
  // for its copies or `expire`.
  if (end && !complete) {
    finish(true, digit);
    return true;
  }
  return complete;
}

bool TelephoneEvent::expire(int64_t now_us, Digit& digit) {
  if (!active_ || now_us - heard_us_ < end_lost_us) return false;
  finish(false, digit);
  return true;
}

}  // namespace sidetone
