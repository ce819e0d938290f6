// Streaming polyphase sample-rate conversion between any two rates, exact ratio L/M (output / input reduced): each output is one dot
// product of the newest inputs with one of L phases of a Kaiser-windowed sinc. Nothing is withheld beyond the filter's own delay.
//
// Transition band 0.85 to 1.15 of half the lower rate (3.4 to 4.6 kHz at 8 kHz): flat to the telephone band's edge, and what folds, folds
// into the transition band only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sidetone {

/** The coefficients of one ratio: made once, shared by every stream of that ratio. */
class ResamplerFilter {
 public:
  ResamplerFilter(uint32_t in_hz, uint32_t out_hz);
  uint32_t up() const { return up_; }
  uint32_t down() const { return down_; }
  uint32_t taps() const { return taps_; }
  /** Group delay in seconds. */
  double delay_sec() const { return delay_sec_; }
  const float* phase(uint32_t index) const { return &coefficients_[static_cast<size_t>(index) * taps_]; }

  /** A tap that is not zero: its place among inputs dealt out by their remainder of `down`, `stride` apart. */
  struct Tap {
    uint32_t offset;
    float weight;
  };
  struct Taps {
    const Tap* first;
    size_t count;
  };
  /** Whether the ratio is small enough for whole cycles of it to be converted side by side. */
  bool dealt() const { return !first_.empty(); }
  uint32_t stride() const { return stride_; }
  /** Of one of the `up` outputs of a cycle. */
  Taps taps_of(uint32_t output) const { return {&dealt_[first_[output]], first_[output + 1] - first_[output]}; }
  /** Where `down` is 1: the weights of the outputs after the first, tap by tap. */
  const float* together() const { return together_.data(); }

 private:
  void deal();

  uint32_t up_ = 1;
  uint32_t down_ = 1;
  uint32_t taps_ = 0;
  double delay_sec_ = 0;
  std::vector<float> coefficients_;
  uint32_t stride_ = 0;
  std::vector<Tap> dealt_;
  std::vector<uint32_t> first_;
  std::vector<float> together_;
};

/** One stream. The filter must outlive it. */
class Resampler {
 public:
  explicit Resampler(const ResamplerFilter& filter);
  /** The most samples `process` can give for `count` inputs. */
  size_t out_max(size_t count) const;
  /** Converts `count` samples; returns how many were written to `out`, which holds at least `out_max(count)`. `count` is at most `block_max`. */
  size_t process(const float* in, size_t count, float* out);
  /** Pushes the filter's delay out with zeros after the last sample. `out` holds at least `out_max(taps)`. */
  size_t flush(float* out);
  void reset();

  static constexpr size_t block_max = 1024;

 private:
  size_t whole_cycles(size_t cycles, size_t held, float* out) const;

  const ResamplerFilter* filter_;
  std::vector<float> window_;  // taps - 1 past inputs, then the block
  size_t past_ = 0;
  uint32_t phase_ = 0;
  size_t skip_ = 0;  // inputs before the next output's newest input
};

}  // namespace sidetone
