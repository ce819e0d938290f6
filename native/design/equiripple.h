// The low-passes of the resampler between rates of small ratio (kernel/resampler/equiripple.h holds what this makes).
#pragma once
#include <cstdint>
#include <vector>

namespace sidetone::design {

/** One low-pass at `ratio` times the lower rate. Pass band to 0.425 and stop band from 0.575 of that rate. */
struct LowPass {
  uint32_t ratio;
  std::vector<double> taps;  // from the centre on
};

/** The low-passes of the ratios 2, 3 and 6, which lie between 8, 16, 24 and 48 kHz. */
std::vector<LowPass> equiripple_low_passes();

}  // namespace sidetone::design
