// Telephone events as they are received (RFC 4733 §2.3, §2.5).
//
//  |     event     |E|R| volume    |          duration             |
//
// An event is known by its timestamp: updates grow its duration, the end comes three times, and an end may come after
// the next key has begun. So: one digit a timestamp, given at the end; at the next event or after a silence when the
// end was lost.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

struct Digit {
  char key = 0;
  uint32_t duration_ms = 0;
};

class TelephoneEvent {
 public:
  /** Takes the payload of one packet. True when a key is complete: this one, or the one before whose end was lost. */
  bool receive(const uint8_t* payload, size_t count, uint32_t timestamp, bool marker, int64_t now_us, Digit& digit);
  /** True when the key in progress is complete because nothing more came of it for `end_lost_us`. */
  bool expire(int64_t now_us, Digit& digit);
  /** Forgets everything: a new source begins. */
  void reset() { *this = TelephoneEvent(); }
  bool active() const { return active_; }

  static constexpr int64_t end_lost_us = 200'000;
  static constexpr uint32_t clock_hz = 8000;

 private:
  static constexpr int remembered = 8;
  static constexpr int32_t timeline_units = 10 * static_cast<int32_t>(clock_hz);

  bool finished(uint32_t timestamp) const;
  void finish(Digit& digit);

  bool active_ = false;
  uint8_t event_ = 0;
  uint32_t timestamp_ = 0;
  uint32_t base_units_ = 0;  // of the earlier segments of a key longer than 65,535 units (§2.5.1.3)
  uint32_t units_ = 0;
  int64_t heard_us_ = 0;
  uint32_t done_[remembered] = {};
  int done_count_ = 0;
  int done_next_ = 0;
};

}  // namespace sidetone
