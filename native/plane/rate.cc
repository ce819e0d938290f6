#include "plane/rate.h"

#include <cmath>
#include <cstring>
#include <utility>

namespace sidetone {

RateBridge::RateBridge(std::shared_ptr<const ResamplerFilter> filter, size_t from, size_t to)
    : filter_(std::move(filter)), resampler_(*filter_), from_(from), to_(to) {}

void RateBridge::add(const int32_t* in, bool silent, int32_t* out) {
  if (silent && quiet_) return;
  float real[frame_max];
  float made[frame_max + 4];
  const size_t count = rate_samples(from_);
  for (size_t i = 0; i < count; i++) real[i] = static_cast<float>(in[i]);
  const size_t got = resampler_.process(real, count, made);
  const size_t wanted = rate_samples(to_);
  for (size_t i = 0; i < got && i < wanted; i++) out[i] += static_cast<int32_t>(std::lrintf(made[i]));
  quiet_ = silent && count >= filter_->taps();  // one frame of zeros fills the filter's memory
}

void RateBridge::convert(const int16_t* in, int16_t* out) {
  int32_t wide[frame_max];
  int32_t made[frame_max] = {};
  int32_t any = 0;
  const size_t count = rate_samples(from_);
  for (size_t i = 0; i < count; i++) {
    wide[i] = in[i];
    any |= in[i];
  }
  add(wide, any == 0, made);
  for (size_t i = 0; i < rate_samples(to_); i++) {
    out[i] = static_cast<int16_t>(made[i] > 32767 ? 32767 : made[i] < -32768 ? -32768 : made[i]);
  }
}

}  // namespace sidetone
