#include "kernel/tone/dial_tone.h"

#include <cmath>

namespace sidetone {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr float rate = 0.008f;  // a sine is followed with a time constant of some 1 / rate samples: 16 ms

struct Tables {
  ToneRows rows;
  float columns[2 * tones][tone_step];  // the same by frequency, so that eight samples meet one sine at once
  ToneBins turn;                        // by what each sine turns in one step
  Tables() {
    for (size_t k = 0; k < tones; k++) {
      const double angle = 2 * pi * DialTone::hz[k] / tone_rate_hz;
      for (size_t i = 0; i < tone_step; i++) {
        columns[k][i] = rows[i][k] = static_cast<float>(std::cos(angle * static_cast<double>(i)));
        columns[tones + k][i] = rows[i][tones + k] = static_cast<float>(-std::sin(angle * static_cast<double>(i)));
      }
      turn.re[k] = static_cast<float>(std::cos(angle * tone_step));
      turn.im[k] = static_cast<float>(std::sin(angle * tone_step));
    }
  }
};
const Tables tables;

}  // namespace

void DialTone::remove(const float* in, float* out) {
  float rest[tone_step];
  for (size_t i = 0; i < tone_step; i++) rest[i] = in[i];
  for (size_t k = 0; k < tones; k++) {
    const float re = sines_.re[k];
    const float im = sines_.im[k];
    for (size_t i = 0; i < tone_step; i++) rest[i] -= re * tables.columns[k][i] + im * tables.columns[tones + k][i];
  }
  ToneBins found;
  tone_correlate(tables.rows, rest, found);
  for (size_t k = 0; k < tones; k++) {
    const float re = sines_.re[k] + rate * found.re[k];
    const float im = sines_.im[k] + rate * found.im[k];
    sines_.re[k] = re * tables.turn.re[k] - im * tables.turn.im[k];
    sines_.im[k] = re * tables.turn.im[k] + im * tables.turn.re[k];
  }
  for (size_t i = 0; i < tone_step; i++) out[i] = rest[i];
}

float DialTone::power() const {
  float sum = 0;
  for (size_t k = 0; k < tones; k++) sum += sines_.re[k] * sines_.re[k] + sines_.im[k] * sines_.im[k];
  return sum;
}

}  // namespace sidetone
