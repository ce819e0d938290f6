// The last two steps of a talker's tick as one: the sum without itself, saturated, and G.711 of that, with nothing
// written in between. To the bit what `mix_without` and the encoder give.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernel/dispatch.h"

namespace sidetone {

/** `out` becomes mu-law of the sum without `self`, saturated. */
void mulaw_without(const int32_t* sum, const int16_t* self, uint8_t* out, size_t count);
/** `out` becomes A-law of the sum without `self`, saturated. */
void alaw_without(const int32_t* sum, const int16_t* self, uint8_t* out, size_t count);

/** Both as compiled for one instruction set, which the processor must have. */
struct MixG711Forms {
  void (*mulaw_without)(const int32_t*, const int16_t*, uint8_t*, size_t);
  void (*alaw_without)(const int32_t*, const int16_t*, uint8_t*, size_t);
};
MixG711Forms mix_g711_forms(Width width);

}  // namespace sidetone
