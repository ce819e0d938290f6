// The six zeros of a G.722 predictor, which are adapted and summed side by side (blocks UPZERO and FILTEZ of the
// Recommendation).
#pragma once
#include <cstdint>

#include "kernel/dispatch.h"

#if KERNEL_WIDE
#include <smmintrin.h>
#endif

namespace sidetone {

constexpr int g722_zeros = 6;

/** The zeros of one predictor as they are kept between frames. Places from the sixth on are 0. */
struct G722ZeroState {
  int16_t zero[8] = {};        // B1..B6
  int16_t difference[8] = {};  // D1..D6, the newest first
};

class G722ZerosPortable {
 public:
  explicit G722ZerosPortable(const G722ZeroState& state) : state_(state) {}
  void save(G722ZeroState& state) const { state = state_; }

  int32_t adapt(int32_t now) {
    const int32_t gain = now == 0 ? 0 : 128;
    int32_t sum = 0;
    for (int i = 0; i < g722_zeros; i++) {
      const bool same = (now < 0) == (state_.difference[i] < 0);
      const int32_t zero = (same ? gain : -gain) + ((state_.zero[i] * 32640) >> 15);
      state_.zero[i] = static_cast<int16_t>(zero > 32767 ? 32767 : zero < -32768 ? -32768 : zero);
    }
    for (int i = g722_zeros - 1; i > 0; i--) state_.difference[i] = state_.difference[i - 1];
    state_.difference[0] = static_cast<int16_t>(now);
    for (int i = 0; i < g722_zeros; i++) {
      const int32_t twice = state_.difference[i] * 2;
      sum += (state_.zero[i] * (twice > 32767 ? 32767 : twice < -32768 ? -32768 : twice)) >> 15;
    }
    return sum;
  }

 private:
  G722ZeroState state_;
};

#if KERNEL_WIDE
class G722ZerosWide {
 public:
  explicit G722ZerosWide(const G722ZeroState& state)
      : zero_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state.zero))),
        difference_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state.difference))) {}

  void save(G722ZeroState& state) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state.zero), zero_);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state.difference), difference_);
  }

  /** Takes the quantized difference; returns the sum of the zeros' parts (SZ before it is saturated). */
  int32_t adapt(int32_t now) {
    const __m128i used = _mm_setr_epi16(-1, -1, -1, -1, -1, -1, 0, 0);
    const __m128i gain = _mm_and_si128(used, _mm_set1_epi16(now == 0 ? 0 : 128));
    const __m128i unlike = _mm_srai_epi16(_mm_xor_si128(_mm_set1_epi16(static_cast<int16_t>(now)), difference_), 15);
    const __m128i step = _mm_sub_epi16(_mm_xor_si128(gain, unlike), unlike);
    // b * 32640 >> 15 is b less b / 256, rounded up.
    const __m128i whole = _mm_cmpeq_epi16(_mm_and_si128(zero_, _mm_set1_epi16(255)), _mm_setzero_si128());
    const __m128i leak = _mm_add_epi16(_mm_srai_epi16(zero_, 8), _mm_add_epi16(whole, _mm_set1_epi16(1)));
    zero_ = _mm_adds_epi16(_mm_sub_epi16(zero_, leak), step);
    const __m128i newest = _mm_cvtsi32_si128(now & 0xffff);
    difference_ = _mm_and_si128(used, _mm_or_si128(_mm_slli_si128(difference_, 2), newest));
    // Each product's bits from the 15th on, out of its two halves.
    const __m128i twice = _mm_adds_epi16(difference_, difference_);
    const __m128i upper = _mm_slli_epi16(_mm_mulhi_epi16(zero_, twice), 1);
    const __m128i lower = _mm_srli_epi16(_mm_mullo_epi16(zero_, twice), 15);
    __m128i sum = _mm_madd_epi16(_mm_or_si128(upper, lower), _mm_set1_epi16(1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    return _mm_cvtsi128_si32(sum);
  }

 private:
  __m128i zero_;
  __m128i difference_;
};
using G722Zeros = G722ZerosWide;
#else
using G722Zeros = G722ZerosPortable;
#endif

}  // namespace sidetone
