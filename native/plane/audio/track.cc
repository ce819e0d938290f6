#include "plane/audio/track.h"

#include <algorithm>
#include <cstring>

#include "kernel/mix/mix.h"
#include "kernel/mix/sample_format.h"

namespace sidetone {
namespace {

/** A change of volume takes so much of a second: 5 ms. */
constexpr uint32_t ramp_divisor = 200;

}  // namespace

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
  if (head_ > history()) {
    const size_t kept = held + history();
    std::memmove(queue_.data(), queue_.data() + (queue_.size() - kept), kept * sizeof(int16_t));
    queue_.resize(kept);
    head_ = history();
  }
  queue_.insert(queue_.end(), pcm, pcm + count);
  fed_ += static_cast<uint32_t>(count);
  asked_ = false;
  return true;
}

bool Track::hungry(const Now& now) {
  if (!active() || finished_ || asked_ || queued_ms() >= low_water_ms) return false;
  if (queued_ms() >= urgent_ms && now.us % asking_us >= tick_us) return false;
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

/** Begins to read at another rate, at the place that was heard last. */
void Track::turn(uint32_t rate_hz) {
  if (converter_) {
    // The last sample of the other rate may lie a little beyond the last of its own.
    const uint32_t heard = static_cast<uint32_t>(converted_ * rate_hz_ / read_hz_);
    const int32_t ahead = static_cast<int32_t>(taken_ - converted_from_ - heard);
    const size_t back = std::min(static_cast<size_t>(std::max(ahead, 0)), head_);
    head_ -= back;
    taken_ -= static_cast<uint32_t>(back);
    surplus_.clear();
    converter_.reset();
  }
  read_hz_ = rate_hz;
  if (rate_hz == rate_hz_) return;
  converter_ = std::make_unique<Converter>(std::make_shared<const ResamplerFilter>(rate_hz_, rate_hz));
  converted_from_ = taken_;
  converted_ = 0;
  flushed_ = false;
}

/** Fills `surplus_` up to `count` samples, as far as the queue goes. */
void Track::convert(size_t count) {
  while (surplus_.size() < count) {
    int16_t pcm[160];
    float real[160];
    const size_t part = take(pcm, 160);
    if (part == 0 && (!finished_ || flushed_)) break;
    const size_t before = surplus_.size();
    surplus_.resize(before + (part == 0 ? converter_->flush_max() : converter_->out_max(part)));
    if (part == 0) {
      flushed_ = true;
      surplus_.resize(before + converter_->flush(surplus_.data() + before));
      break;
    }
    float_of(pcm, part, real);
    for (size_t i = 0; i < part; i++) real[i] /= 32768.0f;
    surplus_.resize(before + converter_->convert(real, part, surplus_.data() + before));
  }
}

/** Gives the next samples at a rate, at the volume that they were fed at, and leaves them where they are. */
size_t Track::next(int16_t* out, size_t count, uint32_t rate_hz) {
  if (rate_hz != read_hz_) turn(rate_hz);
  if (converter_) convert(count);
  const int16_t* from = converter_ ? surplus_.data() : queue_.data() + head_;
  const size_t there = converter_ ? surplus_.size() : queue_.size() - head_;
  const size_t got = there < count ? there : count;
  if (got > 0) std::memcpy(out, from, got * sizeof(int16_t));
  return got;
}

size_t Track::read(int16_t* out, size_t count, uint32_t rate_hz) {
  const size_t got = next(out, count, rate_hz);
  if (got == 0) return 0;
  if (converter_) {
    surplus_.erase(surplus_.begin(), surplus_.begin() + static_cast<std::ptrdiff_t>(got));
    converted_ += got;
  } else {
    head_ += got;
    taken_ += static_cast<uint32_t>(got);
  }
  const int32_t goal = gain_of(volume_percent_);
  mix_gain(out, got, heard_ ? gain_ : goal, goal, rate_hz / ramp_divisor);
  gain_ = goal;
  heard_ = true;
  return got;
}

size_t Track::peek(int16_t* out, size_t count, uint32_t rate_hz) {
  const size_t got = next(out, count, rate_hz);
  const int32_t goal = gain_of(volume_percent_);
  mix_gain(out, got, heard_ ? gain_ : goal, goal, rate_hz / ramp_divisor);
  return got;
}

}  // namespace sidetone
