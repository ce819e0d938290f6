#include "plane/room/whispers.h"

#include <algorithm>

#include "kernel/mix/mix.h"
#include "plane/room/room.h"

namespace sidetone {

/** What was heard of it last falls from the next frame on. */
void Whispers::cut_off(Whisper& whisper) {
  if (whisper.coached != nullptr) whisper.coached->fall += whisper.last;
  whisper.last = 0;
}

void Whispers::erase(const Seat& coach) {
  for (Whisper& whisper : whispers_) {
    if (whisper.coach == &coach) cut_off(whisper);
  }
  whispers_.erase(std::remove_if(whispers_.begin(), whispers_.end(),
                                 [&coach](const Whisper& whisper) { return whisper.coach == &coach; }),
                  whispers_.end());
}

const Seat* Whispers::coached_by(const Seat& coach) const {
  for (const Whisper& whisper : whispers_) {
    if (whisper.coach == &coach) return whisper.coached;
  }
  return nullptr;
}

void Whispers::turn(const Seat& coach, Seat* coached) {
  erase(coach);
  Whisper whisper;
  whisper.coach = &coach;
  whisper.coached = coached;
  whispers_.push_back(std::move(whisper));
}

void Whispers::remove(const Seat& seat) {
  erase(seat);
  for (Whisper& whisper : whispers_) {
    if (whisper.coached == &seat) whisper.coached = nullptr;
  }
}

void Whispers::say(const Seat& coach, const int16_t* pcm, size_t rate) {
  for (Whisper& whisper : whispers_) {
    if (whisper.coach != &coach) continue;
    if (whisper.from != rate) {  // its codec was negotiated anew
      cut_off(whisper);
      whisper.bridge.reset();
    }
    if (pcm == nullptr && !whisper.bridge) whisper.last = 0;
    whisper.pcm = pcm;
    whisper.from = rate;
  }
}

bool Whispers::any(const Seat& seat) const {
  return std::any_of(whispers_.begin(), whispers_.end(), [&seat](const Whisper& whisper) {
    return whisper.coached == &seat && (whisper.pcm != nullptr || (whisper.bridge && !whisper.bridge->rung_out()));
  });
}

void Whispers::hear(const Seat& seat, int16_t* out, size_t rate) {
  static constexpr int16_t silence[frame_max] = {};
  for (Whisper& whisper : whispers_) {
    if (whisper.coached != &seat) continue;
    const int16_t* pcm = whisper.pcm;
    int16_t made[frame_max];
    if (whisper.from != rate) {
      if (!whisper.bridge || whisper.to != rate) {
        const auto filter = filters_.get(rate_table_hz[whisper.from], rate_table_hz[rate]);
        whisper.bridge = std::make_unique<RateBridge>(filter, whisper.from, rate);
        whisper.to = rate;
      }
      whisper.bridge->convert(pcm != nullptr ? pcm : silence, made);
      pcm = made;
    }
    if (pcm == nullptr) continue;
    mix_over(out, pcm, rate_samples(rate));
    whisper.last = pcm[rate_samples(rate) - 1];
  }
}

void Whispers::let_fall(int32_t from, int16_t* out, size_t ramp) {
  int16_t pcm[frame_max];
  for (size_t i = 0; i < ramp; i++)
    pcm[i] = static_cast<int16_t>(std::clamp<int32_t>(mix_fall(from, i, ramp), -32768, 32767));
  mix_over(out, pcm, ramp);
}

}  // namespace sidetone
