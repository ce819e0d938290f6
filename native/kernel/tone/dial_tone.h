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
  /** Writes the 40 samples of 5 ms at 8 kHz without what was followed. */
  void remove(const float* in, float* out);
  /** The power that is being followed, as amplitude squared. */
  float power() const;
  /** Forgets what was followed. */
  void reset() { sines_ = ToneBins(); }

  /** What dial tones are made of all over the world, in Hz. A tone within some Hz of one is followed. */
  static constexpr float hz[tones] = {330, 350, 400, 415, 425, 440, 450, 480};

 private:
  ToneBins sines_;  // amplitude and phase of each sine at the beginning of the next 5 ms
};

}  // namespace sidetone
