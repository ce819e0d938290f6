// Mix-minus: sum everyone once in 32 bits, then give each member the sum without itself, saturated to 16 bits. Exact
// for up to 65,536 members, because no intermediate value saturates. Gains are Q14 (16384 is unity) and move linearly
// over a few milliseconds, so that nobody hears a step.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

constexpr int32_t gain_unity = 16384;
/** `percent` (0 to 200) as a Q14 gain. */
constexpr int32_t gain_of(int32_t percent) { return (percent * gain_unity + 50) / 100; }

/** Adds `count` samples to the running sum. */
void mix_add(int32_t* sum, const int16_t* pcm, size_t count);
/** `out` becomes the sum without `self`, saturated. */
void mix_without(const int32_t* sum, const int16_t* self, int16_t* out, size_t count);
/** `out` becomes the whole sum, saturated: what a pure listener hears. */
void mix_whole(const int32_t* sum, int16_t* out, size_t count);
/** Adds `pcm` to `out`, saturating. */
void mix_over(int16_t* out, const int16_t* pcm, size_t count);
/** Scales in place by a gain that moves from `from` to `to` over the first `ramp` samples and then stays, rounding to
 * nearest and saturating. */
void mix_gain(int16_t* pcm, size_t count, int32_t from, int32_t to, size_t ramp);
/** What is left, at a sample of a ramp, of a sound that was cut off at the value `from`. */
constexpr int32_t mix_fall(int32_t from, size_t at, size_t ramp) {
  return static_cast<int32_t>(static_cast<int64_t>(from) * static_cast<int64_t>(ramp - 1 - at) /
                              static_cast<int64_t>(ramp));
}
/** Whether every sample is zero. */
bool mix_silent(const int16_t* pcm, size_t count);

}  // namespace sidetone
