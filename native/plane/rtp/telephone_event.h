// Telephone events as they are received (RFC 4733 §2.3, §2.5).
//
//  |     event     |E|R| volume    |          duration             |
//
// An event is known by its timestamp: updates grow its duration, the end comes three times, and an end may come after
// the next key has begun. So one digit is told for a timestamp, at the end of the event; where the end was lost, at the
// next event or after a silence.
//
// A key that is held longer than 65,535 units (8.19 s) comes in segments (§2.5.1.3): a segment begins at the timestamp
// at which the one before it ended, without a marker. Some senders end segments a packet early, or end each of them
// with E. It is one key all the same.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

struct Digit {
  char key = 0;
  uint32_t duration_ms = 0;
};

/** How many keys of a far end are told: each becomes an event that is stored and sent. No hand is faster, and no
 * dialler that is understood everywhere (ITU-T Q.24: 40 ms of sound and as much of pause). */
class KeyRate {
 public:
  /** Whether a key that is complete now is told. */
  bool permits(int64_t now_us) {
    if (paid_us_ < now_us) paid_us_ = now_us;
    if (paid_us_ - now_us > (at_once_most - 1) * each_us) return false;
    paid_us_ += each_us;
    return true;
  }

  /** Keys that are told at once, as they come after a stall of the network. */
  static constexpr int64_t at_once_most = 256;
  /** One key in so long is told of those that go on. */
  static constexpr int64_t each_us = 40'000;

 private:
  int64_t paid_us_ = 0;  // when nothing is left of what was told
};

class TelephoneEvent {
 public:
  /** Takes the payload of one packet. True when a key is complete: this one, or the one before whose end was lost. */
  bool receive(const uint8_t* payload, size_t count, uint32_t timestamp, bool marker, int64_t now_us, Digit& digit);
  /** Returns true when the key in progress is complete because nothing more came of it for `end_lost_us`. */
  bool expire(int64_t now_us, Digit& digit);
  /** Gives the key in progress up, if there is one: its source is gone. */
  void abandon() {
    if (active_) remember(segment_.timestamp);
    active_ = false;
  }
  /** Forgets everything: a new source begins. */
  void reset() { clock(clock_hz_); }
  /** Begins anew on a clock of so many Hz, which is that of the audio (RFC 4733 §2.1). */
  void clock(uint32_t hz) {
    *this = TelephoneEvent();
    clock_hz_ = hz;
  }
  bool active() const { return active_; }
  /** The key that is down now, or 0. It is down from the first packet that comes of it, marked or not (§2.3, §2.5.1.1),
   * to its digit. */
  char down() const;

  static constexpr int64_t end_lost_us = 200'000;

 private:
  static constexpr int remembered = 8;
  /** No segment but the last is shorter. */
  static constexpr uint32_t segment_least_units = 0xf000;
  uint32_t base_most_units() const { return 3600 * clock_hz_; }
  int32_t timeline_units() const { return 10 * static_cast<int32_t>(clock_hz_); }
  uint32_t marked_gap_units() const { return clock_hz_ / 10; }

  bool finished(uint32_t timestamp) const;
  struct Segment {
    uint8_t event = 0;
    uint32_t timestamp = 0;
    uint32_t units = 0;
  };
  bool continues(const Segment& before, uint8_t event, uint32_t timestamp, bool marker) const;
  bool continues_told(uint8_t event, uint32_t timestamp, bool marker, uint32_t units);
  void remember(uint32_t timestamp);
  void finish(bool end, Digit& digit);

  uint32_t clock_hz_ = 8000;
  bool active_ = false;
  Segment segment_;
  uint32_t base_units_ = 0;  // the length of the earlier segments of this key
  int64_t heard_us_ = 0;
  uint32_t done_[remembered] = {};
  int done_count_ = 0;
  int done_next_ = 0;
  Segment told_;           // the last segment of the key that was told last
  bool told_end_ = false;  // its end came
};

}  // namespace sidetone
