#include "kernel/mix/sample_format.h"

#include <cmath>

#if KERNEL_WIDE
#include <immintrin.h>
#endif

namespace sidetone {
namespace {

int16_t saturated(float value) {
  return static_cast<int16_t>(value > 32767.0f ? 32767 : value < -32768.0f ? -32768 : std::lrintf(value));
}

void pcm_of_portable(const float* in, float scale, size_t count, int16_t* pcm) {
  for (size_t i = 0; i < count; i++) pcm[i] = saturated(in[i] * scale);
}

void add_rounded_portable(const float* in, size_t count, int32_t* sum) {
  for (size_t i = 0; i < count; i++) sum[i] += static_cast<int32_t>(std::lrintf(in[i]));
}

template <typename Whole>
KERNEL_BODY void float_of_body(const Whole* in, size_t count, float* out) {
  for (size_t i = 0; i < count; i++) out[i] = static_cast<float>(in[i]);
}

void pcm_float_portable(const int16_t* pcm, size_t count, float* out) { float_of_body(pcm, count, out); }
void sum_float_portable(const int32_t* sum, size_t count, float* out) { float_of_body(sum, count, out); }

#if KERNEL_WIDE
KERNEL_AVX2 void pcm_float_avx2(const int16_t* pcm, size_t count, float* out) { float_of_body(pcm, count, out); }
KERNEL_AVX2 void sum_float_avx2(const int32_t* sum, size_t count, float* out) { float_of_body(sum, count, out); }

__attribute__((always_inline)) KERNEL_AVX2 inline __m256i rounded(__m256 value) {
  // Beyond 31 bits a conversion gives the least number, for values above zero too.
  return _mm256_cvtps_epi32(_mm256_min_ps(value, _mm256_set1_ps(32768.0f)));
}

KERNEL_AVX2 void pcm_of_avx2(const float* in, float scale, size_t count, int16_t* pcm) {
  const __m256 times = _mm256_set1_ps(scale);
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i first = rounded(_mm256_mul_ps(_mm256_loadu_ps(in + i), times));
    const __m256i second = rounded(_mm256_mul_ps(_mm256_loadu_ps(in + i + 8), times));
    // Packing works within halves; their quarters are put in order after it.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(pcm + i), packed);
  }
  pcm_of_portable(in + i, scale, count - i, pcm + i);
}

KERNEL_AVX2 void add_rounded_avx2(const float* in, size_t count, int32_t* sum) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256i* to = reinterpret_cast<__m256i*>(sum + i);
    _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), _mm256_cvtps_epi32(_mm256_loadu_ps(in + i))));
  }
  add_rounded_portable(in + i, count - i, sum + i);
}
#endif

}  // namespace

SampleFormatForms sample_format_forms(Width width) {
#if KERNEL_WIDE
  if (width >= Width::avx2) return {pcm_float_avx2, sum_float_avx2, pcm_of_avx2, add_rounded_avx2};
#endif
  (void)width;
  return {pcm_float_portable, sum_float_portable, pcm_of_portable, add_rounded_portable};
}

namespace {
const SampleFormatForms widest = sample_format_forms(kernel_width());
}

void float_of(const int16_t* pcm, size_t count, float* out) { widest.pcm_float(pcm, count, out); }
void float_of(const int32_t* sum, size_t count, float* out) { widest.sum_float(sum, count, out); }
void pcm_of(const float* in, float scale, size_t count, int16_t* pcm) { widest.pcm_of(in, scale, count, pcm); }
void add_rounded(const float* in, size_t count, int32_t* sum) { widest.add_rounded(in, count, sum); }

}  // namespace sidetone
