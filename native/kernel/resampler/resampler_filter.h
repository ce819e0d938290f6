// The coefficients of one ratio L/M (output / input reduced): a low-pass at L times the input rate, of which each
// output takes every Lth tap.
//
// The goal, in parts of half the lower of the two rates (in brackets: of 8 kHz):
//
//   pass band        to 0.85            (0 to 3.4 kHz)     level kept within 0.05 dB
//   transition band  0.85 to 1.15       (3.4 to 4.6 kHz)   falls from 0 to -100 dB
//   stop band        1.15 and more      (from 4.6 kHz)     100 dB down
//
// So what lies above half the lower rate folds into 0.85 to 1 only (3.4 to 4 kHz), above the telephone band. Measured
// from 48 to 8 kHz: 18 dB down at 4.1 kHz, 26 at 4.2, 35 at 4.3, 46 at 4.4, 63 at 4.5 and 101 at 4.6 kHz. Images of
// sound that is brought to a higher rate go the same way.
//
// Between 8, 16, 24 and 48 kHz the low-pass is equiripple (equiripple.h), of which a third fewer taps do; elsewhere it
// is a sinc under Kaiser's window, which is made at once for any ratio. Where the ratio has many phases (rates such as
// 7,999 or 22,255 Hz), 512 of them are kept and a phase between two is interpolated: the rate is exact all the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/resampler/fir.h"

namespace sidetone {

/** Made once, shared by every stream of that ratio. */
class ResamplerFilter {
 public:
  ResamplerFilter(uint32_t in_hz, uint32_t out_hz);
  uint32_t up() const { return up_; }
  uint32_t down() const { return down_; }
  /** How many inputs an output depends on. */
  uint32_t taps() const { return taps_; }
  /** The phases that are kept: all `up` of them, or so many that the rest lies between two. */
  uint32_t kept() const { return kept_; }
  bool interpolated() const { return kept_ != up_; }
  /** The memory of the weights, in bytes. */
  size_t bytes() const { return weights_.size() * sizeof(float); }
  /** Group delay in seconds. */
  double delay_sec() const { return delay_sec_; }
  /** The same, exact: in parts of an input's time, of which there are `up`. */
  uint64_t delay_parts() const { return delay_parts_; }

  /**
   * Whether the ratio is small enough for its cycles (of `down` inputs and `up` outputs) to be converted side by side.
   * Then inputs are held dealt out by their place in the cycle, `down` rows that lie `stride` apart, each with
   * `history` inputs before the first cycle.
   */
  bool cyclic() const { return !first_.empty(); }
  size_t history() const { return history_; }
  size_t stride() const { return stride_; }

  struct Pieces {
    const FirPiece* first;
    size_t count;
  };
  /** The pieces of all outputs. */
  Pieces pieces() const { return {pieces_.data(), pieces_.size()}; }
  /** Whether all outputs of a cycle have the same pieces, a tap of which is a weight of each output. */
  bool together() const { return together_; }
  /** The pieces of one of the `up` outputs of a cycle, which meet the rows. */
  Pieces pieces_of(uint32_t output) const { return {&pieces_[first_[output]], first_[output + 1] - first_[output]}; }
  /** Whether these make an output that is an input as it is. */
  bool unity(const Pieces& pieces) const {
    return pieces.count == 1 && pieces.first->count == 1 && weights_[pieces.first->first] == 1;
  }
  /** What pieces count from. */
  const float* weights() const { return weights_.data(); }

  /**
   * The weights of one of `kept` phases where the ratio is not cyclic: `taps` of them (a multiple of 8), the oldest
   * input's first.
   * An interpolated one has one phase more, a whole input after the first.
   */
  const float* phase(uint32_t index) const { return &weights_[static_cast<size_t>(index) * taps_]; }

  static constexpr uint32_t phases_max = 2048;
  static constexpr uint32_t ratio_max = 16'384;
  static constexpr uint32_t interpolated_phases = 512;
  static constexpr size_t cycle_max = 8;
  /** The most inputs that a stream takes at once. */
  static constexpr size_t block_max = 1024;

 private:
  void deal(const std::vector<std::vector<float>>& phases);
  void deal_together(const std::vector<std::vector<float>>& phases);
  void cut(const std::vector<size_t>& offsets);
  void lay_out(const std::vector<std::vector<float>>& phases);
  void interpolate(uint32_t in_hz, uint32_t out_hz);

  uint32_t up_ = 1;
  uint32_t down_ = 1;
  uint32_t kept_ = 1;
  uint32_t taps_ = 0;
  double delay_sec_ = 0;
  uint64_t delay_parts_ = 0;
  std::vector<float> weights_;
  size_t history_ = 0;
  size_t stride_ = 0;
  bool together_ = false;
  std::vector<FirPiece> pieces_;
  std::vector<uint32_t> first_;
};

}  // namespace sidetone
