// Mix-minus: sum everyone once in 32 bits, then give each member the sum without itself, saturated to 16 bits. Exact for up to 65,536
// members, because no intermediate value saturates.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

/** Adds `count` samples to the running sum. */
void mix_add(int32_t* sum, const int16_t* pcm, size_t count);
/** `out` becomes the sum without `self`, saturated. */
void mix_without(const int32_t* sum, const int16_t* self, int16_t* out, size_t count);
/** `out` becomes the whole sum, saturated: what a pure listener hears. */
void mix_whole(const int32_t* sum, int16_t* out, size_t count);
/** Scales in place by `percent` (0 to 200), rounding to nearest and saturating. */
void mix_volume(int16_t* pcm, size_t count, int32_t percent);

}  // namespace sidetone
