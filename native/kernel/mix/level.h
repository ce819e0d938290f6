// Computes the level of a span, in dB below full scale (dBov, RFC 6465): 0 is the loudest square wave, -127 is digital
// silence.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernel/dispatch.h"

namespace sidetone {

/** Sum of squares of `count` samples; exact. */
uint64_t level_energy(const int16_t* pcm, size_t count);

/** Root mean square over `count` samples in dBov, -127 to 0. */
float level_dbov(const int16_t* pcm, size_t count);

/** The sum as compiled for one instruction set, which the processor must have. */
using EnergyForm = uint64_t (*)(const int16_t*, size_t);
EnergyForm energy_form(Width width);

}  // namespace sidetone
