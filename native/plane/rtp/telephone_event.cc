#include "plane/rtp/telephone_event.h"

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
  return age > 0 && age < timeline_units;  // a straggler; older than that is a sender that began a new timeline
}

void TelephoneEvent::finish(Digit& digit) {
  digit.key = keys[event_];
  digit.duration_ms = (base_units_ + units_) * 1000 / clock_hz;
  done_[done_next_] = timestamp_;
  done_next_ = (done_next_ + 1) % remembered;
  if (done_count_ < remembered) done_count_++;
  active_ = false;
  base_units_ = 0;
  units_ = 0;
}

bool TelephoneEvent::receive(const uint8_t* payload, size_t count, uint32_t timestamp, bool marker, int64_t now_us,
                             Digit& digit) {
  if (count < 4 || payload[0] > 15) return false;
  const uint8_t event = payload[0];
  const bool end = (payload[1] & 0x80) != 0;
  const uint32_t units = static_cast<uint32_t>(payload[2]) << 8 | payload[3];
  if (active_ && timestamp == timestamp_) {
    if (event != event_) return false;
    if (units > units_) units_ = units;  // reordered updates never shrink it
    heard_us_ = now_us;
    if (!end) return false;
    finish(digit);
    return true;
  }
  if (finished(timestamp)) return false;
  if (active_ && static_cast<int32_t>(timestamp - timestamp_) < 0 &&
      static_cast<int32_t>(timestamp_ - timestamp) < timeline_units)
    return false;
  bool complete = false;
  uint32_t base = 0;
  if (active_) {
    const bool continued = !marker && event == event_ && timestamp == timestamp_ + 0xffff;
    if (continued && base_units_ < 60 * clock_hz) {
      base = base_units_ + 0xffff;
    } else {
      finish(digit);
      complete = true;
    }
  }
  active_ = true;
  event_ = event;
  timestamp_ = timestamp;
  base_units_ = base;
  units_ = units;
  heard_us_ = now_us;
  // The only packet of a key that came is an end: a key all the same. Never two keys from one packet: the rest waits
  // for its copies or `expire`.
  if (end && !complete) {
    finish(digit);
    return true;
  }
  return complete;
}

bool TelephoneEvent::expire(int64_t now_us, Digit& digit) {
  if (!active_ || now_us - heard_us_ < end_lost_us) return false;
  finish(digit);
  return true;
}

}  // namespace sidetone
