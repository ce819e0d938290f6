// The rates a plane mixes at, and the bridge that carries a sum from one to another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernel/resampler/resampler.h"

namespace sidetone {

constexpr size_t rates = 4;
constexpr uint32_t rate_table_hz[rates] = {8000, 16000, 24000, 48000};
/** 20 ms at the highest rate. */
constexpr size_t frame_max = 960;

/** Place of a rate in the table; one that is not there counts as the next higher. */
constexpr size_t rate_index(uint32_t hz) {
  size_t index = 0;
  while (index + 1 < rates && rate_table_hz[index] < hz) index++;
  return index;
}
constexpr size_t rate_samples(size_t index) { return rate_table_hz[index] / 50; }

/** Carries frames of 20 ms from one rate of the table to another. A frame in gives exactly a frame out. */
class RateBridge {
 public:
  RateBridge(std::shared_ptr<const ResamplerFilter> filter, size_t from, size_t to);
  /** Adds the converted frame to `out`. `silent`: the frame is all zero, which costs nothing once the filter has rung
   * out. */
  void add(const int32_t* in, bool silent, int32_t* out);
  /** Converts one frame, saturated. */
  void convert(const int16_t* in, int16_t* out);
  /** Whether the next silent frame would add nothing. */
  bool rung_out() const { return quiet_; }

 private:
  size_t carry(const float* in, bool silent, float* out);

  std::shared_ptr<const ResamplerFilter> filter_;
  Resampler resampler_;
  size_t from_;
  size_t to_;
  bool quiet_ = true;
};

}  // namespace sidetone
