#include "kernel/resampler/fir.h"

#include <cstring>

#include "kernel/mix/interleave_avx2.h"

namespace sidetone {
namespace {

void run_portable(const float* in, const float* taps, const FirPiece* pieces, size_t count, float* out) {
  constexpr size_t part = 16;  // sums that stay in registers
  static_assert(fir_outputs % part == 0, "");
  for (size_t at = 0; at < fir_outputs; at += part) {
    float sum[part] = {};
    for (const FirPiece* piece = pieces; piece != pieces + count; piece++) {
      for (size_t k = 0; k < piece->count; k++) {
        const float* from = in + piece->offset + k + at;
        for (size_t i = 0; i < part; i++) sum[i] += taps[piece->first + k] * from[i];
      }
    }
    std::memcpy(out + at, sum, sizeof sum);
  }
}

void run_together_portable(const float* in, const float* weights, const FirPiece* pieces, size_t count, size_t phases,
                           float* out) {
  for (size_t phase = 0; phase < phases; phase++) {
    float sum[fir_outputs] = {};
    for (const FirPiece* piece = pieces; piece != pieces + count; piece++) {
      for (size_t k = 0; k < piece->count; k++) {
        const float weight = weights[piece->first + k * phases + phase];
        for (size_t i = 0; i < fir_outputs; i++) sum[i] += weight * in[piece->offset + k + i];
      }
    }
    for (size_t i = 0; i < fir_outputs; i++) out[i * phases + phase] = sum[i];
  }
}

#if KERNEL_WIDE
constexpr size_t width = 8;
constexpr size_t registers = fir_outputs / width;  // ten sums, four taps and the inputs: all fifteen of AVX2 but one
using Sums = __m256[registers];

/** The taps at 0, 8, … 8 * (shared - 1). */
template <size_t shared>
__attribute__((always_inline)) KERNEL_AVX2 inline void add_taps(const float* in, const float* taps, Sums& sum) {
  __m256 tap[shared];
  for (size_t q = 0; q < shared; q++) tap[q] = _mm256_broadcast_ss(taps + width * q);
#pragma GCC unroll 16
  for (size_t b = 0; b < registers + shared - 1; b++) {
    __m256 heard = _mm256_loadu_ps(in + width * b);
    if (shared > 1) __asm__("" : "+x"(heard));  // or the compiler loads it anew for every multiplication
#pragma GCC unroll 4
    for (size_t q = 0; q < shared; q++) {
      if (b >= q && b - q < registers) sum[b - q] = _mm256_fmadd_ps(tap[q], heard, sum[b - q]);
    }
  }
}

/** `count` taps, of which 8 * (shared - 1) + 1 to 8 * shared are there. */
template <size_t shared>
__attribute__((always_inline)) KERNEL_AVX2 inline void add_piece(const float* in, const float* taps, size_t count,
                                                                 Sums& sum) {
  const size_t more = count - width * (shared - 1);
  for (size_t k = 0; k < more; k++) add_taps<shared>(in + k, taps + k, sum);
  if constexpr (shared > 1) {
    for (size_t k = more; k < width; k++) add_taps<shared - 1>(in + k, taps + k, sum);
  }
}

KERNEL_AVX2 void run_avx2(const float* in, const float* taps, const FirPiece* pieces, size_t count, float* out) {
  static_assert(fir_outputs % width == 0 && fir_piece_max == 4 * width, "");
  Sums sum;
#pragma GCC unroll 16
  for (__m256& each : sum) each = _mm256_setzero_ps();
  for (const FirPiece* piece = pieces; piece != pieces + count; piece++) {
    const float* from = in + piece->offset;
    const float* first = taps + piece->first;
    if (piece->count > 3 * width) {
      add_piece<4>(from, first, piece->count, sum);
    } else if (piece->count > 2 * width) {
      add_piece<3>(from, first, piece->count, sum);
    } else if (piece->count > width) {
      add_piece<2>(from, first, piece->count, sum);
    } else {
      add_piece<1>(from, first, piece->count, sum);
    }
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < registers; i++) _mm256_storeu_ps(out + width * i, sum[i]);
}

/** `parts` registers of outputs of each of two or three phases. */
template <size_t phases, size_t parts>
__attribute__((always_inline)) KERNEL_AVX2 inline void add_together(const float* in, const float* weights,
                                                                    const FirPiece* pieces, size_t count, float* out) {
  static_assert(phases * parts + phases + 1 <= 16, "the registers of AVX2");
  __m256 sum[phases][parts];
#pragma GCC unroll 4
  for (auto& phase : sum) {
#pragma GCC unroll 8
    for (__m256& each : phase) each = _mm256_setzero_ps();
  }
  for (const FirPiece* piece = pieces; piece != pieces + count; piece++) {
    const float* from = in + piece->offset;
    const float* tap = weights + piece->first;
    for (const float* end = from + piece->count; from != end; from++, tap += phases) {
      __m256 weight[phases];
#pragma GCC unroll 4
      for (size_t p = 0; p < phases; p++) weight[p] = _mm256_broadcast_ss(tap + p);
#pragma GCC unroll 8
      for (size_t i = 0; i < parts; i++) {
        __m256 heard = _mm256_loadu_ps(from + width * i);
        __asm__("" : "+x"(heard));
#pragma GCC unroll 4
        for (size_t p = 0; p < phases; p++) sum[p][i] = _mm256_fmadd_ps(weight[p], heard, sum[p][i]);
      }
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < parts; i++) {
    if constexpr (phases == 2) write(out + phases * width * i, weave2({sum[0][i], sum[1][i]}));
    if constexpr (phases == 3) write(out + phases * width * i, weave3({sum[0][i], sum[1][i], sum[2][i]}));
  }
}

KERNEL_AVX2 void run_together_avx2(const float* in, const float* weights, const FirPiece* pieces, size_t count,
                                   size_t phases, float* out) {
  static_assert(registers == 10, "");
  if (phases == 2) {
    add_together<2, 5>(in, weights, pieces, count, out);
    add_together<2, 5>(in + 5 * width, weights, pieces, count, out + 5 * phases * width);
  } else if (phases == 3) {
    add_together<3, 4>(in, weights, pieces, count, out);
    add_together<3, 3>(in + 4 * width, weights, pieces, count, out + 4 * phases * width);
    add_together<3, 3>(in + 7 * width, weights, pieces, count, out + 7 * phases * width);
  } else {
    run_together_portable(in, weights, pieces, count, phases, out);
  }
}
#endif

}  // namespace

FirForms fir_forms(Width width) {
#if KERNEL_WIDE
  if (width >= Width::avx2) return {run_avx2, run_together_avx2};
#endif
  (void)width;
  return {run_portable, run_together_portable};
}

namespace {
const FirForms widest = fir_forms(kernel_width());
}

void fir_run(const float* in, const float* taps, const FirPiece* pieces, size_t count, float* out) {
  widest.run(in, taps, pieces, count, out);
}

void fir_run_together(const float* in, const float* weights, const FirPiece* pieces, size_t count, size_t phases,
                      float* out) {
  widest.run_together(in, weights, pieces, count, phases, out);
}

}  // namespace sidetone
