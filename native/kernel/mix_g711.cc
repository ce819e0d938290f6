#include "kernel/mix_g711.h"

#include "kernel/g711.h"
#include "kernel/g711_vbmi.h"
#include "kernel/mix.h"

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
/** Samples of which only those of `wanted` are there. */
KERNEL_VBMI_BODY __m512i without(const int32_t* sum, const int16_t* self, __mmask32 wanted) {
  const __mmask16 first = static_cast<__mmask16>(wanted);
  const __mmask16 second = static_cast<__mmask16>(wanted >> 16);
  const __m512i own[2] = {_mm512_maskz_cvtepi16_epi32(0xffff, _mm256_maskz_loadu_epi16(first, self)),
                          _mm512_maskz_cvtepi16_epi32(0xffff, _mm256_maskz_loadu_epi16(second, self + 16))};
  const __m512i a = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(first, sum), own[0]);
  const __m512i b = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(second, sum + 16), own[1]);
  // Packing works within quarters; their halves are put in order after it.
  return _mm512_maskz_permutexvar_epi64(0xff, _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), _mm512_packs_epi32(a, b));
}

template <Law law>
KERNEL_VBMI void without_vbmi(const int32_t* sum, const int16_t* self, uint8_t* out, size_t count) {
  const G711Encoding<law> encoding = G711Encoding<law>::load();
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), encoding.encode(without(sum + i, self + i, 0xffffffff)));
  }
  if (i == count) return;
  const __mmask32 rest = (__mmask32{1} << (count - i)) - 1;
  _mm256_mask_storeu_epi8(out + i, rest, encoding.encode(without(sum + i, self + i, rest)));
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

void mulaw_without(const int32_t* sum, const int16_t* self, uint8_t* out, size_t count) { widest.mulaw_without(sum, self, out, count); }
void alaw_without(const int32_t* sum, const int16_t* self, uint8_t* out, size_t count) { widest.alaw_without(sum, self, out, count); }

}  // namespace sidetone
