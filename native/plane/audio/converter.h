// Converts mono sound of any rate to 16-bit PCM at the rate of a leg; all decoders of sources use it. An equal rate
// passes through bit-exactly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "kernel/resampler/resampler.h"

namespace sidetone {

/** The filters of one thread, made at first use and kept within bounds of their number and memory. */
class FilterBank {
 public:
  /** The filter of a pair of rates, 4 to 384 kHz in and 8 to 48 kHz out, in Hz. Each rate is exact. */
  std::shared_ptr<const ResamplerFilter> get(uint32_t in_hz, uint32_t out_hz);

 private:
  static constexpr size_t filters_max = 32;
  static constexpr size_t bytes_max = 32 << 20;
  size_t bytes_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, std::shared_ptr<const ResamplerFilter>> filters_;
};

class Converter {
 public:
  explicit Converter(std::shared_ptr<const ResamplerFilter> filter)
      : filter_(std::move(filter)), resampler_(*filter_) {}

  /** The most samples `convert` makes of `count`. */
  size_t out_max(size_t count) const { return resampler_.out_max(count); }
  /** Converts at most `Resampler::block_max` samples (-1 to 1); `out` holds at least `out_max(count)`. Returns how many
   * were made. */
  size_t convert(const float* in, size_t count, int16_t* out);
  /** Writes what the filter still holds after the last sample. `out` holds at least `flush_max()`. Returns how many. */
  size_t flush(int16_t* out);
  size_t flush_max() const { return resampler_.out_max(filter_->taps()); }

  static constexpr size_t made_max = 65'536;

 private:
  static size_t round(const float* in, size_t count, int16_t* out);

  std::shared_ptr<const ResamplerFilter> filter_;
  Resampler resampler_;
};

}  // namespace sidetone
