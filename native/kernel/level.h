// The level of a span, in dB below full scale (dBov, RFC 6465): 0 is the loudest square wave, -127 is digital silence.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace sidetone {

/** Sum of squares of `count` samples; exact. */
inline uint64_t level_energy(const int16_t* pcm, size_t count) {
  uint64_t energy = 0;
  for (size_t i = 0; i < count; i++) energy += static_cast<uint64_t>(static_cast<int32_t>(pcm[i]) * pcm[i]);
  return energy;
}

/** Root mean square over `count` samples in dBov, -127 to 0. */
inline float level_dbov(const int16_t* pcm, size_t count) {
  const uint64_t energy = count == 0 ? 0 : level_energy(pcm, count);
  if (energy == 0) return -127.0f;
  const float mean = static_cast<float>(energy) / static_cast<float>(count) / (32767.0f * 32767.0f);
  const float level = 10.0f * std::log10(mean);
  return level < -127.0f ? -127.0f : level > 0.0f ? 0.0f : level;
}

}  // namespace sidetone
