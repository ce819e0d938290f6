#include "plane/participant.h"

#include "kernel/mix.h"
#include "plane/room.h"

namespace sidetone {

void Participant::sit(Seat* seat) {
  seat_ = seat;
  look();
}

void Participant::listen(Listener* listener) {
  listener_ = listener;
  look();
}

void Participant::detect_tones(bool on) {
  tones_ = on;
  if (!on) detector_.reset();
  look();
}

void Participant::look() {
  const bool now = seat_ != nullptr || listener_ != nullptr || tones_;
  if (now == wanted_) return;
  wanted_ = now;
  if (!now) said_.reset();
  attention(now);
}

int16_t* Participant::said() {
  if (!said_) said_ = std::make_unique<int16_t[]>(said_max_);
  return said_.get();
}

void Participant::heard(size_t count, bool heard, const Now& now, Notices& notices) {
  if (tones_) {
    const uint32_t hz = rate_hz();
    if ((hz == 8000 || hz == 16000) && (!detector_ || detector_hz_ != hz)) detector_ = std::make_unique<ToneDetector>(hz);
    detector_hz_ = hz;
    ToneDetector::Key key;
    if (detector_ && count * 50 == hz && detector_->process(said_.get(), count, key)) tone(key, now, notices);
  }
  if (listener_ != nullptr) listener_->hear(said_.get(), count, rate_hz(), heard);
  if (seat_ != nullptr) seat_->room->contribute(*seat_, said_.get(), count, heard, notices);
}

void Participant::tone(const ToneDetector::Key& key, const Now&, Notices& notices) {
  notices.push_back({NoticeKind::digit, id_, static_cast<uint32_t>(key.key), key.duration_ms, {1, 0, 0, 0}});
}

bool Participant::hears(int16_t* out, size_t count, Notices& notices) {
  bool voiced = seat_ != nullptr && seat_->room->hear(*seat_, out);
  if (player_.audible()) {
    if (voiced) {
      int16_t own[frame_max];
      if (player_.frame(own, count, rate_hz())) mix_over(out, own, count);
    } else {
      voiced = player_.frame(out, count, rate_hz());
    }
    player_.progress(id_, notices);
  }
  return voiced;
}

bool Participant::hears_room_only() const { return seat_ != nullptr && !player_.audible() && seat_->room->hears_whole(*seat_); }

void Participant::settle(Notices& notices) {
  if (seat_ != nullptr) seat_->room->settle(*seat_, notices);
}

}  // namespace sidetone
