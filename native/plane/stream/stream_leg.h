// A stream leg has no socket. Its far end is script, which writes audio of any size and is given a frame every 20 ms.
// What was written is played at real time; the frame holds what a phone in its place would hear.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "plane/audio/rate.h"
#include "plane/participant.h"
#include "plane/stream/stream_inbox.h"

namespace sidetone {

enum class StreamEncoding : uint8_t { pcm = 0, mulaw = 1 };

struct StreamFormat {
  StreamEncoding encoding = StreamEncoding::pcm;
  uint32_t rate_hz = 8000;
  size_t unit() const { return encoding == StreamEncoding::pcm ? 2 : 1; }
};

/** The frames of a tick for script: records of leg, bytes passed by its inbox, bytes of the frame (32 bits each) and
 * the frame, padded to four. */
using StreamFrames = std::vector<uint8_t>;

class StreamLeg : public Participant {
 public:
  /** `to` is what script writes, `from` what it is given. The leg's own rate is the higher of the two. */
  StreamLeg(uint32_t id, std::shared_ptr<StreamInbox> inbox, const StreamFormat& to, const StreamFormat& from);

  uint32_t rate_hz() const override { return rate_table_hz[rate_]; }
  StreamLeg* stream() override { return this; }
  void take(const Now& now, Notices& notices) override;
  void give(const Now& now, Notices& notices) override;
  void skip(uint32_t frames) override { pause(frames); }
  /** Appends its frames to these from now on; they belong to the plane. */
  void deliver(StreamFrames* frames) { frames_ = frames; }

  /** An empty buffer is told as played out after this long. */
  static constexpr uint32_t played_after_ticks = 10;
  /** Frames that script has not fetched; past it they are lost, as to a far end that is away. */
  static constexpr size_t frames_max_bytes = 8 << 20;

 private:
  void attention(bool) override {}
  bool recordable(const Now& now, bool hears_something) const override;

  std::shared_ptr<StreamInbox> inbox_;
  const StreamFormat to_;
  const StreamFormat from_;
  const size_t to_rate_;
  const size_t from_rate_;
  const size_t rate_;
  std::unique_ptr<RateBridge> up_;
  std::unique_ptr<RateBridge> down_;
  StreamFrames* frames_ = nullptr;
  bool waited_ = false;
  uint32_t empty_ticks_ = 0;
  uint64_t played_samples_ = 0;  // since the buffer was last told as played out
  int16_t last_ = 0;
  bool cut_ = false;  // the sound stopped in the middle of a wave, and has not gone on yet
  bool sounding_ = false;
};

}  // namespace sidetone
