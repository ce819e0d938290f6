#include "kernel/tone/tone_bank.h"

#include <cmath>

#if KERNEL_WIDE
#include <immintrin.h>
#endif

namespace sidetone {
namespace {

constexpr double pi = 3.14159265358979323846;

using Four = double[4];

/** Inverts a well-conditioned symmetric matrix in place (Gauss and Jordan). */
void invert(Four (&m)[4]) {
  for (size_t p = 0; p < 4; p++) {
    const double pivot = 1 / m[p][p];
    m[p][p] = 1;
    for (size_t c = 0; c < 4; c++) m[p][c] *= pivot;
    for (size_t r = 0; r < 4; r++) {
      if (r == p) continue;
      const double factor = m[r][p];
      m[r][p] = 0;
      for (size_t c = 0; c < 4; c++) m[r][c] -= factor * m[p][c];
    }
  }
}

constexpr size_t pairs = tone_step / 2;

void correlate_portable(const ToneBank& bank, const float* pcm, ToneStep& step) {
  step = {};
  for (size_t i = 0; i < pairs; i++) {
    const float mirrored = pcm[tone_step - 1 - i];
    const float even = pcm[i] + mirrored;
    const float odd = pcm[i] - mirrored;
    step.energy += pcm[i] * pcm[i] + mirrored * mirrored;
    for (size_t k = 0; k < tones; k++) {
      step.keys.re[k] += even * bank.cosine[i].keys[k];
      step.keys.im[k] += odd * bank.sine[i].keys[k];
      step.dial.re[k] += even * bank.cosine[i].dial[k];
      step.dial.im[k] += odd * bank.sine[i].dial[k];
    }
  }
}

#if KERNEL_WIDE
KERNEL_AVX2 void correlate_avx2(const ToneBank& bank, const float* pcm, ToneStep& step) {
  static_assert(pairs == 8 + 8 + 4, "");
  alignas(32) float even[pairs];
  alignas(32) float odd[pairs];
  const __m256i backwards = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  __m256 energy = _mm256_setzero_ps();
#pragma GCC unroll 2
  for (size_t i = 0; i < 16; i += 8) {
    const __m256 first = _mm256_loadu_ps(pcm + i);
    const __m256 mirrored = _mm256_permutevar8x32_ps(_mm256_loadu_ps(pcm + tone_step - 8 - i), backwards);
    energy = _mm256_fmadd_ps(first, first, _mm256_fmadd_ps(mirrored, mirrored, energy));
    _mm256_store_ps(even + i, _mm256_add_ps(first, mirrored));
    _mm256_store_ps(odd + i, _mm256_sub_ps(first, mirrored));
  }
  const __m256 middle = _mm256_loadu_ps(pcm + 16);
  energy = _mm256_fmadd_ps(middle, middle, energy);
  const __m128 first = _mm256_castps256_ps128(middle);
  const __m128 mirrored = _mm_permute_ps(_mm256_extractf128_ps(middle, 1), 0x1b);
  _mm_store_ps(even + 16, _mm_add_ps(first, mirrored));
  _mm_store_ps(odd + 16, _mm_sub_ps(first, mirrored));
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(energy), _mm256_extractf128_ps(energy, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  step.energy = _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));

