// A finite impulse response where the outputs lie side by side: output i is the sum of taps[k] * in[i + k], so that a
// coefficient meets a run of inputs.
//
// A register of inputs serves several taps at once: tap k of one register of outputs and tap k + 8 of the register
// before it meet the same inputs. So each is loaded once for up to four multiplications, and these, not the loads (of
// which half lie across two lines of the cache), are the limit.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernel/dispatch.h"

namespace sidetone {

/** Taps that follow each other: `count` of them from `first` in the table of taps on, which meet the inputs from
 * `offset` on. */
struct FirPiece {
  uint32_t offset;
  uint32_t first;
  uint32_t count;
};

constexpr size_t fir_outputs = 80;  // 20 ms at 8 kHz is two such runs
constexpr size_t fir_piece_max = 32;
constexpr size_t fir_phases_max = 3;

/**
 * `fir_outputs` outputs, each the sum over `count` pieces of at most `fir_piece_max` taps. Reads `fir_outputs - 1`
 * inputs beyond each piece. Every output adds its products in the same order, wherever it lies among the others.
 */
void fir_run(const float* in, const float* taps, const FirPiece* pieces, size_t count, float* out);

/**
 * The same for `phases` responses to the same inputs, of which there are at most `fir_phases_max`: here a tap is one
 * weight of each phase, and `first` counts weights; the outputs of the phases are interleaved. Each input is loaded
 * once for all phases, which is better where pieces are too short to share it among taps, and worse by the zeros that
 * fill up what not every phase has.
 */
void fir_run_together(const float* in, const float* weights, const FirPiece* pieces, size_t count, size_t phases,
                      float* out);

/** Both as compiled for one instruction set, which the processor must have. */
struct FirForms {
  void (*run)(const float*, const float*, const FirPiece*, size_t, float*);
  void (*run_together)(const float*, const float*, const FirPiece*, size_t, size_t, float*);
};
FirForms fir_forms(Width width);

}  // namespace sidetone
