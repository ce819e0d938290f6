// DTMF (ITU-T Q.23, receiver limits of Q.24) in audio of 8 or 16 kHz.
//
//          1209 1336 1477 1633        Every 5 ms the last 20 ms are judged: the strongest frequency of each group must
//          be there, within
//    697    1    2    3    A          tolerance and twist, and must together be nearly all of the sound; a second
//    harmonic, which voices 770    4    5    6    B          have and senders of tones have not, spoils it. A key is
//    there after four such windows in a row, and 852    7    8    9    C          over after six without. 941    *    0
//    #    D
//
// Tolerance is measured by the turn of the phase between two halves of the window: a bin of a Fourier transform this
// short could not tell 1.5 % (accepted) from 3.5 % (refused) at 697 Hz.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernel/tone/tone_bank.h"

namespace sidetone {

class ToneDetector {
 public:
  struct Key {
    char key = 0;
    uint32_t duration_ms = 0;
  };

  /** `rate_hz` is 8000 or 16000. */
  explicit ToneDetector(uint32_t rate_hz);
  /** Takes samples; the count is a multiple of 5 ms. True, with `key`, when a key has ended; at most one in 20 ms. */
  bool process(const int16_t* pcm, size_t count, Key& key);
  /** The key that is down now, or 0. */
  char down() const { return down_ ? candidate_ : '\0'; }
  /** Ends a key that is down, as the sound is over. */
  bool finish(Key& key);

  static constexpr size_t steps = tone_steps;
  static constexpr size_t step_max = tone_step_max;

 private:
  using Bin = ToneBins::Bin;
  bool step(const int16_t* pcm, Key& key);
  char judge() const;
  void fit(size_t low, size_t high, size_t half, Bin& low_sine, Bin& high_sine) const;
  float steady(size_t index, Bin early, Bin late) const;
  Bin at(size_t index, size_t age) const { return bins_[(newest_ + 1 + age) % steps].of(index); }
  float harmonic(float hz) const;
  void end(Key& key);

  uint32_t rate_hz_;
  const ToneBank* bank_;
  size_t step_;
  ToneBins bins_[steps];
  float energy_[steps] = {};
  int16_t window_[steps * step_max] = {};
  size_t newest_ = 0;
  char candidate_ = 0;
  uint32_t hits_ = 0;
  uint32_t misses_ = 0;
  uint32_t length_ = 0;  // steps since the first hit
  bool down_ = false;
};

/** The sum of two sines: one key. */
class ToneGenerator {
 public:
  /** `amplitude` of each of the two, in samples; `offset` stretches both frequencies (0.015 is 1.5 % high). An unknown
   * key is silence. */
  ToneGenerator(char key, uint32_t rate_hz, float amplitude, float offset = 0.0f);
  void generate(int16_t* out, size_t count);

 private:
  double step_[2] = {0, 0};
  double phase_[2] = {0, 0};
  float amplitude_;
};

}  // namespace sidetone
