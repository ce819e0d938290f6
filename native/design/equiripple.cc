#include "design/equiripple.h"

#include "design/remez.h"

namespace sidetone::design {
namespace {

constexpr double pass = 0.425;
constexpr double stop = 0.575;

/** The taps from the centre on, out of an odd number of them. */
std::vector<double> from_centre(const std::vector<double>& taps) {
  return {taps.begin() + static_cast<std::ptrdiff_t>(taps.size() / 2), taps.end()};
}

/** Unequal ripples: at most 0.046 dB where the ear does not tell, -101 dB where it does. */
LowPass unequal(uint32_t ratio, size_t taps) {
  constexpr double weight = 600;
  return {ratio, from_centre(remez(taps, {{0, pass / ratio, 1, 1}, {stop / ratio, 0.5, 0, weight}}))};
}

/**
 * Twice a rate: every second tap is zero but for the one in the middle, so that every second output is an input as it
 * is. The others alone are a filter of even length at the lower rate that passes all up to the edge (P. P. Vaidyanathan
 * and T. Q. Nguyen, 1987). -103 dB.
 */
LowPass half_band(size_t taps) {
  const std::vector<double> odd = remez(taps, {{0, pass, 1, 1}});
  LowPass low_pass = {2, {0.5}};
  for (size_t i = odd.size() / 2; i < odd.size(); i++) {
    low_pass.taps.push_back(odd[i] / 2);
    if (i + 1 < odd.size()) low_pass.taps.push_back(0);
  }
  return low_pass;
}

}  // namespace

std::vector<LowPass> equiripple_low_passes() { return {half_band(42), unequal(3, 83), unequal(6, 165)}; }

}  // namespace sidetone::design
