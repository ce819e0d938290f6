// A track is one sound on its way out: a queue of PCM that script feeds some seconds ahead. It is read at the rate
// that the leg or room has now; where that changes in the middle, the sound goes on at the sample where it was. A
// change of volume takes 5 ms.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plane/audio/converter.h"
#include "plane/now.h"

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
  bool ended() const { return active() && finished_ && all_read(); }
  /** Whether script should feed now: once each time the queue falls below `low_water_ms`. Tracks that can wait ask in
   * the same ticks, one in `asking_us`, so that script turns to many of them at once. */
  bool hungry(const Now& now);
  uint32_t queued_ms() const { return static_cast<uint32_t>((queue_.size() - head_) * 1000 / rate_hz_); }
  uint32_t fed() const { return fed_; }
  /** Whether any of it has been read. */
  bool heard() const { return heard_; }
  /** Samples that have left the queue: how far the sound has been heard. */
  uint32_t taken() const { return taken_; }

  /** Reads at most `count` samples at `rate_hz`, volume applied; returns how many there were. */
  size_t read(int16_t* out, size_t count, uint32_t rate_hz);
  /** Reads what comes next and leaves it where it is. */
  size_t peek(int16_t* out, size_t count, uint32_t rate_hz);

  static constexpr uint32_t queue_max_ms = 5000;
  static constexpr uint32_t low_water_ms = 1000;
  /** Below this a track asks in any tick. */
  static constexpr uint32_t urgent_ms = 500;
  static constexpr int64_t asking_us = 200'000;

 private:
  size_t take(int16_t* out, size_t count);
  size_t next(int16_t* out, size_t count, uint32_t rate_hz);
  void turn(uint32_t rate_hz);
  void convert(size_t count);
  bool all_read() const { return head_ == queue_.size() && surplus_.empty() && (!converter_ || flushed_); }
  size_t history() const { return static_cast<size_t>(rate_hz_) * history_ms / 1000; }

  /** What stays of the queue when it has been taken. A converted sound has taken up to 23 ms more than was heard, which
   * it gives back when the rate changes. */
  static constexpr uint32_t history_ms = 40;

  uint32_t playback_ = 0;
  uint32_t rate_hz_ = 8000;
  int32_t volume_percent_ = 100;
  int32_t gain_ = 0;  // of the last sample that was read
  bool heard_ = false;
  bool finished_ = false;
  bool asked_ = true;
  std::vector<int16_t> queue_;
  size_t head_ = 0;
  uint32_t fed_ = 0;
  uint32_t taken_ = 0;
  // These are set only while the track is read at another rate than its own.
  uint32_t read_hz_ = 0;
  std::unique_ptr<Converter> converter_;
  bool flushed_ = false;
  uint32_t converted_from_ = 0;  // the place of the first sample that was converted, counted as `taken_`
  uint64_t converted_ = 0;       // samples read since then, at `read_hz_`
  std::vector<int16_t> surplus_;
};

}  // namespace sidetone
