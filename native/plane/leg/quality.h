// How good a call sounds, as a listener would say (MOS, 1 to 4.5): the E-model of ITU-T G.107 with its default values,
// reduced to what a packet network does to speech: loss and delay. It assumes G.711 with packet loss concealment (ITU-T
// G.113, appendix I). What a wide-band codec adds is not counted.
#pragma once

namespace sidetone {

/** The estimated MOS. `lost` is the part of the packets that were not heard, 0 to 1; `one_way_ms` the delay from mouth
 * to ear. */
inline double mos_estimate(double lost, double one_way_ms) {
  constexpr double robustness = 25.1;  // Bpl of G.711 with concealment, for random loss
  const double percent = lost * 100;
  const double loss_impairment = 95 * percent / (percent + robustness);
  const double delay_impairment = 0.024 * one_way_ms + (one_way_ms > 177.3 ? 0.11 * (one_way_ms - 177.3) : 0);
  const double r = 93.2 - delay_impairment - loss_impairment;
  if (r <= 6.5) return 1;  // below it the polynomial rises again
  return 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6;
}

}  // namespace sidetone
