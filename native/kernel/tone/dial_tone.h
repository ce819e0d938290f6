// Takes a dial tone (ITU-T E.180) out of the sound before keys are looked for in it.
//
// An adaptive filter (LMS, in blocks of 5 ms) follows a sine at each of the usual frequencies and subtracts it. It
// follows slowly, within about 20 ms, so a narrow band goes and nothing else: a key is another frequency, and speech is
// never so steady.
#pragma once
#include <cstddef>

#include "kernel/tone/tone_bank.h"

namespace sidetone {

class DialTone {
 public:
  /** Follows what the next 5 ms hold of each frequency. Returns what was expected of them. */
  ToneBins follow(const ToneBins& heard);
  /** Writes the 40 samples of 5 ms at 8 kHz without what was expected of them. */
  static void remove(const ToneBins& expected, const float* in, float* out);
  /** The power that is being followed, as amplitude squared. */
  float power() const { return power_; }
  /** Forgets what was followed. */
  void reset() { *this = DialTone(); }

 private:
  ToneBins sines_;  // amplitude and phase of each sine in the middle of the next 5 ms
  float power_ = 0;
};

/**
 * What makes the sines of a step those of the next, from what the step holds of each frequency, and returns their
 * power; as compiled for one instruction set, which the processor must have.
 */
using FollowForm = float (*)(const ToneBins& heard, ToneBins& sines);
FollowForm follow_form(Width width);

}  // namespace sidetone
