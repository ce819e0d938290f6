// ITU-T G.711 mu-law and A-law, bit-exact to the reference software G.191 (ulaw_compress, alaw_compress and their
// inverses): the negative half is one's complement before compression, and the two or four lowest bits of a 16-bit
// sample are dropped.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernel/dispatch.h"

namespace sidetone {

/** Encodes `count` 16-bit samples to mu-law octets. */
void mulaw_encode(const int16_t* pcm, uint8_t* out, size_t count);
/** Encodes `count` 16-bit samples to A-law octets (even bits inverted, as on the wire). */
void alaw_encode(const int16_t* pcm, uint8_t* out, size_t count);
/** Decodes `count` mu-law octets. */
void mulaw_decode(const uint8_t* in, int16_t* pcm, size_t count);
/** Decodes `count` A-law octets. */
void alaw_decode(const uint8_t* in, int16_t* pcm, size_t count);

/** The four conversions as compiled for one instruction set, which the processor must have. */
struct G711Forms {
  void (*mulaw_encode)(const int16_t*, uint8_t*, size_t);
  void (*alaw_encode)(const int16_t*, uint8_t*, size_t);
  void (*mulaw_decode)(const uint8_t*, int16_t*, size_t);
  void (*alaw_decode)(const uint8_t*, int16_t*, size_t);
};
G711Forms g711_forms(Width width);

constexpr uint8_t mulaw_silence = 0xff;
constexpr uint8_t alaw_silence = 0xd5;

}  // namespace sidetone
