// Halves the rate of audio: 16 kHz to the 8 kHz at which keys are looked for. What lies above 4.7 kHz goes, so noise up
// there does not count against a key; up to 3.3 kHz, the second harmonic of the highest key, nothing changes.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

class HalfBand {
 public:
  /** Takes `2 * count` samples and writes `count`. */
  void halve(const int16_t* in, size_t count, float* out);

 private:
  static constexpr size_t pairs = 6;             // taps at odd distances on either side of the centre
  static constexpr size_t past = 4 * pairs - 2;  // samples before the newest pair that its output needs
  static constexpr size_t count_max = 160;

  int16_t heard_[past + 2 * count_max] = {};
};

}  // namespace sidetone
