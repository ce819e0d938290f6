// G.711 on processors that look bytes up in a register (AVX-512 VBMI): Ice Lake, Zen 4 and later. Both laws are the
// same code over other tables.
//
// Encoding: with the magnitude in 15 bits, its upper seven say the segment, so one look-up gives the shift that leaves
// 1 and the four bits of the interval, and the shift says what these are to be combined with. Decoding: the seven bits
// of the magnitude look up its two bytes, the eighth negates.
#pragma once
#include "kernel/dispatch.h"

#if KERNEL_WIDE
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define KERNEL_VBMI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,fma")))
#define KERNEL_VBMI_BODY \
  static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,fma")))

namespace sidetone {

enum class Law { mu, a };

constexpr int log2_of(uint32_t value) {
  int log = -1;
  for (; value != 0; value >>= 1) log++;
  return log;
}

/** How 64 samples lie in two registers: as in memory, or as 32-bit ones are when they are packed, each quarter of the
 * registers by itself. */
enum class Order { plain, packed };

struct alignas(64) G711EncodeTables {
  uint8_t shift[128] = {};    // by the upper seven bits of the magnitude
  int32_t order[2][16] = {};  // by which quarters of the registers packing to bytes leaves them, for either order
  uint8_t segment[16] = {};   // by the shift
  // Pairs of 16-bit constants.
  int32_t one = 0x00010001;
  int32_t bias = 0x00840084;
  int32_t sign = static_cast<int32_t>(0x80808080);

  constexpr explicit G711EncodeTables(Law law) {
    for (int i = 0; i < 128; i++) {
      const int segment_of = log2_of(static_cast<uint32_t>(i)) + 1;  // of 256 << (segment - 1) and more
      shift[i] = static_cast<uint8_t>(law == Law::a && segment_of == 0 ? 4 : segment_of + 3);
    }
    // Shift 4 is A-law's segments 0 and 1, which are one straight line. The leading 1 is taken away, and what the wire
    // inverts is inverted.
    for (int count = 3; count <= 10; count++)
      segment[count] = static_cast<uint8_t>((count - 3) << 4 ^ 16 ^ (law == Law::mu ? 0xff : 0xd5));
    for (int i = 0; i < 16; i++) {
      order[0][i] = i < 8 ? i / 2 * 4 + i % 2 : (i - 8) / 2 * 4 + 2 + i % 2;
      order[1][i] = i % 4 * 4 + i / 4;
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
  __m512i segment;
  __m512i order;
  __m512i one, bias, sign;

  KERNEL_VBMI static inline __attribute__((always_inline)) G711Encoding load(Order order) {
    const G711EncodeTables* tables = &g711_encode_tables[law == Law::mu ? 0 : 1];
    __asm__(""
            : "+r"(tables));  // or the compiler makes the constants in general registers, and moving them over costs a
                              // fifth of a frame
    return {{_mm512_load_si512(tables->shift), _mm512_load_si512(tables->shift + 64)},
            _mm512_maskz_broadcast_i32x4(0xffff, _mm_load_si128(reinterpret_cast<const __m128i*>(tables->segment))),
            _mm512_load_si512(tables->order[order == Order::plain ? 0 : 1]),
            _mm512_set1_epi32(tables->one),
            _mm512_set1_epi32(tables->bias),
            _mm512_set1_epi32(tables->sign)};
  }

  /** The 1 and the interval of 32 samples, and the shift that left them. */
  KERNEL_VBMI inline __attribute__((always_inline)) void split(__m512i sample, __m512i& interval,
                                                               __m512i& count) const {
    // The one's complement of the negative half, but for the lowest bit, which is dropped: |-2k + 1| = 2k - 1 = ~(-2k).
    __m512i magnitude = _mm512_abs_epi16(_mm512_or_si512(sample, one));
    if (law == Law::mu) magnitude = _mm512_adds_epi16(magnitude, bias);
    constexpr __mmask64 lower_bytes = 0x5555555555555555;
    count = _mm512_maskz_permutex2var_epi8(lower_bytes, shift[0], _mm512_srli_epi16(magnitude, 8), shift[1]);
    interval = _mm512_srlv_epi16(magnitude, count);
  }

  /** 64 samples in the order that was loaded to 64 octets. */
  KERNEL_VBMI inline __attribute__((always_inline)) __m512i encode(__m512i first, __m512i second) const {
    __m512i interval[2];
    __m512i count[2];
    split(first, interval[0], count[0]);
    split(second, interval[1], count[1]);
    const __m512i negative = _mm512_and_si512(_mm512_packs_epi16(first, second), sign);
    const __m512i counts = _mm512_packus_epi16(count[0], count[1]);
    const __m512i code = _mm512_ternarylogic_epi32(_mm512_packus_epi16(interval[0], interval[1]),
                                                   _mm512_shuffle_epi8(segment, counts), negative, 0x96);
    return _mm512_maskz_permutexvar_epi32(0xffff, order, code);
  }

  /** 32 samples as in memory to 32 octets. */
  KERNEL_VBMI inline __attribute__((always_inline)) __m256i encode(__m512i sample) const {
    __m512i interval;
    __m512i count;
    split(sample, interval, count);
    const __m512i negative = _mm512_and_si512(_mm512_srli_epi16(sample, 8), sign);
    return _mm512_maskz_cvtepi16_epi8(
        0xffffffff, _mm512_ternarylogic_epi32(interval, _mm512_shuffle_epi8(segment, count), negative, 0x96));
  }
};

/** Encodes `count` samples of a source, which gives 64 at a place in its `order`, or as many of 32 as are wanted as
 * they are in memory. */
template <Law law, typename Source>
KERNEL_VBMI_BODY void g711_encode(const Source& source, uint8_t* out, size_t count) {
  const G711Encoding<law> encoding = G711Encoding<law>::load(Source::order);
  size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    __m512i first;
    __m512i second;
    source.pair(i, first, second);
    _mm512_storeu_si512(out + i, encoding.encode(first, second));
  }
  if (i + 32 <= count) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), encoding.encode(source.some(i, 0xffffffff)));
    i += 32;
  }
  if (i == count) return;
  const __mmask32 rest = (__mmask32{1} << (count - i)) - 1;
  _mm256_mask_storeu_epi8(out + i, rest, encoding.encode(source.some(i, rest)));
}

template <Law law>
struct G711Decoding {
  __m512i low[2];
  __m512i high[2];

  KERNEL_VBMI static inline __attribute__((always_inline)) G711Decoding load() {
    const G711DecodeTables& tables = g711_decode_tables[law == Law::mu ? 0 : 1];
    return {{_mm512_load_si512(tables.low), _mm512_load_si512(tables.low + 64)},
            {_mm512_load_si512(tables.high), _mm512_load_si512(tables.high + 64)}};
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
