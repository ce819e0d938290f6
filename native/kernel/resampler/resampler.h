// Streaming polyphase sample-rate conversion between any two rates: each output is one dot product of the newest inputs
// with one phase of the ratio's filter. Nothing is withheld beyond the filter's own delay, and how the stream is cut
// into blocks changes no sample.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/resampler/resampler_filter.h"

namespace sidetone {

/** One stream. The filter must outlive it. */
class Resampler {
 public:
  explicit Resampler(const ResamplerFilter& filter);
  /** The most samples `process` can give for `count` inputs. */
  size_t out_max(size_t count) const;
  /** Converts `count` samples; returns how many were written to `out`, which holds at least `out_max(count)`. `count`
   * is at most `block_max`. */
  size_t process(const float* in, size_t count, float* out);
  /** Pushes the filter's delay out with zeros after the last sample. `out` holds at least `out_max(taps)`. */
  size_t flush(float* out);
  void reset();

  static constexpr size_t block_max = ResamplerFilter::block_max;

 private:
  float between(const float* in) const;
  size_t one_by_one(const float* in, size_t count, float* out);
  size_t side_by_side(const float* in, uint32_t count, float* out);
  void deal(const float* in, uint32_t count);
  void convert(size_t cycle, size_t from, size_t to, float* out) const;
  void convert(size_t cycle, float* out) const;
  void forget(size_t cycles);

  /** A line of the cache. */
  struct alignas(64) Line {
    float samples[16];
  };
  float* held() { return lines_.front().samples; }
  const float* held() const { return lines_.front().samples; }

  const ResamplerFilter* filter_;
  std::vector<Line> lines_;  // past inputs, then the block; side by side: a row of these for each place in a cycle
  uint32_t begun_ = 0;       // side by side: inputs that came of the cycle that is not yet whole
  uint32_t phase_ = 0;       // one by one: of the next output
  size_t skip_ = 0;          // one by one: inputs before the next output's newest input
};

}  // namespace sidetone
