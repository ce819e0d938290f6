#include "plane/audio/converter.h"

#include <vector>

#include "kernel/mix/sample_format.h"

namespace sidetone {

std::shared_ptr<const ResamplerFilter> FilterBank::get(uint32_t in_hz, uint32_t out_hz) {
  const uint32_t rounded = (in_hz + 12) / 25 * 25;
  const auto key = std::make_pair(rounded, out_hz);
  const auto found = filters_.find(key);
  if (found != filters_.end()) return found->second;
  if (filters_.size() >= filters_max) filters_.clear();  // streams keep theirs
  auto filter = std::make_shared<const ResamplerFilter>(rounded, out_hz);
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
