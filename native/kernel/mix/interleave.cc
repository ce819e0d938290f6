#include "kernel/mix/interleave.h"

#include <cstring>

#include "kernel/mix/interleave_avx2.h"

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
constexpr size_t width = 8;  // frames at a time

INTERLEAVE_BODY __m256 read(const float* from) { return _mm256_loadu_ps(from); }

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
      write(out + 3 * i, weave3({read(rows[0] + i), read(rows[1] + i), read(rows[2] + i)}));
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

void interleave(const float* const* rows, size_t count, size_t frames, float* out) {
  widest.interleave(rows, count, frames, out);
}

void deinterleave(const float* in, size_t count, size_t frames, size_t stride, float* rows) {
  widest.deinterleave(in, count, frames, stride, rows);
}

}  // namespace sidetone
