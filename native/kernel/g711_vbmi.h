// G.711 on processors that look bytes up in a register (AVX-512 VBMI): Ice Lake, Zen 4 and later. Both laws are the same code over other tables.
//
// Encoding: with the magnitude in 15 bits, its upper seven say the segment, so one look-up gives the shift that leaves 1 and the four bits of the
// interval, another what to add to these. Decoding: the seven bits of the magnitude look up its two bytes, the eighth negates.
#pragma once
#include "kernel/dispatch.h"

#if KERNEL_WIDE
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define KERNEL_VBMI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,fma")))
#define KERNEL_VBMI_BODY static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,fma")))

namespace sidetone {

enum class Law { mu, a };

constexpr int log2_of(uint32_t value) {
  int log = -1;
  for (; value != 0; value >>= 1) log++;
  return log;
}

struct alignas(64) G711EncodeTables {
  uint8_t shift[128] = {};  // by the upper seven bits of the magnitude
  uint8_t add[128] = {};

  constexpr explicit G711EncodeTables(Law law) {
    for (int i = 0; i < 128; i++) {
      const int segment = log2_of(static_cast<uint32_t>(i)) + 1;  // of 256 << (segment - 1) and more
      const bool linear = law == Law::a && segment == 0;
      shift[i] = static_cast<uint8_t>(linear ? 4 : segment + 3);
      add[i] = static_cast<uint8_t>(linear ? 0 : (segment - 1) * 16);
    }
  }
};

struct alignas(64) G711DecodeTables {
  uint8_t low[128] = {};
  uint8_t high[128] = {};

  constexpr explicit G711DecodeTables(Law law) {
    for (int i = 0; i < 128; i++) {
      const int code = law == Law::mu ? i ^ 0x7f : i ^ 0x55;
      const int segment = code >> 4;
      const int step = code & 15;
      const int mu = (((step << 3) + 132) << segment) - 132;
      const int a = segment == 0 ? (step << 4) + 8 : ((step << 4) + 264) << (segment - 1);
      low[i] = static_cast<uint8_t>(law == Law::mu ? mu : a);
      high[i] = static_cast<uint8_t>((law == Law::mu ? mu : a) >> 8);
    }
  }
};

inline constexpr G711EncodeTables g711_encode_tables[] = {G711EncodeTables(Law::mu), G711EncodeTables(Law::a)};
inline constexpr G711DecodeTables g711_decode_tables[] = {G711DecodeTables(Law::mu), G711DecodeTables(Law::a)};

/** The tables of one law in registers. */
template <Law law>
struct G711Encoding {
  __m512i shift[2];
  __m512i add[2];

  KERNEL_VBMI static inline __attribute__((always_inline)) G711Encoding load() {
    const G711EncodeTables& tables = g711_encode_tables[law == Law::mu ? 0 : 1];
    return {{_mm512_load_si512(tables.shift), _mm512_load_si512(tables.shift + 64)}, {_mm512_load_si512(tables.add), _mm512_load_si512(tables.add + 64)}};
  }

  /** 32 samples to 32 octets. */
  KERNEL_VBMI inline __attribute__((always_inline)) __m256i encode(__m512i sample) const {
    const __m512i sign = _mm512_srai_epi16(sample, 15);
    __m512i magnitude = _mm512_xor_si512(sample, sign);
    if (law == Law::mu) magnitude = _mm512_adds_epi16(magnitude, _mm512_set1_epi16(132));
    const __m512i upper = _mm512_srli_epi16(magnitude, 8);
    constexpr __mmask64 lower_bytes = 0x5555555555555555;
    const __m512i count = _mm512_maskz_permutex2var_epi8(lower_bytes, shift[0], upper, shift[1]);
    const __m512i interval = _mm512_srlv_epi16(magnitude, count);
    const __m512i code = _mm512_add_epi8(interval, _mm512_permutex2var_epi8(add[0], upper, add[1]));
    const __m512i marked = _mm512_ternarylogic_epi32(code, sign, _mm512_set1_epi16(0x80), 0x78);  // code ^ (sign & 0x80)
    return _mm256_xor_si256(_mm512_maskz_cvtepi16_epi8(0xffffffff, marked), _mm256_set1_epi8(static_cast<char>(law == Law::mu ? 0xff : 0xd5)));
  }
};

template <Law law>
struct G711Decoding {
  __m512i low[2];
  __m512i high[2];

  KERNEL_VBMI static inline __attribute__((always_inline)) G711Decoding load() {
    const G711DecodeTables& tables = g711_decode_tables[law == Law::mu ? 0 : 1];
    return {{_mm512_load_si512(tables.low), _mm512_load_si512(tables.low + 64)}, {_mm512_load_si512(tables.high), _mm512_load_si512(tables.high + 64)}};
  }

  /** 64 octets to two times 32 samples. */
  KERNEL_VBMI inline __attribute__((always_inline)) void decode(__m512i octets, __m512i (&samples)[2]) const {
    // Unpacking takes the lower and the upper half of each quarter, so the quarters are dealt out first.
    const __m512i dealt = _mm512_maskz_permutexvar_epi64(0xff, _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0), octets);
    const __m512i lows = _mm512_permutex2var_epi8(low[0], dealt, low[1]);
    const __m512i highs = _mm512_permutex2var_epi8(high[0], dealt, high[1]);
    const __mmask64 negative = ~_mm512_movepi8_mask(octets);
    const __m512i zero = _mm512_setzero_si512();
    samples[0] = _mm512_unpacklo_epi8(lows, highs);
    samples[1] = _mm512_unpackhi_epi8(lows, highs);
    samples[0] = _mm512_mask_sub_epi16(samples[0], static_cast<__mmask32>(negative), zero, samples[0]);
    samples[1] = _mm512_mask_sub_epi16(samples[1], static_cast<__mmask32>(negative >> 32), zero, samples[1]);
  }
};

}  // namespace sidetone
#endif
