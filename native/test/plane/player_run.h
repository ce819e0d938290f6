// A player that is run by itself, and the steps of what it gives.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "plane/audio/player.h"

namespace sidetone {

constexpr uint32_t hz = 8000;
constexpr size_t frame = 160;
// A sine of 300 Hz and 12000 rises by 2 pi 300 / 8000 * 12000 = 2827; two of them cross-faded stay below twice a single
// one's ramp.
constexpr int smooth = 3600;

inline void run(Player& player, std::vector<int16_t>& out, int frames, uint32_t rate = hz) {
  const size_t count = rate / 50;
  for (int i = 0; i < frames; i++) {
    int16_t pcm[960];
    if (!player.frame(pcm, count, rate)) std::fill_n(pcm, count, int16_t{0});  // as a leg does, which sends silence
    out.insert(out.end(), pcm, pcm + count);
  }
}

/** The largest step from one sample to the next. */
inline int steepest(const std::vector<int16_t>& pcm) {
  int most = 0;
  for (size_t i = 1; i < pcm.size(); i++) most = std::max(most, std::abs(pcm[i] - pcm[i - 1]));
  return most;
}

}  // namespace sidetone
