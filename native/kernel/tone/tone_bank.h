// The eight frequencies of DTMF (ITU-T Q.23) and eight of dial tones (ITU-T E.180) side by side: what 5 ms of audio
// hold of each, and what 20 ms do of the former.
//
// The phase of each is told at the middle of the 5 ms. A cosine is the same on both sides of it then and a sine the
// opposite, so both samples of a pair that lie as far from it meet a frequency at once.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernel/dispatch.h"

namespace sidetone {

/** How many frequencies there are of each kind. */
constexpr size_t tones = 8;
constexpr float tone_hz[tones] = {697, 770, 852, 941, 1209, 1336, 1477, 1633};
/** What dial tones are made of all over the world, in Hz. */
constexpr float dial_hz[tones] = {330, 350, 400, 415, 425, 440, 450, 480};
/** The rate of the audio that is judged, in Hz. */
constexpr uint32_t tone_rate_hz = 8000;
/** Steps of 5 ms in the window that is judged, and the samples of one. */
constexpr size_t tone_steps = 4;
constexpr size_t tone_step = 40;
/** What a frequency has turned by at sample `index` of a step, in radians. */
constexpr double tone_angle(double hz, size_t index) {
  return 2 * 3.14159265358979323846 * hz * (static_cast<double>(index) - 0.5 * (tone_step - 1)) / tone_rate_hz;
}

/** The correlation of one step with each frequency of a kind. */
struct ToneBins {
  struct Bin {
    float re;
    float im;
  };
  float re[tones] = {};
  float im[tones] = {};
  Bin of(size_t index) const { return {re[index], im[index]}; }
};

/** What one step, 40 samples, holds. */
struct ToneStep {
  ToneBins keys;
  ToneBins dial;
  float energy;  // the sum of the squares of all samples
};

/** The tables of the correlations. */
struct ToneBank {
  // A row for each pair of samples, from the outermost to the middle, so that one pair meets all frequencies.
  struct Row {
    float keys[tones];
    float dial[tones];
  };
  Row cosine[tone_step / 2];
  Row sine[tone_step / 2];      // negative
  ToneBins turned[tone_steps];  // what each has turned by at the beginning of each step
  // The matrix of each pair of frequencies that takes its two sines apart from each other, over half a window.
  float apart[tones / 2][tones / 2][4][4];
  ToneBank();

  /** What the 40 samples of one step hold. */
  void correlate(const float* pcm, ToneStep& step) const;
  /** The power of each frequency of keys in a whole window, whose steps are given in order. */
  void powers(const ToneBins* const (&steps)[tone_steps], float (&power)[tones]) const;
};

/** The only tables there are. They never change. */
const ToneBank& tone_bank();

/** The two as compiled for one instruction set, which the processor must have. */
struct ToneForms {
  void (*correlate)(const ToneBank& bank, const float* pcm, ToneStep& step);
  void (*powers)(const ToneBank& bank, const ToneBins* const* steps, float* power);
};
ToneForms tone_forms(Width width);

}  // namespace sidetone
