#include "kernel/codec/g711.h"

#include <cstring>

#include "kernel/codec/g711_avx2.h"
#include "kernel/codec/g711_vbmi.h"
#include "kernel/dispatch.h"

// The logarithm of G.711 is that of a float: converting the magnitude to binary32 leaves the segment in the exponent
// and the four bits of the interval at the top of the mantissa, so encoding is one conversion, one shift and a
// subtraction for every lane. Processors that look bytes up in registers do better (g711_avx2.h, g711_vbmi.h).

namespace sidetone {
namespace {

KERNEL_BODY int32_t float_bits(int32_t value) {
  const float real = static_cast<float>(value);
  int32_t bits;
  std::memcpy(&bits, &real, sizeof bits);
  return bits;
}

KERNEL_BODY void mulaw_encode_body(const int16_t* pcm, uint8_t* out, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const int32_t sample = pcm[i];
    const int32_t sign = sample >> 31;  // -1 for the negative half
    int32_t magnitude = ((sample ^ sign) >> 2) + 33;
    magnitude = magnitude > 0x1fff ? 0x1fff : magnitude;
    const int32_t code = (float_bits(magnitude) >> 19) - ((127 + 5) << 4);
    out[i] = static_cast<uint8_t>((0xff - code) ^ (sign & 0x80));
  }
}

KERNEL_BODY void alaw_encode_body(const int16_t* pcm, uint8_t* out, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const int32_t sample = pcm[i];
    const int32_t sign = sample >> 31;
    const int32_t magnitude = (sample ^ sign) >> 4;
    const int32_t logarithmic = (float_bits(magnitude) >> 19) - ((127 + 3) << 4);
    const int32_t linear = (magnitude - 16) >> 31;  // all ones in the first segment, which is linear
    const int32_t code = (magnitude & linear) | (logarithmic & ~linear);
    out[i] = static_cast<uint8_t>((code | (~sign & 0x80)) ^ 0x55);
  }
}

constexpr int16_t mulaw_sample(uint8_t octet) {
  const int32_t code = octet ^ 0xff;
  const int32_t magnitude = ((((code & 15) << 3) + 132) << ((code >> 4) & 7)) - 132;
  return static_cast<int16_t>(code >= 0x80 ? -magnitude : magnitude);
}

constexpr int16_t alaw_sample(uint8_t octet) {
  const int32_t code = octet ^ 0x55;
  const int32_t segment = (code >> 4) & 7;
  const int32_t step = ((code & 15) << 4) + 8;
  const int32_t magnitude = segment == 0 ? step : (step + 256) << (segment - 1);
  return static_cast<int16_t>(code >= 0x80 ? magnitude : -magnitude);
}

template <int16_t (*sample)(uint8_t)>
struct DecodeTable {
  int16_t samples[256] = {};
  constexpr DecodeTable() {
    for (int i = 0; i < 256; i++) samples[i] = sample(static_cast<uint8_t>(i));
  }
};
constexpr DecodeTable<mulaw_sample> mulaw_samples;
constexpr DecodeTable<alaw_sample> alaw_samples;

void mulaw_encode_portable(const int16_t* pcm, uint8_t* out, size_t count) { mulaw_encode_body(pcm, out, count); }
void alaw_encode_portable(const int16_t* pcm, uint8_t* out, size_t count) { alaw_encode_body(pcm, out, count); }
void mulaw_decode_portable(const uint8_t* in, int16_t* pcm, size_t count) {
  for (size_t i = 0; i < count; i++) pcm[i] = mulaw_samples.samples[in[i]];
}
void alaw_decode_portable(const uint8_t* in, int16_t* pcm, size_t count) {
  for (size_t i = 0; i < count; i++) pcm[i] = alaw_samples.samples[in[i]];
}

#if KERNEL_WIDE
template <Law law>
KERNEL_AVX2 void encode_avx2(const int16_t* pcm, uint8_t* out, size_t count) {
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i* from = reinterpret_cast<const __m256i*>(pcm + i);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        g711_encode32<law>(_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)));
  }
  law == Law::mu ? mulaw_encode_portable(pcm + i, out + i, count - i)
                 : alaw_encode_portable(pcm + i, out + i, count - i);
}

template <Law law>
KERNEL_AVX2 void decode_avx2(const uint8_t* in, int16_t* pcm, size_t count) {
  __m256i samples[2];
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    g711_decode32<law>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i)), samples);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(pcm + i), samples[0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(pcm + i + 16), samples[1]);
  }
  law == Law::mu ? mulaw_decode_portable(in + i, pcm + i, count - i) : alaw_decode_portable(in + i, pcm + i, count - i);
}

struct Pcm {
  static constexpr Order order = Order::plain;
  const int16_t* pcm;
  KERNEL_VBMI inline __attribute__((always_inline)) void pair(size_t at, __m512i& first, __m512i& second) const {
    first = _mm512_loadu_si512(pcm + at);
    second = _mm512_loadu_si512(pcm + at + 32);
  }
  KERNEL_VBMI inline __attribute__((always_inline)) __m512i some(size_t at, __mmask32 wanted) const {
    return _mm512_maskz_loadu_epi16(wanted, pcm + at);
  }
};

template <Law law>
KERNEL_VBMI void encode_vbmi(const int16_t* pcm, uint8_t* out, size_t count) {
  g711_encode<law>(Pcm{pcm}, out, count);
}

template <Law law>
KERNEL_VBMI void decode_vbmi(const uint8_t* in, int16_t* pcm, size_t count) {
  const G711Decoding<law> decoding = G711Decoding<law>::load();
  __m512i samples[2];
  size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    decoding.decode(_mm512_loadu_si512(in + i), samples);
    _mm512_storeu_si512(pcm + i, samples[0]);
    _mm512_storeu_si512(pcm + i + 32, samples[1]);
  }
  if (i == count) return;
  const __mmask64 rest = (__mmask64{1} << (count - i)) - 1;
  decoding.decode(_mm512_maskz_loadu_epi8(rest, in + i), samples);
  _mm512_mask_storeu_epi16(pcm + i, static_cast<__mmask32>(rest), samples[0]);
  _mm512_mask_storeu_epi16(pcm + i + 32, static_cast<__mmask32>(rest >> 32), samples[1]);
}
#endif

}  // namespace

G711Forms g711_forms(Width width) {
#if KERNEL_WIDE
  if (width == Width::vbmi)
    return {encode_vbmi<Law::mu>, encode_vbmi<Law::a>, decode_vbmi<Law::mu>, decode_vbmi<Law::a>};
  if (width >= Width::avx2)
    return {encode_avx2<Law::mu>, encode_avx2<Law::a>, decode_avx2<Law::mu>, decode_avx2<Law::a>};
#endif
  (void)width;
  return {mulaw_encode_portable, alaw_encode_portable, mulaw_decode_portable, alaw_decode_portable};
}

namespace {
const G711Forms widest = g711_forms(kernel_width());
}

void mulaw_encode(const int16_t* pcm, uint8_t* out, size_t count) { widest.mulaw_encode(pcm, out, count); }
void alaw_encode(const int16_t* pcm, uint8_t* out, size_t count) { widest.alaw_encode(pcm, out, count); }
void mulaw_decode(const uint8_t* in, int16_t* pcm, size_t count) { widest.mulaw_decode(in, pcm, count); }
void alaw_decode(const uint8_t* in, int16_t* pcm, size_t count) { widest.alaw_decode(in, pcm, count); }

}  // namespace sidetone