  constexpr size_t chains = 2;  // sums of every other pair, which do not wait for each other
  __m256 keys_re[chains], keys_im[chains], dial_re[chains], dial_im[chains];
#pragma GCC unroll 2
  for (size_t c = 0; c < chains; c++) keys_re[c] = keys_im[c] = dial_re[c] = dial_im[c] = _mm256_setzero_ps();
#pragma GCC unroll 10
  for (size_t i = 0; i < pairs; i += chains) {
#pragma GCC unroll 2
    for (size_t c = 0; c < chains; c++) {
      const ToneBank::Row& cosine = bank.cosine[i + c];
      const ToneBank::Row& sine = bank.sine[i + c];
      const __m256 both = _mm256_broadcast_ss(even + i + c);
      const __m256 between = _mm256_broadcast_ss(odd + i + c);
      keys_re[c] = _mm256_fmadd_ps(both, _mm256_loadu_ps(cosine.keys), keys_re[c]);
      keys_im[c] = _mm256_fmadd_ps(between, _mm256_loadu_ps(sine.keys), keys_im[c]);
      dial_re[c] = _mm256_fmadd_ps(both, _mm256_loadu_ps(cosine.dial), dial_re[c]);
      dial_im[c] = _mm256_fmadd_ps(between, _mm256_loadu_ps(sine.dial), dial_im[c]);
    }
  }
  _mm256_storeu_ps(step.keys.re, _mm256_add_ps(keys_re[0], keys_re[1]));
  _mm256_storeu_ps(step.keys.im, _mm256_add_ps(keys_im[0], keys_im[1]));
  _mm256_storeu_ps(step.dial.re, _mm256_add_ps(dial_re[0], dial_re[1]));
  _mm256_storeu_ps(step.dial.im, _mm256_add_ps(dial_im[0], dial_im[1]));
}
#endif

void powers_portable(const ToneBank& bank, const ToneBins* const* steps, float* power) {
  float re[tones] = {};
  float im[tones] = {};
  for (size_t j = 0; j < tone_steps; j++) {
    const ToneBins& bins = *steps[j];
    const ToneBins& turn = bank.turned[j];
    for (size_t k = 0; k < tones; k++) {
      re[k] += bins.re[k] * turn.re[k] - bins.im[k] * turn.im[k];
      im[k] += bins.re[k] * turn.im[k] + bins.im[k] * turn.re[k];
    }
  }
  for (size_t k = 0; k < tones; k++) power[k] = re[k] * re[k] + im[k] * im[k];
}

#if KERNEL_WIDE
KERNEL_AVX2 void powers_avx2(const ToneBank& bank, const ToneBins* const* steps, float* power) {
  static_assert(tones == 8, "");
  __m256 re = _mm256_setzero_ps();
  __m256 im = _mm256_setzero_ps();
  for (size_t j = 0; j < tone_steps; j++) {
    const __m256 bin_re = _mm256_loadu_ps(steps[j]->re);
    const __m256 bin_im = _mm256_loadu_ps(steps[j]->im);
    const __m256 turn_re = _mm256_loadu_ps(bank.turned[j].re);
    const __m256 turn_im = _mm256_loadu_ps(bank.turned[j].im);
    re = _mm256_fnmadd_ps(bin_im, turn_im, _mm256_fmadd_ps(bin_re, turn_re, re));
    im = _mm256_fmadd_ps(bin_im, turn_re, _mm256_fmadd_ps(bin_re, turn_im, im));
  }
  _mm256_storeu_ps(power, _mm256_fmadd_ps(re, re, _mm256_mul_ps(im, im)));
}
#endif

const ToneForms widest = tone_forms(kernel_width());

const ToneBank only;

}  // namespace

ToneBank::ToneBank() {
  for (size_t k = 0; k < tones; k++) {
    for (size_t i = 0; i < pairs; i++) {
      cosine[i].keys[k] = static_cast<float>(std::cos(tone_angle(tone_hz[k], i)));
      cosine[i].dial[k] = static_cast<float>(std::cos(tone_angle(dial_hz[k], i)));
      sine[i].keys[k] = static_cast<float>(-std::sin(tone_angle(tone_hz[k], i)));
      sine[i].dial[k] = static_cast<float>(-std::sin(tone_angle(dial_hz[k], i)));
    }
    for (size_t j = 0; j < tone_steps; j++) {
      const double angle = 2 * pi * tone_hz[k] * 0.005 * static_cast<double>(j);
      turned[j].re[k] = static_cast<float>(std::cos(angle));
      turned[j].im[k] = static_cast<float>(-std::sin(angle));
    }
  }
  for (size_t low = 0; low < 4; low++) {
    for (size_t high = 0; high < 4; high++) {
      Four gram[4] = {};
      for (size_t i = 0; i < 2 * tone_step; i++) {
        const double a = tone_angle(tone_hz[low], i);
        const double b = tone_angle(tone_hz[4 + high], i);
        const Four basis = {std::cos(a), -std::sin(a), std::cos(b), -std::sin(b)};
        for (size_t r = 0; r < 4; r++) {
          for (size_t c = 0; c < 4; c++) gram[r][c] += basis[r] * basis[c];
        }
      }
      invert(gram);
      for (size_t r = 0; r < 4; r++) {
        for (size_t c = 0; c < 4; c++) apart[low][high][r][c] = static_cast<float>(gram[r][c]);
      }
    }
  }
}

ToneForms tone_forms([[maybe_unused]] Width width) {
#if KERNEL_WIDE
  if (width >= Width::avx2) return {correlate_avx2, powers_avx2};
#endif
  return {correlate_portable, powers_portable};
}

void ToneBank::correlate(const float* pcm, ToneStep& step) const { widest.correlate(*this, pcm, step); }

void ToneBank::powers(const ToneBins* const (&steps)[tone_steps], float (&power)[tones]) const {
  widest.powers(*this, steps, power);
}

const ToneBank& tone_bank() { return only; }

}  // namespace sidetone
