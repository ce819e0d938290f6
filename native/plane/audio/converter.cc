#include "plane/audio/converter.h"

#include <vector>

#include "kernel/mix/sample_format.h"

namespace sidetone {

std::shared_ptr<const ResamplerFilter> FilterBank::get(uint32_t in_hz, uint32_t out_hz) {
  const auto key = std::make_pair(in_hz, out_hz);
  const auto found = filters_.find(key);
  if (found != filters_.end()) return found->second;
  auto filter = std::make_shared<const ResamplerFilter>(in_hz, out_hz);
  if (filters_.size() >= filters_max || bytes_ + filter->bytes() > bytes_max) {  // streams keep theirs
    filters_.clear();
    bytes_ = 0;
  }
  bytes_ += filter->bytes();
  filters_.emplace(key, filter);
  return filter;
}

size_t Converter::round(const float* in, size_t count, int16_t* out) {
  pcm_of(in, 32768.0f, count, out);
  return count;
}

size_t Converter::convert(const float* in, size_t count, int16_t* out) {
  std::vector<float> made(out_max(count));
  return round(made.data(), resampler_.process(in, count, made.data()), out);
}

size_t Converter::flush(int16_t* out) {
  std::vector<float> made(flush_max());
  return round(made.data(), resampler_.flush(made.data()), out);
}

}  // namespace sidetone
