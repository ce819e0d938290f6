#include "plane/participant.h"

#include <cstring>
#include <utility>

#include "kernel/mix/level.h"
#include "kernel/mix/mix.h"
#include "plane/room/room.h"

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

void Participant::detect_answerer(uint32_t timeout_ms) {
  answerer_ = std::make_unique<AnswerDetector>(timeout_ms);
  look();
}

void Participant::judge(size_t count, bool heard, Notices& notices) {
  const AnswerDetector::Step step = answerer_->frame(said_.get(), count, heard);
  if (step.decided)
    notices.push_back({NoticeKind::answerer, id_, static_cast<uint32_t>(step.answerer), answerer_->clock_ms()});
  if (step.greeting_ended) notices.push_back({NoticeKind::greeting_ended, id_, step.beep ? 1u : 0u});
}

void Participant::look() {
  const bool now = seat_ != nullptr || listener_ != nullptr || tones_ || answerer_ || !recorders_.empty();
  if (now == wanted_) return;
  wanted_ = now;
  if (!now) said_.reset();
  attention(now);
}

void Participant::record(std::unique_ptr<Recorder> recorder) {
  recorders_.push_back(std::move(recorder));
  if (!taped_) taped_ = std::make_unique<int16_t[]>(said_max_);
  said_something_ = false;
  look();
}

Recorder* Participant::recorder(uint32_t id) {
  for (const auto& recorder : recorders_) {
    if (recorder->id() == id) return recorder.get();
  }
  return nullptr;
}

std::vector<std::unique_ptr<Recorder>> Participant::take_recorders() { return std::exchange(recorders_, {}); }

void Participant::pause(uint32_t frames) {
  for (const auto& recorder : recorders_) recorder->gap(frames);
}

/** Hands this tick to the recorders. `heard` is nullptr when the far end hears silence. */
void Participant::tape(const int16_t* heard, size_t count, const Now& now, Notices& notices) {
  const bool audio = recordable(now, heard != nullptr);
  bool listened = false;
  for (const auto& recorder : recorders_) listened = listened || recorder->listens();
  const float dbov = said_something_ && listened ? level_dbov(taped_.get(), count) : -127.0f;
  if (!said_something_) std::memset(taped_.get(), 0, count * sizeof(int16_t));
  if (heard != nullptr) mix_over(taped_.get(), heard, count);
  for (const auto& recorder : recorders_) recorder->take(taped_.get(), rate_index(rate_hz()), audio, dbov, notices);
  said_something_ = false;
}

void Participant::say_up_to(size_t samples) {
  if (samples <= said_max_) return;
  said_max_ = samples;
  said_.reset();
  if (taped_) taped_ = std::make_unique<int16_t[]>(said_max_);
  said_something_ = false;
}

int16_t* Participant::said() {
  if (!said_) said_ = std::make_unique<int16_t[]>(said_max_);
  return said_.get();
}

void Participant::heard(size_t count, bool heard, const Now& now, Notices& notices) {
  if (tones_) {
    const uint32_t hz = rate_hz();
    if (std::exchange(detector_hz_, hz) != hz) detector_.reset();  // also where there is none for the new rate
    if (!detector_ && (hz == 8000 || hz == 16000)) detector_ = std::make_unique<ToneDetector>(hz);
    ToneDetector::Key key;
    if (detector_ && count * 50 == hz && detector_->process(said_.get(), count, key)) tone(key, now, notices);
  }
  if (answerer_) judge(count, heard, notices);
  if (!recorders_.empty()) {
    said_something_ = heard;
    std::memcpy(taped_.get(), said_.get(), count * sizeof(int16_t));
  }
  if (listener_ != nullptr) listener_->hear(said_.get(), count, rate_hz(), heard);
  if (seat_ != nullptr) seat_->room->contribute(*seat_, said_.get(), count, heard, notices);
}

void Participant::tone(const ToneDetector::Key& key, const Now&, Notices& notices) {
  notices.push_back({NoticeKind::digit, id_, static_cast<uint32_t>(key.key), key.duration_ms, {1, 0, 0, 0}});
}

bool Participant::hears(int16_t* out, size_t count, const Now& now, Notices& notices) {
  bool voiced = seat_ != nullptr && seat_->room->hear(*seat_, out);
  if (player_.audible()) {
    voiced = over(player_, out, count, voiced);
    player_.progress(id_, now, notices);
  }
  if (!recorders_.empty()) tape(voiced ? out : nullptr, count, now, notices);
  Player* music = seat_ != nullptr ? seat_->room->music_for(*seat_) : nullptr;
  return music == nullptr ? voiced : over(*music, out, count, voiced);
}

/** Lays what a player gives over what is heard. Whether there is anything to hear then. */
bool Participant::over(Player& player, int16_t* out, size_t count, bool voiced) const {
  if (!voiced) return player.frame(out, count, rate_hz());
  int16_t own[frame_max];
  if (player.frame(own, count, rate_hz())) mix_over(out, own, count);
  return true;
}

bool Participant::hears_room_only() const {
  return seat_ != nullptr && recorders_.empty() && !player_.audible() && seat_->room->hears_plain(*seat_) &&
         seat_->room->music_for(*seat_) == nullptr;
}

void Participant::settle(Notices& notices) {
  for (size_t i = 0; i < recorders_.size();) {
    if (!recorders_[i]->over(notices)) {
      i++;
      continue;
    }
    recorders_.erase(recorders_.begin() + static_cast<std::ptrdiff_t>(i));
    look();
  }
  if (answerer_ && answerer_->over()) {
    answerer_.reset();
    look();
  }
  if (seat_ != nullptr) seat_->room->settle(*seat_, notices);
}

}  // namespace sidetone
