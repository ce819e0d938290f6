#include "plane/room/whispers.h"

#include <algorithm>

#include "kernel/mix/mix.h"

namespace sidetone {

void Whispers::turn(const Seat& coach, const Seat* coached) {
  whispers_.erase(std::remove_if(whispers_.begin(), whispers_.end(),
                                 [&coach](const Whisper& whisper) { return whisper.coach == &coach; }),
                  whispers_.end());
  Whisper whisper;
  whisper.coach = &coach;
  whisper.coached = coached;
  whispers_.push_back(std::move(whisper));
}

void Whispers::remove(const Seat& seat) {
  whispers_.erase(std::remove_if(whispers_.begin(), whispers_.end(),
                                 [&seat](const Whisper& whisper) { return whisper.coach == &seat; }),
                  whispers_.end());
  for (Whisper& whisper : whispers_) {
    if (whisper.coached == &seat) whisper.coached = nullptr;
  }
}

void Whispers::say(const Seat& coach, const int16_t* pcm, size_t rate) {
  for (Whisper& whisper : whispers_) {
    if (whisper.coach != &coach) continue;
    if (whisper.from != rate) whisper.bridge.reset();  // its codec was negotiated anew
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
    if (pcm != nullptr) mix_over(out, pcm, rate_samples(rate));
  }
}

}  // namespace sidetone
