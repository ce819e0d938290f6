// Converts between 16-bit samples and the floats that filters work with. Rounding is to the nearest, a half to the even
// one.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernel/dispatch.h"

namespace sidetone {

void float_of(const int16_t* pcm, size_t count, float* out);
/** Converts a sum of samples to floats. */
void float_of(const int32_t* sum, size_t count, float* out);
/** Samples times `scale`, rounded and saturated. */
void pcm_of(const float* in, float scale, size_t count, int16_t* pcm);
/** Adds samples, rounded; both within 31 bits. */
void add_rounded(const float* in, size_t count, int32_t* sum);

/** These as compiled for one instruction set, which the processor must have. */
struct SampleFormatForms {
  void (*pcm_float)(const int16_t*, size_t, float*);
  void (*sum_float)(const int32_t*, size_t, float*);
  void (*pcm_of)(const float*, float, size_t, int16_t*);
  void (*add_rounded)(const float*, size_t, int32_t*);
};
SampleFormatForms sample_format_forms(Width width);

}  // namespace sidetone
