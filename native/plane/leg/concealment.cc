#include "plane/leg/concealment.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sidetone {
namespace {

constexpr double pi = 3.14159265358979323846;
// Lengths are in samples at 8 kHz, and in proportion at higher rates.
constexpr size_t period_least = 32;  // 4 ms, a voice of 250 Hz
constexpr size_t period_most = 160;  // 20 ms, 50 Hz
constexpr size_t compared = 60;      // 7.5 ms
constexpr double spread_hz = 40;     // of the resonances, so that the filter does not ring

constexpr size_t lanes = 4;  // sums that the compiler keeps in one register of every x86-64

/** The sum of products; `count` is a multiple of `lanes`. */
float dot(const float* a, const float* b, size_t count) {
  float sums[lanes] = {};
  for (size_t i = 0; i < count; i += lanes) {
    for (size_t k = 0; k < lanes; k++) sums[k] += a[i + k] * b[i + k];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/** How much two sounds are alike: their correlation, from -1 to 1. */
struct Likeness {
  float both = 0;
  float first = 1;
  float second = 1;

  void add(float a, float b) {
    both += a * b;
    first += a * a;
    second += b * b;
  }
  float degree() const { return both / std::sqrt(first * second); }
};

/** The analysis window of one rate, and what is multiplied with the correlations so that resonances spread. */
struct Shapes {
  float window[Concealment::window_max];
  double spread[Concealment::order + 1];

  explicit Shapes(uint32_t rate_hz) {
    const size_t count = Concealment::window_ms * rate_hz / 1000;
    for (size_t i = 0; i < count; i++) {  // rises slowly and falls fast, because the newest sound counts most
      const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
      const double rise = place < 0.8 ? std::sin(pi / 2 * place / 0.8) : std::cos(pi / 2 * (place - 0.8) / 0.2);
      window[i] = static_cast<float>(rise);
    }
    for (size_t k = 0; k <= Concealment::order; k++) {
      const double turn = 2 * pi * spread_hz * static_cast<double>(k) / rate_hz;
      spread[k] = std::exp(-0.5 * turn * turn);
    }
  }
};

const Shapes& shapes(uint32_t rate_hz) {
  static const Shapes narrow(8000);
  static const Shapes wide(16000);
  static const Shapes wider(24000);
  return rate_hz > 16000 ? wider : rate_hz > 8000 ? wide : narrow;
}

}  // namespace

void Concealment::begin(const int16_t* end, uint32_t rate_hz) {
  *this = Concealment();
  rate_hz_ = rate_hz;
  window_ = window_ms * rate_hz / 1000;
  const size_t count = history_ms * rate_hz / 1000;
  float sound[history_max];
  for (size_t i = 0; i < count; i++) sound[i] = *(end - count + i);
  find_period(sound + count);
  predict(sound + count);
  excite(sound + count);
}

/** Finds the distance at which the end of the sound is most like what came before it. */
void Concealment::find_period(const float* end) {
  const size_t scale = rate_hz_ / 8000;
  const size_t count = compared * scale;
  const float* newest = end - count;
  const float* least = newest - period_least * scale;
  double older = 1 + static_cast<double>(dot(least, least, count));  // exact enough to go from loud to quiet sound
  float best = -std::numeric_limits<float>::infinity();
  for (size_t period = period_least * scale; period <= period_most * scale; period++) {
    const float* earlier = newest - period;
    const float both = dot(newest, earlier, count);
    const float degree = both / std::sqrt(std::max(static_cast<float>(older), 1.0f));
    if (degree > best) {
      best = degree;
      period_ = period;
    }
    older += static_cast<double>(earlier[-1] * earlier[-1] - earlier[count - 1] * earlier[count - 1]);
  }
  const size_t whole = std::min(period_, 80 * scale) / lanes * lanes;
  const float* last = end - whole;
  const double newer_energy = 1 + static_cast<double>(dot(last, last, whole));
  const double older_energy = 1 + static_cast<double>(dot(last - period_, last - period_, whole));
  const double fall = std::clamp(std::sqrt(newer_energy / older_energy), 0.5, 1.0);
  falling_ = static_cast<float>(std::pow(fall, 0.9 / static_cast<double>(period_)));
}

/** Finds the weights that predict a sample from those before it (autocorrelation, Levinson and Durbin). */
void Concealment::predict(const float* end) {
  const Shapes& shape = shapes(rate_hz_);
  float windowed[window_max + order] = {};  // zeros before it, so that every sum has the same length
  for (size_t i = 0; i < window_; i++) windowed[order + i] = *(end - window_ + i) * shape.window[i];
  const float* sound = windowed + order;
  double correlation[order + 1];
  for (size_t k = 0; k <= order; k++)
    correlation[k] = static_cast<double>(dot(sound, sound - k, window_)) * shape.spread[k];
  correlation[0] = correlation[0] * 1.0001 + 1;
  double weights[order] = {};
  double error = correlation[0];
  for (size_t i = 0; i < order; i++) {
    double reflection = correlation[i + 1];
    for (size_t j = 0; j < i; j++) reflection -= weights[j] * correlation[i - j];
    reflection /= error;
    double next[order];
    for (size_t j = 0; j < i; j++) next[j] = weights[j] - reflection * weights[i - 1 - j];
    std::copy_n(next, i, weights);
    weights[i] = reflection;
    error *= 1 - reflection * reflection;
  }
  for (size_t i = 0; i < order; i++) weights_[i] = static_cast<float>(weights[i]);
}

/** Takes the excitation out of the last sound: what the filter did not predict. */
void Concealment::excite(const float* end) {
  const float* sound = end - window_;
  std::copy_n(sound, window_, excitation_);
  for (size_t k = 0; k < order; k++) {
    const float weight = weights_[k];
    const float* before = sound - 1 - k;
    for (size_t i = 0; i < window_; i++) excitation_[i] -= weight * before[i];
  }
  // The filter's memory: what the sound so far adds to the samples that come, the next one first.
  for (size_t k = 0; k < order; k++) {
    for (size_t i = k; i < order; i++) memory_[k] += weights_[i] * *(end - 1 - (i - k));
  }
}

void Concealment::make(int16_t* out, size_t count) {
  const float fade = 1.0f / static_cast<float>(fade_samples());
  for (size_t i = 0; i < count; i++) {
    if (faded()) {
      out[i] = 0;
      continue;
    }
    const float sample = std::clamp(excitation_[window_ - period_ + at_] + memory_[0], -32768.0f, 32767.0f);
    at_ = at_ + 1 == period_ ? 0 : at_ + 1;
    for (size_t k = 0; k < order; k++) memory_[k] = memory_[k + 1] + weights_[k] * sample;
    out[i] = static_cast<int16_t>(std::lrint(sample * level_ * (1 - static_cast<float>(made_) * fade)));
    level_ *= falling_;
    made_++;
  }
}

void Concealment::meet(int16_t* pcm, size_t count, const int16_t* after, size_t known, uint32_t rate_hz) {
  int16_t reversed[history_max] = {};  // silence lies where nothing is known
  std::reverse_copy(after, after + known, reversed + history_max - known);
  Concealment backward;
  backward.begin(reversed + history_max, rate_hz);
  int16_t made[frame_max];
  backward.make(made, count);
  Likeness likeness;
  for (size_t i = 0; i < count; i++) likeness.add(pcm[i], made[count - 1 - i]);
  const float alike = 2 * std::max(likeness.degree(), 0.0f);
  for (size_t i = 0; i < count; i++) {
    const float place = (static_cast<float>(i) + 0.5f) / static_cast<float>(count);
    const float here = std::sqrt(1 - place);
    const float there = std::sqrt(place);
    const float sum = (pcm[i] * here + made[count - 1 - i] * there) / std::sqrt(1 + alike * here * there);
    pcm[i] = static_cast<int16_t>(std::lrint(std::clamp(sum, -32768.0f, 32767.0f)));
  }
}

}  // namespace sidetone
