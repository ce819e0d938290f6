#include "plane/leg/playout.h"

#include <algorithm>
#include <cstring>

namespace sidetone {
namespace {

constexpr size_t lag_min = 40;       // 200 Hz to 5 ms at 8 kHz: the pitch of speech
constexpr size_t lag_max = 120;      // 66 Hz
constexpr size_t compared = 160;     // 20 ms
constexpr int16_t quiet_most = 400;  // 38 dB below full scale: no more than a line's noise
constexpr uint32_t search_frames = 16;
constexpr size_t much_frames = 3;

inline int16_t blend(int16_t from, int16_t to, size_t at, size_t length) {
  const int32_t weight = static_cast<int32_t>(at * 256 / length);
  return static_cast<int16_t>((from * (256 - weight) + to * weight) >> 8);
}

}  // namespace

void Playout::restart(Codec codec) {
  const bool was_heard = voiced_;
  const bool goes_on = codec == codec_ || (has_octets(codec) && has_octets(codec_));
  if (codec_rate_hz(codec) != codec_rate_hz(codec_) || !goes_on) {
    *this = Playout(codec);
  } else {
    codec_ = codec;
    decoder_.reset();
    if (packets_) packets_->begin_anew();
    jitter_ = JitterBuffer();
    met_ = false;
  }
  if (was_heard && lost_frames_ == 0 && (goes_on || has_octets(codec))) begin_invention();
}

/** What follows is invented, after the sound that was heard last. */
void Playout::begin_invention() {
  lost_frames_ = 1;
  if (conceals_itself()) return;
  if (!concealment_) concealment_ = std::make_unique<Concealment>();
  concealment_->begin(history(), codec_rate_hz(codec_));
}

void Playout::remember(const int16_t* pcm, size_t count) {
  if (history_end_ + count > store_room()) {
    const size_t kept = history_units * scale();
    std::memmove(store(), history() - kept, kept * sizeof(int16_t));
    history_end_ = kept;
  }
  std::memcpy(store() + history_end_, pcm, count * sizeof(int16_t));
  history_end_ += count;
}

/** The distance at which the sound before `end` looks most like itself: least mean difference, sampled every second
 * point. */
size_t Playout::pitch_lag(const int16_t* end) const {
  const size_t k = scale();
  const int16_t* at = end - compared * k;
  size_t best = lag_min * k;
  int64_t least = -1;
  for (size_t lag = lag_min * k; lag <= lag_max * k; lag += k) {
    const int16_t* earlier = at - lag;
    int64_t difference = 0;
    for (size_t i = 0; i < compared * k; i += 2) {
      const int32_t d = at[i] - earlier[i];
      difference += d < 0 ? -d : d;
    }
    if (least < 0 || difference < least) {
      least = difference;
      best = lag;
    }
  }
  return best;
}

/** Real sound, whose octets began at unit `first`. False when it cannot be decoded after all. */
bool Playout::decode(uint32_t first, const uint8_t* octets, int16_t* out, size_t units) {
  if (!packets_) decoder_.decode(codec_, octets, out, units);
  else if (!packets_->decode(first, octets, out, units)) return false;
  voiced_ = true;
  if (lost_frames_ > 0) {
    if (!conceals_itself() && !met_) lead_back(out, units * scale());
    lost_frames_ = 0;
  }
  remember(out, units * scale());
  return true;
}

void Playout::append_decoded(uint32_t first, const uint8_t* octets, size_t units) {
  if (decode(first, octets, queue() + queued_, units)) queued_ += units * scale();
  else append_lost(units);
}

/** Whether what is invented has become silence. */
bool Playout::faded() const { return conceals_itself() ? lost_frames_ > opus_frames() : concealment_->faded(); }

/** Lets Opus make sound up. The last of it falls to silence. */
void Playout::make_up_opus(int16_t* out, size_t units) {
  const auto count = static_cast<int32_t>(units * scale());
  if (faded()) {
    std::fill_n(out, count, int16_t{0});
    return;
  }
  packets_->conceal(units, out);
  if (lost_frames_ < opus_frames()) return;
  for (int32_t i = 0; i < count; i++) out[i] = static_cast<int16_t>(out[i] * (count - 1 - i) / count);
}

/** Invents sound that goes on where the real sound ended. */
void Playout::append_made_up(size_t units) {
  const size_t count = units * scale();
  if (lost_frames_ == 0) begin_invention();
  else lost_frames_++;
  if (!conceals_itself()) concealment_->make(queue() + queued_, count);
  else make_up_opus(queue() + queued_, units);
  queued_ += count;
  met_ = false;
}

/** Decodes the next frame and leaves it where it is. False when it is not there. */
bool Playout::decode_next(int16_t* out) {
  uint8_t octets[frame_units];
  if (!jitter_.peek(octets, frame_units)) return false;
  if (packets_) return packets_->decode(jitter_.next(), octets, out, frame_units);
  Decoder decoder = decoder_;  // a copy, for the packet is decoded again in its turn
  decoder.decode(codec_, octets, out, frame_units);
  return true;
}

/** Invents sound for what is lost before the next unit, from both sides where what follows lies in the jitter buffer
 * already. */
void Playout::append_lost(size_t units) {
  const size_t count = units * scale();
  if (conceals_itself() && voiced_ && packets_->recover(jitter_, units, queue() + queued_)) {
    lost_frames_++;
    queued_ += count;
    return;
  }
  append_made_up(units);
  int16_t after[Concealment::frame_max];
  if (conceals_itself() || concealment_->faded() || !decode_next(after)) return;
  Concealment::meet(queue() + queued_ - count, count, after, samples(), codec_rate_hz(codec_));
  met_ = true;
}

/** Takes the next frame, of which not all is there: packets may be shorter or longer, and lie across frames. */
void Playout::append_parts() {
  concealed_++;
  for (size_t at = 0; at < frame_units;) {
    const size_t lost = jitter_.run(frame_units - at, false);
    if (lost > 0) {
      jitter_.skip(lost);
      append_lost(lost);
      at += lost;
      continue;
    }
    uint8_t octets[frame_units];
    const size_t units = jitter_.run(frame_units - at, true);
    const uint32_t first = jitter_.next();
    (void)jitter_.take(octets, units);
    append_decoded(first, octets, units);
    at += units;
  }
}

/** Leads from the invented sound back to the real one. */
void Playout::lead_back(int16_t* pcm, size_t count) {
  int16_t invented[Concealment::lead_back_ms * Concealment::rate_max_khz];
  const size_t length = std::min<size_t>(Concealment::lead_back_ms * codec_rate_hz(codec_) / 1000, count);
  concealment_->make(invented, length);
  for (size_t i = 0; i < length; i++) pcm[i] = blend(invented[i], pcm[i], i, length);
}

/**
 * Removes at most `excess` samples of the queue's newest sound, cross-fading over 5 ms: of quiet all, else (`search`)
 * one pitch period, or as many as there are in 15 ms where there is much to remove.
 */
void Playout::shorten(size_t excess, bool search) {
  const size_t k = scale();
  const size_t fade = lag_min * k;
  if (excess == 0 || queued_ <= fade) return;
  int16_t* at = queue();
  int16_t most = 0;
  for (size_t i = 0; i < queued_; i++) most = std::max(most, static_cast<int16_t>(at[i] < 0 ? -(at[i] + 1) : at[i]));
  size_t lag;
  if (most <= quiet_most) {
    lag = std::min({excess, samples(), queued_ - fade});
  } else {
    if (!search || excess < lag_min * k) return;
    lag = pitch_lag(history());
    if (lag > excess || queued_ < lag + fade) return;
    if (excess >= much_frames * samples()) lag *= std::min(lag_max * k, queued_ - fade) / lag;
  }
  const size_t start = queued_ - lag - fade;
  for (size_t i = 0; i < fade; i++) at[start + i] = blend(at[start + i], at[start + lag + i], i, fade);
  std::memmove(at + start + fade, at + start + lag + fade, (queued_ - start - lag - fade) * sizeof(int16_t));
  queued_ -= lag;
}

/** Says the last pitch period of the queue (one frame or more) twice. The end of the first saying fades into what led
 * to its beginning, so that the second one follows without a step. */
void Playout::stretch() {
  const size_t k = scale();
  const size_t lag = pitch_lag(history());
  const size_t fade = lag_min * k;
  if (queued_ < lag + fade || queued_ + lag > queue_room()) return;
  int16_t* end = queue() + queued_;
  std::memcpy(end, end - lag, lag * sizeof(int16_t));
  int16_t* last = end - fade;
  for (size_t i = 0; i < fade; i++) last[i] = blend(last[i], *(last + i - lag), i, fade);
  queued_ += lag;
}

size_t Playout::frame(int64_t now_us, int16_t* out, bool& heard) {
  const size_t count = samples();
  const size_t k = scale();
  const bool was_silent = lost_frames_ > 0 && faded();
  frames_++;
  uint8_t octets[frame_units];
  const JitterBuffer::Plan plan = jitter_.plan(now_us, queued_ > 0);
  delay_us_ = jitter_.slack_us(now_us) + static_cast<int64_t>(queued_ / k) * JitterBuffer::unit_us;
  if (queued_ == 0 && plan == JitterBuffer::Plan::normal) {  // nearly always
    const uint32_t first = jitter_.next();
    if (!jitter_.take(octets, frame_units)) {
      append_parts();
    } else if (decode(first, octets, out, frame_units)) {
      heard = true;
      return count;
    } else {
      concealed_++;
      append_lost(frame_units);
    }
  } else if (queued_ < count && plan == JitterBuffer::Plan::wait) {
    if (!voiced_) {  // nothing heard yet
      heard = false;
      std::memset(out, 0, count * sizeof(int16_t));
      return count;
    }
    concealed_++;
    append_made_up(frame_units);
  } else if (plan == JitterBuffer::Plan::accelerate && jitter_.has(frame_units * (queued_ < count ? 2 : 1)) &&
             queued_ + 2 * count <= queue_room()) {
    const size_t spare = jitter_.spare_units(now_us) * k + queued_;
    while (queued_ < 2 * count) {
      const uint32_t first = jitter_.next();
      (void)jitter_.take(octets, frame_units);
      append_decoded(first, octets, frame_units);
    }
    shorten(spare, true);
  } else if (queued_ < count) {
    const uint32_t first = jitter_.next();
    if (jitter_.take(octets, frame_units)) {
      append_decoded(first, octets, frame_units);
      if (plan == JitterBuffer::Plan::expand) stretch();
      else
        shorten(queued_ - count,
                frames_ % search_frames == 0);  // what a stretch before left over, once it is not missed
    } else {
      append_parts();
    }
  }
  heard = lost_frames_ == 0 || !was_silent;  // the frame in which it fades out is heard
  std::memcpy(out, queue(), count * sizeof(int16_t));
  queued_ -= count;
  std::memmove(queue(), queue() + count, queued_ * sizeof(int16_t));
  return count;
}

}  // namespace sidetone
