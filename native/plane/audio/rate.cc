#include "plane/audio/rate.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernel/mix/mix.h"
#include "kernel/mix/sample_format.h"

namespace sidetone {

RateBridge::RateBridge(std::shared_ptr<const ResamplerFilter> filter, size_t from, size_t to)
    : filter_(std::move(filter)), resampler_(*filter_), from_(from), to_(to) {}

void RateBridge::add(const int32_t* in, bool silent, int32_t* out) {
  if (silent && quiet_) return;
  float real[frame_max];
  float_of(in, rate_samples(from_), real);
  float made[frame_max + 4];
  add_rounded(made, carry(real, silent, made), out);
}

void RateBridge::convert(const int16_t* in, int16_t* out) {
  const size_t wanted = rate_samples(to_);
  const bool silent = mix_silent(in, rate_samples(from_));
  size_t got = 0;
  if (!silent || !quiet_) {
    float real[frame_max];
    float_of(in, rate_samples(from_), real);
    float made[frame_max + 4];
    got = carry(real, silent, made);
    pcm_of(made, 1, got, out);
  }
  std::memset(out + got, 0, (wanted - got) * sizeof(int16_t));
}

/** Resamples one frame; returns how many samples of the next frame there are. */
size_t RateBridge::carry(const float* in, bool silent, float* out) {
  const size_t count = rate_samples(from_);
  const size_t got = resampler_.process(in, count, out);
  quiet_ = silent && count >= filter_->taps();  // one frame of zeros fills the filter's memory
  return std::min(got, rate_samples(to_));
}

}  // namespace sidetone
