// The eight frequencies of DTMF (ITU-T Q.23) side by side: what 5 ms of audio hold of each, and what 20 ms do.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

constexpr size_t tones = 8;
constexpr float tone_hz[tones] = {697, 770, 852, 941, 1209, 1336, 1477, 1633};
/** The rate of the audio that is judged, in Hz. */
constexpr uint32_t tone_rate_hz = 8000;
/** Steps of 5 ms in the window that is judged, and the samples of one. */
constexpr size_t tone_steps = 4;
constexpr size_t tone_step = 40;

/** The correlation of one step with each frequency. */
struct ToneBins {
  struct Bin {
    float re;
    float im;
  };
  float re[tones] = {};
  float im[tones] = {};
  Bin of(size_t index) const { return {re[index], im[index]}; }
};

/** Cosine and negative sine of eight frequencies, a row for each sample of a step, so that one sample meets them all.
 */
using ToneRows = float[tone_step][2 * tones];

/** What the samples of one step, 40 of them, hold of each frequency of the rows. */
void tone_correlate(const ToneRows& rows, const float* pcm, ToneBins& bins);

/** The tables of the correlations. */
struct ToneBank {
  ToneRows rows;
  ToneBins turned[tone_steps];  // what each has turned by at the beginning of each step
  // For each pair of frequencies: the matrix that takes its two sines apart from each other, over half a window.
  float apart[tones / 2][tones / 2][4][4];
  ToneBank();

  /** What the samples of one step hold of each frequency. */
  void correlate(const float* pcm, ToneBins& bins) const { tone_correlate(rows, pcm, bins); }
  /** The power of each frequency in a whole window, whose steps are given in order. */
  void powers(const ToneBins* const (&steps)[tone_steps], float (&power)[tones]) const;
};

/** The only tables there are. They never change. */
const ToneBank& tone_bank();

}  // namespace sidetone
