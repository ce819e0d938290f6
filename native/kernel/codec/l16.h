// L16 (RFC 3551 §4.5.11): samples of 16 bits in network byte order, two octets each.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

constexpr size_t l16_sample_bytes = 2;

/** Writes `count` samples as twice as many octets. */
inline void l16_encode(const int16_t* pcm, uint8_t* out, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const auto bits = static_cast<uint16_t>(pcm[i]);
    out[2 * i] = static_cast<uint8_t>(bits >> 8);
    out[2 * i + 1] = static_cast<uint8_t>(bits);
  }
}

/** Reads `count` samples from twice as many octets. */
inline void l16_decode(const uint8_t* in, int16_t* pcm, size_t count) {
  for (size_t i = 0; i < count; i++) pcm[i] = static_cast<int16_t>(in[2 * i] << 8 | in[2 * i + 1]);
}

}  // namespace sidetone
