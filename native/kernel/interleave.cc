#include "kernel/interleave.h"

#include <cstring>

#if KERNEL_WIDE
#include <immintrin.h>
#endif

namespace sidetone {
namespace {

void interleave_portable(const float* const* rows, size_t count, size_t frames, float* out) {
  for (size_t i = 0; i < frames; i++) {
    for (size_t row = 0; row < count; row++) *out++ = rows[row][i];
  }
}

void deinterleave_portable(const float* in, size_t count, size_t frames, size_t stride, float* rows) {
  for (size_t i = 0; i < frames; i++) {
    for (size_t row = 0; row < count; row++) rows[row * stride + i] = *in++;
  }
}

#if KERNEL_WIDE
#define INTERLEAVE_BODY __attribute__((always_inline)) KERNEL_AVX2 inline
constexpr size_t width = 8;  // frames at a time

struct Two {
  __m256 a, b;
};
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

// 3 and 8 have no divisor in common, so the eight samples of a row go to eight different places of a register, in three different registers: one
// permutation a row, then every register is put together of all three.

/** Those of every third place from 0, 1 and 2 on. */
INTERLEAVE_BODY __m256 of_three(__m256 at0, __m256 at1, __m256 at2) { return _mm256_blend_ps(_mm256_blend_ps(at0, at1, 0x92), at2, 0x24); }

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
  return {_mm256_permutevar8x32_ps(a, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5)), _mm256_permutevar8x32_ps(b, _mm256_setr_epi32(1, 4, 7, 2, 5, 0, 3, 6)),
          _mm256_permutevar8x32_ps(c, _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7))};
}

INTERLEAVE_BODY __m256 read(const float* from) { return _mm256_loadu_ps(from); }
INTERLEAVE_BODY void write(float* to, Two two) {
  _mm256_storeu_ps(to, two.a);
  _mm256_storeu_ps(to + width, two.b);
}
INTERLEAVE_BODY void write(float* to, __m256 a, __m256 b, __m256 c) {
  _mm256_storeu_ps(to, a);
  _mm256_storeu_ps(to + width, b);
  _mm256_storeu_ps(to + 2 * width, c);
}

KERNEL_AVX2 void interleave_avx2(const float* const* rows, size_t count, size_t frames, float* out) {
  size_t i = 0;
  if (count == 1) {
    std::memcpy(out, rows[0], frames * sizeof(float));
    return;
  }
  if (count == 2) {
    for (; i + width <= frames; i += width) write(out + 2 * i, weave2({read(rows[0] + i), read(rows[1] + i)}));
  } else if (count == 3) {
    for (; i + width <= frames; i += width) {
      const Three woven = weave3({read(rows[0] + i), read(rows[1] + i), read(rows[2] + i)});
      write(out + 3 * i, woven.a, woven.b, woven.c);
    }
  } else if (count == 6) {  // rows 0, 2, 4 and rows 1, 3, 5, then these two
    for (; i + width <= frames; i += width) {
      const Three even = weave3({read(rows[0] + i), read(rows[2] + i), read(rows[4] + i)});
      const Three odd = weave3({read(rows[1] + i), read(rows[3] + i), read(rows[5] + i)});
      write(out + 6 * i, weave2({even.a, odd.a}));
      write(out + 6 * i + 2 * width, weave2({even.b, odd.b}));
      write(out + 6 * i + 4 * width, weave2({even.c, odd.c}));
    }
  }
  for (out += count * i; i < frames; i++) {
    for (size_t row = 0; row < count; row++) *out++ = rows[row][i];
  }
}

KERNEL_AVX2 void deinterleave_avx2(const float* in, size_t count, size_t frames, size_t stride, float* rows) {
  size_t i = 0;
  if (count == 2) {
    for (; i + width <= frames; i += width) {
      const Two parted = part2({read(in + 2 * i), read(in + 2 * i + width)});
      _mm256_storeu_ps(rows + i, parted.a);
      _mm256_storeu_ps(rows + stride + i, parted.b);
    }
  } else if (count == 3) {
    for (; i + width <= frames; i += width) {
      const Three parted = part3({read(in + 3 * i), read(in + 3 * i + width), read(in + 3 * i + 2 * width)});
      _mm256_storeu_ps(rows + i, parted.a);
      _mm256_storeu_ps(rows + stride + i, parted.b);
      _mm256_storeu_ps(rows + 2 * stride + i, parted.c);
    }
  } else if (count == 6) {
    for (; i + width <= frames; i += width) {
      const Two first = part2({read(in + 6 * i), read(in + 6 * i + width)});
      const Two second = part2({read(in + 6 * i + 2 * width), read(in + 6 * i + 3 * width)});
      const Two third = part2({read(in + 6 * i + 4 * width), read(in + 6 * i + 5 * width)});
      const Three even = part3({first.a, second.a, third.a});
      const Three odd = part3({first.b, second.b, third.b});
      _mm256_storeu_ps(rows + i, even.a);
      _mm256_storeu_ps(rows + stride + i, odd.a);
      _mm256_storeu_ps(rows + 2 * stride + i, even.b);
      _mm256_storeu_ps(rows + 3 * stride + i, odd.b);
      _mm256_storeu_ps(rows + 4 * stride + i, even.c);
      _mm256_storeu_ps(rows + 5 * stride + i, odd.c);
    }
  }
  for (in += count * i; i < frames; i++) {
    for (size_t row = 0; row < count; row++) rows[row * stride + i] = *in++;
  }
}
#endif

}  // namespace

InterleaveForms interleave_forms(Width width) {
#if KERNEL_WIDE
  if (width >= Width::avx2) return {interleave_avx2, deinterleave_avx2};
#endif
  (void)width;
  return {interleave_portable, deinterleave_portable};
}

namespace {
const InterleaveForms widest = interleave_forms(kernel_width());
}

void interleave(const float* const* rows, size_t count, size_t frames, float* out) { widest.interleave(rows, count, frames, out); }

void deinterleave(const float* in, size_t count, size_t frames, size_t stride, float* rows) {
  widest.deinterleave(in, count, frames, stride, rows);
}

}  // namespace sidetone
