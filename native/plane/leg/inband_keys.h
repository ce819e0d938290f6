// Keys that are heard as tones in the audio are told once. A far end that sends telephone-events too (RFC 4733 §2.1)
// often lets the tone, or its beginning, through. Where events were agreed, a tone waits; an event of the same key
// around it takes its place.
#pragma once
#include <cstddef>
#include <cstdint>

#include "plane/rtp/telephone_event.h"

namespace sidetone {

class InbandKeys {
 public:
  /** A tone has ended. */
  void tone(const Digit& digit, int64_t now_us) {
    for (Event& event : events_) {
      if (event.key == digit.key && now_us - event.us <= after_event_us) {
        event.key = 0;
        return;
      }
    }
    if (waiting_ < waiting_max) tones_[waiting_++] = {digit, now_us};  // beyond it no hand presses keys
  }

  /** An event was told. */
  void event(char key, int64_t now_us) {
    for (size_t i = 0; i < waiting_; i++) {
      if (tones_[i].digit.key != key) continue;
      remove(i);
      return;
    }
    events_[next_event_] = {key, now_us};
    next_event_ = (next_event_ + 1) % waiting_max;
  }

  /** Whether a tone that is heard now may be that of an event that was told. */
  bool follows_event(char key, int64_t now_us) const {
    for (const Event& event : events_) {
      if (event.key == key && now_us - event.us <= after_event_us) return true;
    }
    return false;
  }

  /** Whether a tone that has ended is still to be told. */
  bool waiting() const { return waiting_ != 0; }

  /** Returns true, with `digit`, when a tone has waited long enough. An event in progress may still be that tone's. */
  bool due(int64_t now_us, bool wait, bool event_active, Digit& digit) {
    if (waiting_ == 0 || (wait && (event_active || now_us - tones_[0].us < overlap_us))) return false;
    digit = tones_[0].digit;
    remove(0);
    return true;
  }

  /** An event's end may be lost, and is then known 200 ms later; the tone comes through the jitter buffer. */
  static constexpr int64_t overlap_us = 300'000;
  /** A tone comes through the jitter buffer (200 ms at most) and its end is known 40 ms later: so long after the event.
   */
  static constexpr int64_t after_event_us = 500'000;

 private:
  static constexpr size_t waiting_max = 8;
  struct Tone {
    Digit digit;
    int64_t us = 0;
  };
  struct Event {
    char key = 0;
    int64_t us = 0;
  };

  void remove(size_t index) {
    for (size_t i = index + 1; i < waiting_; i++) tones_[i - 1] = tones_[i];
    waiting_--;
  }

  size_t waiting_ = 0;  // first, as every tick looks at it
  Tone tones_[waiting_max];
  Event events_[waiting_max];
  size_t next_event_ = 0;
};

}  // namespace sidetone
