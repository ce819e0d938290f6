#include "kernel/tone/dial_tone.h"

#include <cmath>

#if KERNEL_WIDE
#include <immintrin.h>
#endif

namespace sidetone {
namespace {

constexpr float rate = 0.008f;  // a sine is followed with a time constant of some 1 / rate samples: 16 ms

struct Tables {
  float columns[2 * tones][tone_step];  // cosine and negative sine of each frequency over a step
  // What a cosine of the one frequency holds of that of the other, and likewise a sine. A cosine holds nothing of a
  // sine, as one is the same on both sides of the middle and the other the opposite.
  float cosines[tones][tones] = {};
  float sines[tones][tones] = {};
  ToneBins turn;  // by what each sine turns in one step
  Tables() {
    for (size_t k = 0; k < tones; k++) {
      for (size_t i = 0; i < tone_step; i++) {
        columns[k][i] = static_cast<float>(std::cos(tone_angle(dial_hz[k], i)));
        columns[tones + k][i] = static_cast<float>(-std::sin(tone_angle(dial_hz[k], i)));
      }
      const double angle = tone_angle(dial_hz[k], tone_step) - tone_angle(dial_hz[k], 0);
      turn.re[k] = static_cast<float>(std::cos(angle));
      turn.im[k] = static_cast<float>(std::sin(angle));
    }
    for (size_t m = 0; m < tones; m++) {
      for (size_t k = 0; k < tones; k++) {
        for (size_t i = 0; i < tone_step; i++) {
          cosines[m][k] += columns[m][i] * columns[k][i];
          sines[m][k] += columns[tones + m][i] * columns[tones + k][i];
        }
      }
    }
  }
};
const Tables tables;

float follow_portable(const ToneBins& heard, ToneBins& sines) {
  ToneBins found = heard;  // of what is left without what was expected
  for (size_t m = 0; m < tones; m++) {
    for (size_t k = 0; k < tones; k++) {
      found.re[k] -= sines.re[m] * tables.cosines[m][k];
      found.im[k] -= sines.im[m] * tables.sines[m][k];
    }
  }
  float power = 0;
  for (size_t k = 0; k < tones; k++) {
    const float re = sines.re[k] + rate * found.re[k];
    const float im = sines.im[k] + rate * found.im[k];
    power += re * re + im * im;
    sines.re[k] = re * tables.turn.re[k] - im * tables.turn.im[k];
    sines.im[k] = re * tables.turn.im[k] + im * tables.turn.re[k];
  }
  return power;
}

#if KERNEL_WIDE
KERNEL_AVX2 float follow_avx2(const ToneBins& heard, ToneBins& sines) {
  constexpr size_t chains = 2;  // sums of every other sine, which do not wait for each other
  __m256 found_re[chains] = {_mm256_loadu_ps(heard.re), _mm256_setzero_ps()};
  __m256 found_im[chains] = {_mm256_loadu_ps(heard.im), _mm256_setzero_ps()};
#pragma GCC unroll 4
  for (size_t m = 0; m < tones; m += chains) {
#pragma GCC unroll 2
    for (size_t c = 0; c < chains; c++) {
      const __m256 cosines = _mm256_loadu_ps(tables.cosines[m + c]);
      const __m256 of_sines = _mm256_loadu_ps(tables.sines[m + c]);
      found_re[c] = _mm256_fnmadd_ps(_mm256_broadcast_ss(&sines.re[m + c]), cosines, found_re[c]);
      found_im[c] = _mm256_fnmadd_ps(_mm256_broadcast_ss(&sines.im[m + c]), of_sines, found_im[c]);
    }
  }
  const __m256 slow = _mm256_set1_ps(rate);
  const __m256 re = _mm256_fmadd_ps(slow, _mm256_add_ps(found_re[0], found_re[1]), _mm256_loadu_ps(sines.re));
  const __m256 im = _mm256_fmadd_ps(slow, _mm256_add_ps(found_im[0], found_im[1]), _mm256_loadu_ps(sines.im));
  const __m256 turn_re = _mm256_loadu_ps(tables.turn.re);
  const __m256 turn_im = _mm256_loadu_ps(tables.turn.im);
  _mm256_storeu_ps(sines.re, _mm256_fnmadd_ps(im, turn_im, _mm256_mul_ps(re, turn_re)));
  _mm256_storeu_ps(sines.im, _mm256_fmadd_ps(im, turn_re, _mm256_mul_ps(re, turn_im)));
  const __m256 power = _mm256_fmadd_ps(re, re, _mm256_mul_ps(im, im));
  const __m128 half = _mm_add_ps(_mm256_castps256_ps128(power), _mm256_extractf128_ps(power, 1));
  const __m128 quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
}
#endif

const FollowForm widest = follow_form(kernel_width());

}  // namespace

FollowForm follow_form([[maybe_unused]] Width width) {
#if KERNEL_WIDE
  if (width >= Width::avx2) return follow_avx2;
#endif
  return follow_portable;
}

ToneBins DialTone::follow(const ToneBins& heard) {
  const ToneBins expected = sines_;
  power_ = widest(heard, sines_);
  return expected;
}

void DialTone::remove(const ToneBins& expected, const float* in, float* out) {
  for (size_t i = 0; i < tone_step; i++) out[i] = in[i];
  for (size_t k = 0; k < tones; k++) {
    const float re = expected.re[k];
    const float im = expected.im[k];
    for (size_t i = 0; i < tone_step; i++) out[i] -= re * tables.columns[k][i] + im * tables.columns[tones + k][i];
  }
}

}  // namespace sidetone
