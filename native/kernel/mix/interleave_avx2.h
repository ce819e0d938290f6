// Rows of eight and frames of two or three, within the registers of AVX2.
#pragma once
#include "kernel/dispatch.h"

#if KERNEL_WIDE
#include <immintrin.h>

namespace sidetone {

#define INTERLEAVE_BODY __attribute__((always_inline)) KERNEL_AVX2 inline
/** Two rows, or the frames of two. */
struct Two {
  __m256 a, b;
};
/** Three rows, or the frames of three. */
struct Three {
  __m256 a, b, c;
};

INTERLEAVE_BODY Two weave2(Two rows) {
  const __m256 low = _mm256_unpacklo_ps(rows.a, rows.b);
  const __m256 high = _mm256_unpackhi_ps(rows.a, rows.b);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}

INTERLEAVE_BODY Two part2(Two frames) {
  const __m256 low = _mm256_permute2f128_ps(frames.a, frames.b, 0x20);
  const __m256 high = _mm256_permute2f128_ps(frames.a, frames.b, 0x31);
  return {_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xdd)};
}

// 3 and 8 have no divisor in common, so the eight samples of a row go to eight different places of a register, in three
// different registers: one permutation a row, then every register is put together of all three.

/** The samples of every third place, counted from 0, 1 and 2. */
INTERLEAVE_BODY __m256 of_three(__m256 at0, __m256 at1, __m256 at2) {
  return _mm256_blend_ps(_mm256_blend_ps(at0, at1, 0x92), at2, 0x24);
}

INTERLEAVE_BODY Three weave3(Three rows) {
  const __m256 a = _mm256_permutevar8x32_ps(rows.a, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5));
  const __m256 b = _mm256_permutevar8x32_ps(rows.b, _mm256_setr_epi32(5, 0, 3, 6, 1, 4, 7, 2));
  const __m256 c = _mm256_permutevar8x32_ps(rows.c, _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7));
  return {of_three(a, b, c), of_three(c, a, b), of_three(b, c, a)};
}

INTERLEAVE_BODY Three part3(Three frames) {
  const __m256 a = of_three(frames.a, frames.b, frames.c);
  const __m256 b = of_three(frames.c, frames.a, frames.b);
  const __m256 c = of_three(frames.b, frames.c, frames.a);
  return {_mm256_permutevar8x32_ps(a, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5)),
          _mm256_permutevar8x32_ps(b, _mm256_setr_epi32(1, 4, 7, 2, 5, 0, 3, 6)),
          _mm256_permutevar8x32_ps(c, _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7))};
}

INTERLEAVE_BODY void write(float* to, Two two) {
  _mm256_storeu_ps(to, two.a);
  _mm256_storeu_ps(to + 8, two.b);
}

INTERLEAVE_BODY void write(float* to, Three three) {
  _mm256_storeu_ps(to, three.a);
  _mm256_storeu_ps(to + 8, three.b);
  _mm256_storeu_ps(to + 16, three.c);
}

}  // namespace sidetone
#endif
