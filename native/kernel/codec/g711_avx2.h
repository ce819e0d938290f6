// G.711 on processors without wide look-ups (AVX2): tables of sixteen bytes, by half of a byte, and multiplications in
// the place of shifts by lane. Both laws are the same code over other tables.
#pragma once
#include "kernel/codec/g711_vbmi.h"

#if KERNEL_WIDE

namespace sidetone {

using Sixteen = uint8_t[16];

struct G711NarrowTables {
  // Encoding: the segment by either half of the magnitude's upper seven bits; by the segment, both bytes of what
  // multiplies by 65,536 and shifts the interval down, and what the interval is combined with.
  Sixteen upper_segment = {};
  Sixteen lower_segment = {};
  Sixteen factor_low = {};
  Sixteen factor_high = {};
  Sixteen combined = {};
  // Decoding: the steps by the lower half of an octet; by the upper one, what is added to their upper byte, and the
  // power of two they are multiplied by.
  Sixteen steps = {};
  Sixteen implied = {};
  Sixteen power = {};

  constexpr explicit G711NarrowTables(Law law) {
    for (int i = 0; i < 16; i++) {
      lower_segment[i] = static_cast<uint8_t>(log2_of(static_cast<uint32_t>(i)) + 1);
      upper_segment[i] = static_cast<uint8_t>(i == 0 ? 0 : log2_of(static_cast<uint32_t>(i)) + 5);
      const int shift = law == Law::a && i == 0 ? 4 : i + 3;
      if (i < 8) {
        factor_low[i] = static_cast<uint8_t>(1 << (16 - shift));
        factor_high[i] = static_cast<uint8_t>((1 << (16 - shift)) >> 8);
        combined[i] = static_cast<uint8_t>((shift - 3) << 4 ^ 16 ^ (law == Law::mu ? 0xff : 0xd5));
      }
      const int segment = (law == Law::mu ? ~i : i ^ 5) & 7;
      const int step = (law == Law::mu ? ~i : i ^ 5) & 15;
      steps[i] = static_cast<uint8_t>(law == Law::mu ? (step << 3) + 132 : (step << 4) + 8);
      implied[i] = static_cast<uint8_t>(law == Law::a && segment > 0 ? 1 : 0);
      power[i] = static_cast<uint8_t>(1 << (law == Law::mu ? segment : segment > 0 ? segment - 1 : 0));
    }
  }
};

inline constexpr G711NarrowTables g711_narrow_tables[] = {G711NarrowTables(Law::mu), G711NarrowTables(Law::a)};

__attribute__((always_inline)) KERNEL_AVX2 inline __m256i g711_table(const Sixteen& table) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
}

/** 32 samples, in two registers, to 32 octets. */
template <Law law>
__attribute__((always_inline)) KERNEL_AVX2 inline __m256i g711_encode32(__m256i first, __m256i second) {
  const G711NarrowTables& tables = g711_narrow_tables[law == Law::mu ? 0 : 1];
  const __m256i samples[2] = {first, second};
  __m256i magnitude[2];
  for (int i = 0; i < 2; i++) {
    magnitude[i] = _mm256_abs_epi16(_mm256_or_si256(samples[i], _mm256_set1_epi16(1)));  // as in G711Encoding
    if (law == Law::mu) magnitude[i] = _mm256_adds_epi16(magnitude[i], _mm256_set1_epi16(132));
  }
  const __m256i half = _mm256_set1_epi8(15);
  const __m256i upper = _mm256_packus_epi16(_mm256_srli_epi16(magnitude[0], 8), _mm256_srli_epi16(magnitude[1], 8));
  const __m256i by_upper =
      _mm256_shuffle_epi8(g711_table(tables.upper_segment), _mm256_and_si256(_mm256_srli_epi16(upper, 4), half));
  const __m256i by_lower = _mm256_shuffle_epi8(g711_table(tables.lower_segment), _mm256_and_si256(upper, half));
  const __m256i segment = _mm256_max_epu8(by_upper, by_lower);
  const __m256i low = _mm256_shuffle_epi8(g711_table(tables.factor_low), segment);
  const __m256i high = _mm256_shuffle_epi8(g711_table(tables.factor_high), segment);
  const __m256i interval = _mm256_packus_epi16(_mm256_mulhi_epu16(magnitude[0], _mm256_unpacklo_epi8(low, high)),
                                               _mm256_mulhi_epu16(magnitude[1], _mm256_unpackhi_epi8(low, high)));
  const __m256i negative =
      _mm256_and_si256(_mm256_packs_epi16(first, second), _mm256_set1_epi8(static_cast<char>(0x80)));
  const __m256i code = _mm256_xor_si256(interval, _mm256_shuffle_epi8(g711_table(tables.combined), segment));
  return _mm256_permute4x64_epi64(_mm256_xor_si256(code, negative), 0xd8);  // packing works within halves
}

/** 32 octets to 32 samples, in two registers. */
template <Law law>
__attribute__((always_inline)) KERNEL_AVX2 inline void g711_decode32(__m256i octets, __m256i (&samples)[2]) {
  const G711NarrowTables& tables = g711_narrow_tables[law == Law::mu ? 0 : 1];
  const __m256i half = _mm256_set1_epi8(15);
  const __m256i zero = _mm256_setzero_si256();
  const __m256i dealt = _mm256_permute4x64_epi64(octets, 0xd8);  // unpacking works within halves
  const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(dealt, 4), half);
  const __m256i steps = _mm256_shuffle_epi8(g711_table(tables.steps), _mm256_and_si256(dealt, half));
  const __m256i implied = _mm256_shuffle_epi8(g711_table(tables.implied), upper);
  const __m256i power = _mm256_shuffle_epi8(g711_table(tables.power), upper);
  samples[0] = _mm256_mullo_epi16(_mm256_unpacklo_epi8(steps, implied), _mm256_unpacklo_epi8(power, zero));
  samples[1] = _mm256_mullo_epi16(_mm256_unpackhi_epi8(steps, implied), _mm256_unpackhi_epi8(power, zero));
  if (law == Law::mu) {
    for (__m256i& each : samples) each = _mm256_sub_epi16(each, _mm256_set1_epi16(132));
  }
  // An octet whose highest bit is 0 is below zero; the 1 below it keeps the others above.
  const __m256i one = _mm256_set1_epi8(1);
  const __m256i sign = _mm256_xor_si256(dealt, _mm256_set1_epi8(static_cast<char>(0x80)));
  samples[0] = _mm256_sign_epi16(samples[0], _mm256_unpacklo_epi8(one, sign));
  samples[1] = _mm256_sign_epi16(samples[1], _mm256_unpackhi_epi8(one, sign));
}

}  // namespace sidetone
#endif
