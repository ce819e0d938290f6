#include "plane/audio/converter.h"

#include <algorithm>
#include <cstdint>

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

Converter::Converter(std::shared_ptr<const ResamplerFilter> filter)
    : filter_(std::move(filter)),
      resampler_(*filter_),
      reach_(static_cast<size_t>(filter_->delay_parts() / filter_->up())) {}

/** Fills the filter with what it is to believe of the time before, and converts the inputs that are held. */
size_t Converter::begin(int16_t* out, size_t most) {
  // So many zeros come first that an output falls on the first input exactly.
  const uint64_t up = filter_->up();
  const uint64_t down = filter_->down();
  uint64_t parts = filter_->delay_parts() + reach_ * up;
  uint64_t zeros = 0;
  for (; parts % down != 0; parts += up) zeros++;
  discard_ = parts / down;
  begun_ = true;
  static constexpr float silence[Resampler::block_max] = {};
  for (; zeros > Resampler::block_max; zeros -= Resampler::block_max)
    (void)put(silence, Resampler::block_max, nullptr, 0);
  (void)put(silence, static_cast<size_t>(zeros), nullptr, 0);
  std::vector<float> before(reach_);
  for (size_t back = 1; back <= reach_; back++)
    before[reach_ - back] = 2 * edge_.front() - edge_[std::min(back, edge_.size() - 1)];
  (void)put(before.data(), reach_, nullptr, 0);
  return put(edge_.data(), edge_.size(), out, most);
}

/** Converts inputs; writes at most `most` outputs. */
size_t Converter::put(const float* in, size_t count, int16_t* out, size_t most) {
  size_t made = 0;
  for (size_t at = 0; at < count; at += Resampler::block_max) {
    const size_t block = std::min(count - at, Resampler::block_max);
    if (real_.size() < out_max(block)) real_.resize(out_max(block));
    const size_t all = resampler_.process(in + at, block, real_.data());
    const size_t left_out = static_cast<size_t>(std::min<uint64_t>(discard_, all));
    discard_ -= left_out;
    const size_t kept = std::min(all - left_out, most - made);
    pcm_of(real_.data() + left_out, 32768.0f, kept, out + made);
    made += kept;
  }
  made_ += made;
  return made;
}

size_t Converter::convert(const float* in, size_t count, int16_t* out) {
  edge_.insert(edge_.end(), in, in + count);
  given_ += count;
  if (!begun_ && edge_.size() <= reach_) return 0;
  const size_t made = begun_ ? put(in, count, out, SIZE_MAX) : begin(out, SIZE_MAX);
  if (edge_.size() > reach_ + 1) edge_.erase(edge_.begin(), edge_.end() - static_cast<std::ptrdiff_t>(reach_ + 1));
  return made;
}

/** The outputs there are of all inputs so far. */
uint64_t Converter::length() const {
  return (2 * given_ * filter_->up() + filter_->down()) / (2 * uint64_t{filter_->down()});
}

size_t Converter::flush(int16_t* out) {
  if (given_ == 0) return 0;
  const uint64_t wanted = length();
  size_t made = begun_ ? 0 : begin(out, static_cast<size_t>(wanted));
  for (size_t after = 1; made_ < wanted; after++) {
    const float next = 2 * edge_.back() - edge_[edge_.size() - 1 - std::min(after, edge_.size() - 1)];
    made += put(&next, 1, out + made, static_cast<size_t>(wanted - made_));
  }
  return made;
}

}  // namespace sidetone
