#include "kernel/tone/half_band.h"

#include <cmath>
#include <cstring>

namespace sidetone {
namespace {

constexpr double pi = 3.14159265358979323846;

/** A sinc under a Blackman window: the taps at distance 1, 3, 5, ... of the centre, whose own is a half. */
struct Taps {
  float tap[6];
  Taps() {
    double sum = 0;
    double made[6];
    for (int i = 0; i < 6; i++) {
      const int distance = 2 * i + 1;
      const double x = pi * distance / 13;
      made[i] = std::sin(pi * distance / 2) / (pi * distance) * (0.42 + 0.5 * std::cos(x) + 0.08 * std::cos(2 * x));
      sum += 2 * made[i];
    }
    for (int i = 0; i < 6; i++) tap[i] = static_cast<float>(made[i] * 0.5 / sum);
  }
};
const Taps taps;

}  // namespace

void HalfBand::halve(const int16_t* in, size_t count, float* out) {
  while (count > 0) {
    const size_t part = count < count_max ? count : count_max;
    std::memcpy(heard_ + past, in, 2 * part * sizeof(int16_t));
    for (size_t i = 0; i < part; i++) {
      const int16_t* centre = heard_ + 2 * i + 2 * pairs - 1;
      float sum = 0.5f * centre[0];
      for (size_t k = 0; k < pairs; k++) {
        const size_t distance = 2 * k + 1;
        sum += taps.tap[k] * static_cast<float>(centre[distance] + *(centre - distance));
      }
      out[i] = sum;
    }
    std::memmove(heard_, heard_ + 2 * part, past * sizeof(int16_t));
    in += 2 * part;
    out += part;
    count -= part;
  }
}

}  // namespace sidetone
