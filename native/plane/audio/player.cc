#include "plane/audio/player.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sidetone {
namespace {

constexpr size_t ramp_samples(uint32_t rate_hz) { return rate_hz / 200; }

void fade(int16_t* pcm, size_t count, size_t ramp, bool rising) {
  for (size_t i = 0; i < count && i < ramp; i++) {
    const int32_t weight = static_cast<int32_t>(rising ? i + 1 : ramp - i);
    pcm[i] = static_cast<int16_t>(pcm[i] * weight / static_cast<int32_t>(ramp + 1));
  }
}

}  // namespace

void Player::play(uint32_t playback, uint32_t rate_hz, int32_t volume_percent) {
  replace(Track(playback, rate_hz, volume_percent));
  paused_ = false;
}

/** Puts a track in the place of the newest one: behind what is heard, or at once where little or nothing of that is
 * left. */
void Player::replace(Track track) {
  if (waits()) {
    next_ = std::move(track);
  } else {
    leave();
    now_ = std::move(track);
    next_ = Track();
  }
  waited_frames_ = 0;
  starved_ms_ = 0;
}

bool Player::feed(uint32_t playback, const int16_t* pcm, size_t count) {
  return playback != 0 && playback == this->playback() && newest().feed(pcm, count);
}

void Player::finish(uint32_t playback) {
  if (playback != 0 && playback == this->playback()) newest().finish();
}

void Player::clear() {
  leave();
  now_ = Track();
  next_ = Track();
  paused_ = false;
}

bool Player::pause(uint32_t playback) {
  if (playback == 0 || playback != this->playback()) return false;
  leave();
  if (next_.active()) now_ = std::exchange(next_, Track());
  paused_ = true;
  return true;
}

bool Player::resume(uint32_t playback) {
  if (playback == 0 || playback != this->playback()) return false;
  paused_ = false;
  return true;
}

bool Player::seek(uint32_t playback, uint32_t& taken) {
  if (playback == 0 || playback != this->playback()) return false;
  const Track& before = newest();
  taken = before.taken();
  replace(Track(playback, before.rate_hz(), before.volume()));
  return true;
}

bool Player::set_volume(uint32_t playback, int32_t volume_percent) {
  if (playback == 0 || playback != this->playback()) return false;
  newest().set_volume(volume_percent);
  return true;
}

size_t Player::ramp() const {
  const size_t ramp = ramp_samples(heard_hz_);
  return ramp < ramp_max ? ramp : ramp_max;
}

/** The sound of now goes on for a ramp, falling; its place is not moved. Where it runs dry before, its last
 * sample goes on. A sound of which nothing is heard yet, or which is yet to rise again, leaves nothing but the ramp
 * that may be under way. */
void Player::leave() {
  if (paused_ || rise_ || !now_.heard()) return;
  const int16_t last = std::exchange(last_, int16_t{0});
  size_t count = now_.peek(tail_, ramp(), heard_hz_);
  const int16_t end = count > 0 ? tail_[count - 1] : last;
  if (end != 0 && !now_.finished()) {
    std::fill(tail_ + count, tail_ + ramp(), end);
    count = ramp();
  }
  if (count > 0) {
    fade(tail_, count, count, false);
    tail_count_ = count;
  }
  rise_ = rise_ || tail_count_ > 0;
}

void Player::change() {
  leave();
  now_ = std::exchange(next_, Track());
}

bool Player::next_ready(size_t count, uint32_t rate_hz) const {
  return next_.finished() || next_.queued_ms() >= count * 1000 / rate_hz || waited_frames_ >= wait_frames_max ||
         !waits();
}

void Player::progress(uint32_t id, const Now& now, Notices& notices) {
  if (!active()) return;
  const uint32_t number = playback();
  if (started() && told_ != number) {
    told_ = number;
    notices.push_back({NoticeKind::playback_started, id, number});
  }
  if (ended()) {
    clear();
    notices.push_back({NoticeKind::playback_ended, id, number});
  } else if (hungry(now)) {
    notices.push_back({NoticeKind::playback_hungry, id, number, queued_ms(), {fed(), starved_ms(), 0, 0}});
  }
}

/** Adds the end of what was left. */
void Player::add_tail(int16_t* out, size_t count) {
  const size_t tail = tail_count_ < count ? tail_count_ : count;
  for (size_t i = 0; i < tail; i++) {
    const int32_t sum = out[i] + tail_[i];
    out[i] = static_cast<int16_t>(sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum);
  }
  tail_count_ -= tail;  // a ramp of 48 kHz is longer than a frame of 8 kHz, which may have come meanwhile
  std::memmove(tail_, tail_ + tail, tail_count_ * sizeof(int16_t));
}

/** Lets the last sample fall where nothing is there after the first `got` of the frame; what comes next rises. Whether
 * there is anything to hear of it in this frame. */
bool Player::run_dry(int16_t* out, size_t got, size_t count) {
  const int16_t end = got > 0 ? out[got - 1] : last_;
  last_ = 0;
  rise_ = rise_ || now_.taken() > 0;
  if (end == 0) return false;
  int16_t fall[ramp_max];
  const size_t length = ramp();
  for (size_t i = 0; i < length; i++) fall[i] = end;
  fade(fall, length, length, false);
  const size_t here = count - got < length ? count - got : length;
  std::memcpy(out + got, fall, here * sizeof(int16_t));
  tail_count_ = length - here;
  std::memcpy(tail_, fall + here, tail_count_ * sizeof(int16_t));
  return true;
}

bool Player::frame(int16_t* out, size_t count, uint32_t rate_hz) {
  if (next_.active()) {
    if (next_ready(count, rate_hz)) {
      heard_hz_ = rate_hz;
      change();
    } else {
      waited_frames_++;
    }
  }
  size_t got = 0;
  const bool runs = now_.active() && !paused_;
  if (runs) {
    heard_hz_ = rate_hz;
    got = now_.read(out, count, rate_hz);
    if (got > 0) {
      if (rise_) fade(out, got, ramp_samples(rate_hz), true);
      rise_ = false;
      started_ = now_.playback();
    }
    if (started() && !now_.finished() && got < count)
      starved_ms_ += static_cast<uint32_t>((count - got) * 1000 / rate_hz);
  }
  std::memset(out + got, 0, (count - got) * sizeof(int16_t));
  bool voiced = got > 0 || tail_count_ > 0;
  add_tail(out, count);
  if (runs && got < count && !now_.finished()) voiced = run_dry(out, got, count) || voiced;
  else if (runs) last_ = out[count - 1];
  if (!now_.active()) rise_ = false;
  return voiced;
}

}  // namespace sidetone
