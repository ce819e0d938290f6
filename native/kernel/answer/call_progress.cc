#include "kernel/answer/call_progress.h"

#include <cmath>

namespace sidetone {
namespace {

constexpr float pi = 3.14159265f;
constexpr float rate_hz = 8000;
constexpr size_t bin_count = 4;  // 350, 400, 450 and 500 Hz, which are orthogonal over a frame of 20 ms
constexpr float first_hz = 350;
constexpr float bin_hz = 50;
constexpr float least_share = 0.75f;  // a tone half-way between two of them has 0.9 of its power in the four
constexpr uint32_t frame_ms = 20;

/** Goertzel's factors of the bins. */
struct Bins {
  float factor[bin_count];
  Bins() {
    for (size_t k = 0; k < bin_count; k++)
      factor[k] = 2 * std::cos(2 * pi * (first_hz + bin_hz * static_cast<float>(k)) / rate_hz);
  }
};

/** The part of a frame's power that lies in the bins, 0 to 1. */
float share(const float* pcm, size_t count) {
  static const Bins bins;
  float last[bin_count] = {};
  float before[bin_count] = {};
  float energy = 0;
  for (size_t i = 0; i < count; i++) {
    energy += pcm[i] * pcm[i];
    for (size_t k = 0; k < bin_count; k++) {
      const float now = pcm[i] + bins.factor[k] * last[k] - before[k];
      before[k] = last[k];
      last[k] = now;
    }
  }
  if (energy <= 0) return 0;
  float power = 0;
  for (size_t k = 0; k < bin_count; k++)
    power += last[k] * last[k] + before[k] * before[k] - bins.factor[k] * last[k] * before[k];
  return 2 * power / (static_cast<float>(count) * energy);
}

}  // namespace

bool CallProgress::frame(const float* pcm, bool audible) {
  frames_ = audible && share(pcm, frame_samples) >= least_share ? frames_ + 1 : 0;
  return frames_ * frame_ms >= least_ms;
}

}  // namespace sidetone
