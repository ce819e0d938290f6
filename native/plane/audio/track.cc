#include "plane/audio/track.h"

#include <cstring>

#include "kernel/mix/mix.h"
#include "kernel/mix/sample_format.h"

namespace sidetone {

Track::Track(uint32_t playback, uint32_t rate_hz, int32_t volume_percent) : playback_(playback), rate_hz_(rate_hz) {
  set_volume(volume_percent);
}

void Track::set_volume(int32_t volume_percent) {
  volume_percent_ = volume_percent < 0 ? 0 : volume_percent > 200 ? 200 : volume_percent;
}

bool Track::feed(const int16_t* pcm, size_t count) {
  if (!active() || finished_) return false;
  const size_t held = queue_.size() - head_;
  if (held + count > static_cast<size_t>(rate_hz_) * queue_max_ms / 1000) return false;
  if (head_ > 0) {
    std::memmove(queue_.data(), queue_.data() + head_, held * sizeof(int16_t));
    queue_.resize(held);
    head_ = 0;
  }
  queue_.insert(queue_.end(), pcm, pcm + count);
  fed_ += static_cast<uint32_t>(count);
  asked_ = false;
  return true;
}

bool Track::hungry() {
  if (!active() || finished_ || asked_ || queued_ms() >= low_water_ms) return false;
  asked_ = true;
  return true;
}

size_t Track::take(int16_t* out, size_t count) {
  const size_t held = queue_.size() - head_;
  const size_t got = held < count ? held : count;
  if (got > 0) std::memcpy(out, queue_.data() + head_, got * sizeof(int16_t));
  head_ += got;
  taken_ += static_cast<uint32_t>(got);
  return got;
}

/** Fills `surplus_` up to `count` samples at `rate_hz`, as far as the queue goes. */
void Track::convert(size_t count, uint32_t rate_hz) {
  if (converted_from_ != rate_hz_ || converted_to_ != rate_hz) {
    resampler_.reset();
    filter_ = std::make_unique<ResamplerFilter>(rate_hz_, rate_hz);
    resampler_ = std::make_unique<Resampler>(*filter_);
    surplus_.clear();
    converted_from_ = rate_hz_;
    converted_to_ = rate_hz;
  }
  while (surplus_.size() < count) {
    int16_t pcm[160];
    float real[160];
    const size_t part = take(pcm, 160);
    if (part == 0) break;
    float_of(pcm, part, real);
    const size_t before = surplus_.size();
    surplus_.resize(before + resampler_->out_max(part));
    surplus_.resize(before + resampler_->process(real, part, surplus_.data() + before));
  }
}

size_t Track::read(int16_t* out, size_t count, uint32_t rate_hz) {
  size_t got = 0;
  if (rate_hz == rate_hz_) {
    got = take(out, count);
  } else {
    convert(count, rate_hz);
    got = surplus_.size() < count ? surplus_.size() : count;
    pcm_of(surplus_.data(), 1, got, out);
    surplus_.erase(surplus_.begin(), surplus_.begin() + static_cast<std::ptrdiff_t>(got));
  }
  mix_volume(out, got, volume_percent_);
  return got;
}

size_t Track::peek(int16_t* out, size_t count, uint32_t rate_hz) {
  size_t got = 0;
  if (rate_hz == rate_hz_) {
    const size_t held = queue_.size() - head_;
    got = held < count ? held : count;
    if (got > 0) std::memcpy(out, queue_.data() + head_, got * sizeof(int16_t));
  } else {
    convert(count, rate_hz);
    got = surplus_.size() < count ? surplus_.size() : count;
    pcm_of(surplus_.data(), 1, got, out);
  }
  mix_volume(out, got, volume_percent_);
  return got;
}

}  // namespace sidetone
