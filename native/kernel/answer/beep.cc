#include "kernel/answer/beep.h"

#include <cmath>

namespace sidetone {
namespace {

constexpr float pi = 3.14159265f;
constexpr float rate_hz = 8000;
constexpr float lowest_hz = 380;
constexpr float highest_hz = 2050;
constexpr float comb_first_hz = 350;
constexpr float comb_hz = 50;
constexpr float least_dbov = -45;
constexpr float least_purity = 0.8f;
constexpr float steady_db = 5;
constexpr uint32_t frames_min = 4;    // a tone of 100 ms fills at least four frames
constexpr uint32_t frames_max = 250;  // 5 s: what is longer is no beep
constexpr uint32_t after_frames = 5;  // that are looked at after the tone: the first two may hold its end
constexpr uint32_t after_loud_frames = 2;
constexpr float after_drop_db = 8;

struct Bin {
  float real = 0;
  float imaginary = 0;
  float power() const { return real * real + imaginary * imaginary; }
};

/** The Fourier sum of `count` samples at one frequency, by rotation. */
Bin bin(const float* pcm, size_t count, float hz) {
  const float angle = 2 * pi * hz / rate_hz;
  const float step_real = std::cos(angle);
  const float step_imaginary = -std::sin(angle);
  float real = 1;
  float imaginary = 0;
  Bin sum;
  for (size_t i = 0; i < count; i++) {
    sum.real += pcm[i] * real;
    sum.imaginary += pcm[i] * imaginary;
    const float next = real * step_real - imaginary * step_imaginary;
    imaginary = real * step_imaginary + imaginary * step_real;
    real = next;
  }
  return sum;
}

constexpr size_t comb_count =
    36;  // from `comb_first_hz` on; a multiple of four, for the compiler to take them by fours

/** Goertzel's factors of the comb. */
struct Comb {
  float factor[comb_count];
  Comb() {
    for (size_t k = 0; k < comb_count; k++) factor[k] = 2 * std::cos(2 * pi * hz(k) / rate_hz);
  }
  static float hz(size_t k) { return comb_first_hz + comb_hz * static_cast<float>(k); }
};

/** The strongest frequency of the comb, by Goertzel's recursion over all of them at once; 0 in silence. */
float strongest(const float* pcm, size_t count) {
  static const Comb comb;
  float last[comb_count] = {};
  float before[comb_count] = {};
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < comb_count; k++) {
      const float now = pcm[i] + comb.factor[k] * last[k] - before[k];
      before[k] = last[k];
      last[k] = now;
    }
  }
  float most = 0;
  float hz = 0;
  for (size_t k = 0; k < comb_count; k++) {
    const float power = last[k] * last[k] + before[k] * before[k] - comb.factor[k] * last[k] * before[k];
    if (power <= most) continue;
    most = power;
    hz = Comb::hz(k);
  }
  return hz;
}

}  // namespace

BeepDetector::Tone BeepDetector::measure(const float* pcm) {
  float energy = 0;
  for (size_t i = 0; i < frame_samples; i++) energy += pcm[i] * pcm[i];
  Tone tone;
  tone.hz = strongest(pcm, frame_samples);
  if (energy <= 0 || tone.hz <= 0) return tone;
  constexpr size_t half = frame_samples / 2;
  const Bin early = bin(pcm, half, tone.hz);
  Bin late = bin(pcm + half, half, tone.hz);
  // The second half is turned back to the beginning of the frame, so that only the distance to the comb is left.
  const float turned = -2 * pi * tone.hz * static_cast<float>(half) / rate_hz;
  const float real = late.real * std::cos(turned) - late.imaginary * std::sin(turned);
  const float imaginary = late.real * std::sin(turned) + late.imaginary * std::cos(turned);
  const float turn =
      std::atan2(imaginary * early.real - real * early.imaginary, real * early.real + imaginary * early.imaginary);
  tone.hz += turn / (2 * pi) * rate_hz / static_cast<float>(half);
  tone.purity = 2 * bin(pcm, frame_samples, tone.hz).power() / (static_cast<float>(frame_samples) * energy);
  return tone;
}

bool BeepDetector::follows(const Tone& tone, float dbov) const {
  if (tone.purity < least_purity || tone.hz < lowest_hz || tone.hz > highest_hz) return false;
  return frames_ == 0 || (std::fabs(tone.hz - hz_) <= 10 + 0.01f * hz_ && std::fabs(dbov - dbov_) <= steady_db);
}

/** Looks at the frames after a tone. True when the line has fallen silent behind it. */
bool BeepDetector::over(float dbov) {
  quiet_frames_++;
  const bool quiet = dbov < dbov_ - after_drop_db;
  if (!quiet && quiet_frames_ > after_loud_frames) quiet_frames_ = 0;  // something else goes on: it was no beep
  if (quiet_frames_ < after_frames) return false;
  quiet_frames_ = 0;
  return true;
}

bool BeepDetector::frame(const float* pcm, float dbov) {
  if (quiet_frames_ > 0) return over(dbov);
  const Tone tone = dbov > least_dbov ? measure(pcm) : Tone();
  if (dbov > least_dbov && follows(tone, dbov)) {
    hz_ = frames_ == 0 ? tone.hz : hz_ + (tone.hz - hz_) / 4;
    dbov_ = dbov;
    frames_++;
    return false;
  }
  const bool tone_ended = frames_ >= frames_min && frames_ <= frames_max;
  frames_ = 0;
  return tone_ended && over(dbov);
}

}  // namespace sidetone
