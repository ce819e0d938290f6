#include "kernel/mix/level.h"

#include <cmath>

#if KERNEL_WIDE
#include <immintrin.h>
#endif

namespace sidetone {
namespace {

uint64_t energy_portable(const int16_t* pcm, size_t count) {
  uint64_t energy = 0;
  for (size_t i = 0; i < count; i++) energy += static_cast<uint64_t>(static_cast<int32_t>(pcm[i]) * pcm[i]);
  return energy;
}

#if KERNEL_WIDE
KERNEL_AVX2 uint64_t energy_avx2(const int16_t* pcm, size_t count) {
  const __m256i zero = _mm256_setzero_si256();
  __m256i sum = zero;
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i samples = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pcm + i));
    const __m256i pairs = _mm256_madd_epi16(samples, samples);  // at most 2 to the 31st, so without a sign
    sum =
        _mm256_add_epi64(sum, _mm256_add_epi64(_mm256_unpacklo_epi32(pairs, zero), _mm256_unpackhi_epi32(pairs, zero)));
  }
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  const uint64_t whole =
      static_cast<uint64_t>(_mm_cvtsi128_si64(half)) + static_cast<uint64_t>(_mm_extract_epi64(half, 1));
  return whole + energy_portable(pcm + i, count - i);
}
#endif

}  // namespace

EnergyForm energy_form(Width width) {
#if KERNEL_WIDE
  if (width >= Width::avx2) return energy_avx2;
#endif
  (void)width;
  return energy_portable;
}

namespace {
const EnergyForm widest = energy_form(kernel_width());
}

uint64_t level_energy(const int16_t* pcm, size_t count) { return widest(pcm, count); }

float level_dbov(const int16_t* pcm, size_t count) {
  const uint64_t energy = count == 0 ? 0 : level_energy(pcm, count);
  if (energy == 0) return -127.0f;
  const float mean = static_cast<float>(energy) / static_cast<float>(count) / (32767.0f * 32767.0f);
  const float level = 10.0f * std::log10(mean);
  return level < -127.0f ? -127.0f : level > 0.0f ? 0.0f : level;
}

}  // namespace sidetone
