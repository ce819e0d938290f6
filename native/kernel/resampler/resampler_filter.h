// The coefficients of one ratio L/M (output / input reduced): a low-pass at L times the input rate, of which each
// output takes every Lth tap.
//
// Transition band 0.85 to 1.15 of half the lower rate (3.4 to 4.6 kHz at 8 kHz): flat to the telephone band's edge, and
// what folds, folds into the transition band only. Between 8, 16, 24 and 48 kHz the low-pass is equiripple
// (equiripple.h), of which a third fewer taps do; elsewhere a sinc under Kaiser's window, which is made at once for any
// ratio.
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
  /** Group delay in seconds. */
  double delay_sec() const { return delay_sec_; }

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
  /** Of all outputs. */
  Pieces pieces() const { return {pieces_.data(), pieces_.size()}; }
  /** Whether all outputs of a cycle have the same pieces, a tap of which is a weight of each output. */
  bool together() const { return together_; }
  /** Of one of the `up` outputs of a cycle, against the rows. */
  Pieces pieces_of(uint32_t output) const { return {&pieces_[first_[output]], first_[output + 1] - first_[output]}; }
  /** Whether these make an output that is an input as it is. */
  bool unity(const Pieces& pieces) const {
    return pieces.count == 1 && pieces.first->count == 1 && weights_[pieces.first->first] == 1;
  }
  /** What pieces count from. */
  const float* weights() const { return weights_.data(); }

  /** Of a ratio that is not cyclic: `taps` (a multiple of 8) weights of one of `up` phases, the oldest input's first.
   */
  const float* phase(uint32_t index) const { return &weights_[static_cast<size_t>(index) * taps_]; }

  static constexpr size_t cycle_max = 8;
  /** The most inputs that a stream takes at once. */
  static constexpr size_t block_max = 1024;

 private:
  void deal(const std::vector<std::vector<float>>& phases);
  void deal_together(const std::vector<std::vector<float>>& phases);
  void cut(const std::vector<size_t>& offsets);
  void lay_out(const std::vector<std::vector<float>>& phases);

  uint32_t up_ = 1;
  uint32_t down_ = 1;
  uint32_t taps_ = 0;
  double delay_sec_ = 0;
  std::vector<float> weights_;
  size_t history_ = 0;
  size_t stride_ = 0;
  bool together_ = false;
  std::vector<FirPiece> pieces_;
  std::vector<uint32_t> first_;
};

}  // namespace sidetone
