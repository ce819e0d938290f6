#include "plane/stream/stream_leg.h"

#include <cstring>

#include "kernel/codec/g711.h"

namespace sidetone {
namespace {

std::unique_ptr<RateBridge> bridge(size_t from, size_t to) {
  if (from == to) return nullptr;
  return std::make_unique<RateBridge>(std::make_shared<const ResamplerFilter>(rate_table_hz[from], rate_table_hz[to]),
                                      from, to);
}

}  // namespace

StreamLeg::StreamLeg(uint32_t id, std::shared_ptr<StreamInbox> inbox, const StreamFormat& to, const StreamFormat& from)
    : Participant(id, frame_max),
      inbox_(std::move(inbox)),
      to_(to),
      from_(from),
      to_rate_(rate_index(to.rate_hz)),
      from_rate_(rate_index(from.rate_hz)),
      rate_(to_rate_ > from_rate_ ? to_rate_ : from_rate_),
      up_(bridge(to_rate_, rate_)),
      down_(bridge(rate_, from_rate_)) {}

void StreamLeg::take(const Now& now, Notices& notices) {
  const size_t count = rate_samples(to_rate_);
  const size_t unit = to_.unit();
  uint8_t bytes[frame_max * 2];
  size_t got = 0;
  const size_t queued = inbox_->queued();
  // A piece of a frame that begins a sound waits one tick for the rest of it; one that ends it does not.
  if (queued >= count * unit || (queued >= unit && (waited_ || sounding_)))
    got = inbox_->take(bytes, count * unit, unit) / unit;
  waited_ = got == 0 && queued >= unit;

  int16_t pcm[frame_max];
  if (to_.encoding == StreamEncoding::mulaw) mulaw_decode(bytes, pcm, got);
  else std::memcpy(pcm, bytes, got * sizeof(int16_t));
  std::memset(pcm + got, 0, (count - got) * sizeof(int16_t));
  // 2.5 ms: where the sound stops in the middle of a wave, and where it goes on after that, nobody hears a step.
  const size_t ramp = count / 8;
  if (inbox_->was_cleared()) cut_ = cut_ || last_ != 0;
  if (got > 0 && cut_) {
    for (size_t i = 0; i < ramp && i < got; i++)
      pcm[i] = static_cast<int16_t>((last_ * static_cast<int32_t>(ramp - i) + pcm[i] * static_cast<int32_t>(i + 1)) /
                                    static_cast<int32_t>(ramp + 1));
    cut_ = false;
  }
  if (got < count) {
    const int16_t end = got > 0 ? pcm[got - 1] : last_;
    cut_ = cut_ || end != 0;
    for (size_t i = 0; i < ramp && got + i < count; i++)
      pcm[got + i] = static_cast<int16_t>(end * static_cast<int32_t>(ramp - i) / static_cast<int32_t>(ramp + 1));
  }
  const bool sounded = got > 0 || last_ != 0;
  last_ = pcm[count - 1];

  if (got > 0) {
    played_samples_ += got;
    empty_ticks_ = 0;
  } else if (played_samples_ > 0 && !waited_ && ++empty_ticks_ >= played_after_ticks) {
    notices.push_back({NoticeKind::stream_played, id(), static_cast<uint32_t>(played_samples_ * 1000 / to_.rate_hz)});
    played_samples_ = 0;
    empty_ticks_ = 0;
    cut_ = false;
  }
  sounding_ = got > 0;
  if (!wanted()) return;
  bool voiced = sounded;
  if (up_) {
    voiced = sounded || !up_->rung_out();
    up_->convert(pcm, said());
  } else {
    std::memcpy(said(), pcm, count * sizeof(int16_t));
  }
  heard(rate_samples(rate_), voiced, now, notices);
}

bool StreamLeg::recordable(const Now&, bool hears_something) const {
  return hears_something || sounding_ || played_samples_ > 0;
}

void StreamLeg::give(const Now& now, Notices& notices) {
  int16_t pcm[frame_max];
  int16_t made[frame_max];
  const int16_t* out = pcm;
  if (!hears(pcm, rate_samples(rate_), now, notices)) std::memset(pcm, 0, rate_samples(rate_) * sizeof(int16_t));
  if (down_) {
    down_->convert(pcm, made);
    out = made;
  }
  const size_t count = rate_samples(from_rate_);
  const uint32_t length = static_cast<uint32_t>(count * from_.unit());
  if (frames_ != nullptr && frames_->size() < frames_max_bytes) {
    const size_t at = frames_->size();
    const uint32_t header[3] = {id(), inbox_->passed(), length};
    frames_->resize(at + sizeof header + (length + 3) / 4 * 4);
    std::memcpy(frames_->data() + at, header, sizeof header);
    if (from_.encoding == StreamEncoding::mulaw) mulaw_encode(out, frames_->data() + at + sizeof header, count);
    else std::memcpy(frames_->data() + at + sizeof header, out, length);
  }
  settle(notices);
}

}  // namespace sidetone
