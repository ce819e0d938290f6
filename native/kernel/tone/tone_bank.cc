#include "kernel/tone/tone_bank.h"

#include <cmath>

#include "kernel/dispatch.h"

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

void correlate_portable(const float (*row)[2 * tones], const float* pcm, size_t count, ToneBins& bins) {
  bins = {};
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < tones; k++) {
      bins.re[k] += pcm[i] * row[i][k];
      bins.im[k] += pcm[i] * row[i][tones + k];
    }
  }
}

#if KERNEL_WIDE
KERNEL_AVX2 void correlate_avx2(const float (*row)[2 * tones], const float* pcm, size_t count, ToneBins& bins) {
  constexpr size_t chains = 4;  // sums of every fourth sample, which do not wait for each other
  __m256 cosine[chains];
  __m256 sine[chains];
#pragma GCC unroll 4
  for (size_t c = 0; c < chains; c++) cosine[c] = sine[c] = _mm256_setzero_ps();
  for (size_t i = 0; i < count; i += chains) {
#pragma GCC unroll 4
    for (size_t c = 0; c < chains; c++) {
      const __m256 sample = _mm256_set1_ps(pcm[i + c]);
      cosine[c] = _mm256_fmadd_ps(sample, _mm256_loadu_ps(row[i + c]), cosine[c]);
      sine[c] = _mm256_fmadd_ps(sample, _mm256_loadu_ps(row[i + c] + tones), sine[c]);
    }
  }
  _mm256_storeu_ps(bins.re, _mm256_add_ps(_mm256_add_ps(cosine[0], cosine[1]), _mm256_add_ps(cosine[2], cosine[3])));
  _mm256_storeu_ps(bins.im, _mm256_add_ps(_mm256_add_ps(sine[0], sine[1]), _mm256_add_ps(sine[2], sine[3])));
}
#endif

void powers_portable(const ToneBins* turned, const ToneBins* const* steps, float* power) {
  float re[tones] = {};
  float im[tones] = {};
  for (size_t j = 0; j < tone_steps; j++) {
    const ToneBins& bins = *steps[j];
    const ToneBins& turn = turned[j];
    for (size_t k = 0; k < tones; k++) {
      re[k] += bins.re[k] * turn.re[k] - bins.im[k] * turn.im[k];
      im[k] += bins.re[k] * turn.im[k] + bins.im[k] * turn.re[k];
    }
  }
  for (size_t k = 0; k < tones; k++) power[k] = re[k] * re[k] + im[k] * im[k];
}

#if KERNEL_WIDE
KERNEL_AVX2 void powers_avx2(const ToneBins* turned, const ToneBins* const* steps, float* power) {
  static_assert(tones == 8, "");
  __m256 re = _mm256_setzero_ps();
  __m256 im = _mm256_setzero_ps();
  for (size_t j = 0; j < tone_steps; j++) {
    const __m256 bin_re = _mm256_loadu_ps(steps[j]->re);
    const __m256 bin_im = _mm256_loadu_ps(steps[j]->im);
    const __m256 turn_re = _mm256_loadu_ps(turned[j].re);
    const __m256 turn_im = _mm256_loadu_ps(turned[j].im);
    re = _mm256_fnmadd_ps(bin_im, turn_im, _mm256_fmadd_ps(bin_re, turn_re, re));
    im = _mm256_fmadd_ps(bin_im, turn_re, _mm256_fmadd_ps(bin_re, turn_im, im));
  }
  _mm256_storeu_ps(power, _mm256_fmadd_ps(re, re, _mm256_mul_ps(im, im)));
}
#endif

struct Forms {
  void (*correlate)(const float (*)[2 * tones], const float*, size_t, ToneBins&);
  void (*powers)(const ToneBins*, const ToneBins* const*, float*);
};
#if KERNEL_WIDE
const Forms widest =
    kernel_width() == Width::portable ? Forms{correlate_portable, powers_portable} : Forms{correlate_avx2, powers_avx2};
#else
const Forms widest = {correlate_portable, powers_portable};
#endif

const ToneBank only;

}  // namespace

ToneBank::ToneBank() {
  for (size_t k = 0; k < 8; k++) {
    for (size_t i = 0; i < tone_step; i++) {
      const double angle = 2 * pi * tone_hz[k] * static_cast<double>(i) / tone_rate_hz;
      rows[i][k] = static_cast<float>(std::cos(angle));
      rows[i][8 + k] = static_cast<float>(-std::sin(angle));
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
        const double a = 2 * pi * tone_hz[low] * static_cast<double>(i) / tone_rate_hz;
        const double b = 2 * pi * tone_hz[4 + high] * static_cast<double>(i) / tone_rate_hz;
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

void tone_correlate(const ToneRows& rows, const float* pcm, ToneBins& bins) {
  widest.correlate(rows, pcm, tone_step, bins);
}

void ToneBank::powers(const ToneBins* const (&steps)[tone_steps], float (&power)[tones]) const {
  widest.powers(turned, steps, power);
}

const ToneBank& tone_bank() { return only; }

}  // namespace sidetone
