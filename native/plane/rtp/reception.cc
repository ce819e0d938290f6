#include "plane/rtp/reception.h"

#include <utility>

namespace sidetone {

void Reception::start(uint32_t ssrc, uint16_t sequence) {
  *this = Reception();
  started_ = true;
  ssrc_ = ssrc;
  base_ = sequence;
  highest_ = static_cast<uint16_t>(sequence - 1);
  cycles_ = sequence == 0 ? 0xffff0000u : 0;  // the first packet itself closes this cycle
}

/** Starts over for the same source, and keeps what was counted. */
void Reception::restart(uint16_t sequence) {
  const uint32_t received = received_in_all();
  const int32_t lost = lost_in_all();
  start(ssrc_, sequence);
  received_before_ = received;
  lost_before_ = lost;
}

/** Whether the timestamp is later than that of the highest number. */
bool Reception::is_new(std::optional<uint32_t> timestamp) const {
  return timestamp && highest_timestamp_ && static_cast<int32_t>(*timestamp - *highest_timestamp_) > 0;
}

/** Judges a packet whose number lies `behind` the highest: it was overtaken, or doubled. */
Reception::Verdict Reception::earlier(uint16_t behind) {
  if (behind == 0 || behind >= 64 || (seen_ >> behind & 1) != 0) return Verdict::duplicate_or_late;
  seen_ |= uint64_t{1} << behind;
  received_++;
  return Verdict::accepted;
}

Reception::Verdict Reception::sequence(uint16_t sequence, std::optional<uint32_t> timestamp) {
  const uint16_t ahead = static_cast<uint16_t>(sequence - highest_);
  if (ahead != 0 && ahead < dropout_max) {
    if (std::exchange(gap_excused_, false) && ahead > 1) restart(sequence);
    if (sequence < highest_) cycles_ += 0x10000;
    highest_ = sequence;
    if (timestamp) highest_timestamp_ = timestamp;
    seen_ = ahead >= 64 ? 1 : seen_ << ahead | 1;
    received_++;
    bad_next_ = 0x10000;
    return Verdict::accepted;
  }
  const uint16_t behind = static_cast<uint16_t>(highest_ - sequence);
  if (behind <= misorder_max && !is_new(timestamp)) return earlier(behind);
  if (sequence == bad_next_) {  // two in a row: the source restarted its numbering
    restart(sequence);
    return this->sequence(sequence, timestamp);
  }
  bad_next_ = static_cast<uint16_t>(sequence + 1);
  return behind <= misorder_max ? earlier(behind) : Verdict::rejected;
}

void Reception::arrival(uint32_t timestamp, int64_t arrival_units) {
  const int64_t transit = arrival_units - static_cast<int64_t>(timestamp);
  if (have_transit_) {
    int64_t delta = static_cast<int32_t>(static_cast<uint32_t>(transit - transit_));  // modulo 2^32, as timestamps wrap
    if (delta < 0) delta = -delta;
    if (delta < 80000) jitter_q4_ += delta - ((jitter_q4_ + 8) >> 4);  // a jump of 10 s is a new timeline, no jitter
  }
  have_transit_ = true;
  transit_ = transit;
}

void Reception::change_clock(uint32_t from, uint32_t to) {
  if (from == to) return;
  jitter_q4_ = jitter_q4_ * to / from;
  have_transit_ = false;
}

int32_t Reception::lost() const {
  if (!started_ || received_ == 0) return 0;
  const uint32_t expected = extended_highest() - base_ + 1;
  return static_cast<int32_t>(expected - received_);
}

uint8_t Reception::fraction_lost() {
  if (!started_) return 0;
  const uint32_t expected = extended_highest() - base_ + 1;
  const int64_t expected_interval = static_cast<int64_t>(expected) - expected_prior_;
  const int64_t lost_interval = expected_interval - (static_cast<int64_t>(received_) - received_prior_);
  expected_prior_ = expected;
  received_prior_ = received_;
  if (expected_interval <= 0 || lost_interval <= 0) return 0;
  const int64_t fraction = lost_interval * 256 / expected_interval;
  return static_cast<uint8_t>(fraction > 255 ? 255 : fraction);
}

}  // namespace sidetone
