// The Parks-McClellan design of a linear-phase low-pass: of all filters of a length, the one whose largest weighted
// error is least, found by Remez's exchange (T. W. Parks and J. H. McClellan, 1972). Run when the tables of the kernels
// are made, and by their test; no part of the addon.
#pragma once
#include <cstddef>
#include <vector>

namespace sidetone::design {

/** Frequencies in cycles a sample, 0 to 0.5. */
struct Band {
  double from;
  double to;
  double wanted;
  double weight;
};

/** `taps` taps, symmetric about their middle. Empty when the exchange did not settle. */
std::vector<double> remez(size_t taps, const std::vector<Band>& bands);

}  // namespace sidetone::design
