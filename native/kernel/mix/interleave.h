// Rows to frames and frames to rows, as channels of audio are interleaved: frame i holds sample i of every row.
#pragma once
#include <cstddef>

#include "kernel/dispatch.h"

namespace sidetone {

/** Writes `frames` frames of one sample each of `count` rows. */
void interleave(const float* const* rows, size_t count, size_t frames, float* out);
/** Reads `frames` frames of `count` samples into as many rows, the first at `rows`, each `stride` after the one before
 * it. */
void deinterleave(const float* in, size_t count, size_t frames, size_t stride, float* rows);

/** Both as compiled for one instruction set, which the processor must have. */
struct InterleaveForms {
  void (*interleave)(const float* const*, size_t, size_t, float*);
  void (*deinterleave)(const float*, size_t, size_t, size_t, float*);
};
InterleaveForms interleave_forms(Width width);

}  // namespace sidetone
