#include "kernel/mix/mix_g711.h"

#include "kernel/codec/g711.h"
#include "kernel/codec/g711_vbmi.h"
#include "kernel/mix/mix.h"

namespace sidetone {
namespace {

constexpr size_t part = 160;

template <void (*encode)(const int16_t*, uint8_t*, size_t)>
void in_two_steps(const int32_t* sum, const int16_t* self, uint8_t* out, size_t count) {
  int16_t pcm[part];
  for (size_t i = 0; i < count; i += part) {
    const size_t length = count - i < part ? count - i : part;
    mix_without(sum + i, self + i, pcm, length);
    encode(pcm, out + i, length);
  }
}

#if KERNEL_WIDE
struct Others {
  static constexpr Order order = Order::packed;
  const int32_t* sum;
  const int16_t* self;
  /** 16 of them. */
  KERNEL_VBMI inline __attribute__((always_inline)) __m512i few(size_t at) const {
    const __m512i own =
        _mm512_maskz_cvtepi16_epi32(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(self + at)));
    return _mm512_sub_epi32(_mm512_loadu_si512(sum + at), own);
  }
  KERNEL_VBMI inline __attribute__((always_inline)) void pair(size_t at, __m512i& first, __m512i& second) const {
    first = _mm512_packs_epi32(few(at), few(at + 16));
    second = _mm512_packs_epi32(few(at + 32), few(at + 48));
  }
  KERNEL_VBMI inline __attribute__((always_inline)) __m512i some(size_t at, __mmask32 wanted) const {
    const __mmask16 lower = static_cast<__mmask16>(wanted);
    const __mmask16 upper = static_cast<__mmask16>(wanted >> 16);
    const __m512i own[2] = {_mm512_maskz_cvtepi16_epi32(0xffff, _mm256_maskz_loadu_epi16(lower, self + at)),
                            _mm512_maskz_cvtepi16_epi32(0xffff, _mm256_maskz_loadu_epi16(upper, self + at + 16))};
    const __m512i first = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(lower, sum + at), own[0]);
    const __m512i second = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(upper, sum + at + 16), own[1]);
    // Packing works within quarters; their halves are put in order after it.
    return _mm512_maskz_permutexvar_epi64(0xff, _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0),
                                          _mm512_packs_epi32(first, second));
  }
};

template <Law law>
KERNEL_VBMI void without_vbmi(const int32_t* sum, const int16_t* self, uint8_t* out, size_t count) {
  g711_encode<law>(Others{sum, self}, out, count);
}
#endif

}  // namespace

MixG711Forms mix_g711_forms(Width width) {
#if KERNEL_WIDE
  if (width == Width::vbmi) return {without_vbmi<Law::mu>, without_vbmi<Law::a>};
#endif
  (void)width;
  return {in_two_steps<mulaw_encode>, in_two_steps<alaw_encode>};
}

namespace {
const MixG711Forms widest = mix_g711_forms(kernel_width());
}

void mulaw_without(const int32_t* sum, const int16_t* self, uint8_t* out, size_t count) {
  widest.mulaw_without(sum, self, out, count);
}
void alaw_without(const int32_t* sum, const int16_t* self, uint8_t* out, size_t count) {
  widest.alaw_without(sum, self, out, count);
}

}  // namespace sidetone
