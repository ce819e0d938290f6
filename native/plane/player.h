// The playback of one leg: a queue of PCM that script feeds about two seconds ahead. One frame a tick is taken from it; when script is late
// the leg sends silence and the playback goes on after it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/resampler.h"

namespace sidetone {

class Player {
 public:
  /** Begins a playback at `rate_hz`, instead of whatever there was. */
  void play(uint32_t playback, uint32_t rate_hz, int32_t volume_percent);
  /** Queues samples. False where the playback is not this one, or its queue is full (`queue_max_ms`). */
  bool feed(uint32_t playback, const int16_t* pcm, size_t count);
  /** Nothing more will be fed: the playback ends when its queue has been sent. */
  void finish(uint32_t playback);
  /** Forgets the playback and its queue. */
  void clear();

  uint32_t playback() const { return playback_; }
  bool active() const { return playback_ != 0; }
  bool started() const { return started_; }
  /** All that was fed has been taken, and nothing more will come. */
  bool ended() const { return active() && finished_ && head_ == queue_.size(); }
  /** Whether script should feed now: once each time the queue falls below `low_water_ms`. */
  bool hungry();
  uint32_t queued_ms() const;
  /** Samples taken by `feed` since `play`. */
  uint32_t fed() const { return fed_; }

  /** Fills one frame at `rate_hz`, padded with silence. False where the queue gave nothing. */
  bool frame(int16_t* out, size_t count, uint32_t rate_hz);

  static constexpr uint32_t queue_max_ms = 5000;
  static constexpr uint32_t low_water_ms = 1000;

 private:
  size_t take(int16_t* out, size_t count);

  uint32_t playback_ = 0;
  uint32_t rate_hz_ = 8000;
  int32_t volume_percent_ = 100;
  bool finished_ = false;
  bool started_ = false;
  bool asked_ = true;
  std::vector<int16_t> queue_;
  size_t head_ = 0;
  uint32_t fed_ = 0;
  // Only where the leg's codec changed its rate after the playback began.
  uint32_t converted_from_ = 0;
  uint32_t converted_to_ = 0;
  std::unique_ptr<ResamplerFilter> filter_;
  std::unique_ptr<Resampler> resampler_;
  std::vector<float> surplus_;
};

}  // namespace sidetone
