// A track is one sound on its way out: a queue of PCM that script feeds about two seconds ahead. It is read at the rate
// that the leg or room has now.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/resampler/resampler.h"

namespace sidetone {

class Track {
 public:
  Track() = default;
  Track(uint32_t playback, uint32_t rate_hz, int32_t volume_percent);

  uint32_t playback() const { return playback_; }
  bool active() const { return playback_ != 0; }
  uint32_t rate_hz() const { return rate_hz_; }
  int32_t volume() const { return volume_percent_; }
  void set_volume(int32_t volume_percent);

  /** Queues samples. False when nothing more was to come, or the queue is full (`queue_max_ms`). */
  bool feed(const int16_t* pcm, size_t count);
  /** Ends the feeding: the track ends when its queue has been taken. */
  void finish() { finished_ = true; }
  bool finished() const { return finished_; }
  /** Whether all that was fed has been taken, and nothing more will come. */
  bool ended() const { return active() && finished_ && head_ == queue_.size(); }
  /** Whether script should feed now: once each time the queue falls below `low_water_ms`. */
  bool hungry();
  uint32_t queued_ms() const { return static_cast<uint32_t>((queue_.size() - head_) * 1000 / rate_hz_); }
  uint32_t fed() const { return fed_; }
  /** Samples that have left the queue: how far the sound has been heard. */
  uint32_t taken() const { return taken_; }

  /** Reads at most `count` samples at `rate_hz`, volume applied; returns how many there were. */
  size_t read(int16_t* out, size_t count, uint32_t rate_hz);
  /** Reads what comes next and leaves it where it is. */
  size_t peek(int16_t* out, size_t count, uint32_t rate_hz);

  static constexpr uint32_t queue_max_ms = 5000;
  static constexpr uint32_t low_water_ms = 1000;

 private:
  size_t take(int16_t* out, size_t count);
  void convert(size_t count, uint32_t rate_hz);

  uint32_t playback_ = 0;
  uint32_t rate_hz_ = 8000;
  int32_t volume_percent_ = 100;
  bool finished_ = false;
  bool asked_ = true;
  std::vector<int16_t> queue_;
  size_t head_ = 0;
  uint32_t fed_ = 0;
  uint32_t taken_ = 0;
  // Only where the rate changed after the playback began.
  uint32_t converted_from_ = 0;
  uint32_t converted_to_ = 0;
  std::unique_ptr<ResamplerFilter> filter_;
  std::unique_ptr<Resampler> resampler_;
  std::vector<float> surplus_;
};

}  // namespace sidetone
