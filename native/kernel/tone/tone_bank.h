// The eight frequencies of DTMF (ITU-T Q.23) side by side: what 5 ms of audio hold of each, and what 20 ms do.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sidetone {

constexpr size_t tones = 8;
constexpr float tone_hz[tones] = {697, 770, 852, 941, 1209, 1336, 1477, 1633};
/** Steps of 5 ms in the window that is judged, and the samples of one at 16 kHz. */
constexpr size_t tone_steps = 4;
constexpr size_t tone_step_max = 80;

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

/** Tables of one sample rate. */
struct ToneBank {
  size_t step;
  float row[tone_step_max][2 * tones];  // cosine and sine of the frequencies, so that one sample meets them all
  ToneBins turned[tone_steps];          // what each has turned by at the beginning of each step
  float apart[tones / 2][tones / 2][4]
             [4];  // for each pair: what takes its two sines, over half a window, apart from each other
  explicit ToneBank(uint32_t rate_hz);

  /** What `step` samples hold. */
  void correlate(const int16_t* pcm, ToneBins& bins) const;
  /** The power of each frequency in a whole window, whose steps are given in order. */
  void powers(const ToneBins* const (&steps)[tone_steps], float (&power)[tones]) const;
};

/** The tables for 8000 or 16000. */
const ToneBank& tone_bank(uint32_t rate_hz);

}  // namespace sidetone
