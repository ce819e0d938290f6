// Converts mono sound of any rate to 16-bit PCM at the rate of a leg; all decoders of sources use it. An equal rate
// passes through bit-exactly.
//
// What comes out lies where it was: the filter's delay is left out, so that output i is the sound at i / out_hz, and N
// inputs give N * out_hz / in_hz outputs, rounded. Sounds that are converted one by one and put together have neither
// a gap nor an overlap. A filter needs inputs on both sides of an output. Beyond the two ends of a sound it is given
// the sound itself turned by half a circle about its last sample, which goes on with the same value and slope: with
// silence there, a wave that is cut in two would fall to a half at the cut.
//
//   before the first input: 2 x[0] - x[n]  |  x[0] … x[N-1]  |  2 x[N-1] - x[N-1-n] after the last
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

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
  explicit Converter(std::shared_ptr<const ResamplerFilter> filter);

  /** The most samples `convert` makes of `count`. */
  size_t out_max(size_t count) const { return resampler_.out_max(count); }
  /** Converts at most `Resampler::block_max` samples (-1 to 1); `out` holds at least `out_max(count)`. Returns how many
   * were made. */
  size_t convert(const float* in, size_t count, int16_t* out);
  /** Ends the sound: writes the outputs that waited for inputs after them. `out` holds at least `flush_max()`. Returns
   * how many there were. */
  size_t flush(int16_t* out);
  size_t flush_max() const { return resampler_.out_max(filter_->taps()); }

  static constexpr size_t made_max = 65'536;

 private:
  size_t begin(int16_t* out, size_t most);
  size_t put(const float* in, size_t count, int16_t* out, size_t most);
  uint64_t length() const;

  std::shared_ptr<const ResamplerFilter> filter_;
  Resampler resampler_;
  size_t reach_;  // how many inputs before and after its own time an output depends on
  bool begun_ = false;
  uint64_t given_ = 0;       // inputs
  uint64_t made_ = 0;        // outputs
  uint64_t discard_ = 0;     // outputs of what lies before the sound, to be left out
  std::vector<float> edge_;  // the first inputs until it has begun, then the last ones
  std::vector<float> real_;  // outputs of one block
};

}  // namespace sidetone
