#include "plane/leg/concealment.h"

#include <algorithm>
#include <cmath>

namespace sidetone {
namespace {

constexpr double pi = 3.14159265358979323846;
// In samples at 8 kHz; twice as many at 16 kHz.
constexpr std::ptrdiff_t period_least = 32;  // 4 ms, a voice of 250 Hz
constexpr std::ptrdiff_t period_most = 160;  // 20 ms, 50 Hz
constexpr std::ptrdiff_t compared = 60;      // 7.5 ms
constexpr double spread_hz = 40;             // of the resonances, so that the filter does not ring

/** Correlation and energies of the sound with itself, `distance` samples earlier. */
struct Likeness {
  int64_t both = 0;
  int64_t newer = 1;
  int64_t older = 1;
  Likeness(const int16_t* end, std::ptrdiff_t distance, std::ptrdiff_t count) {
    for (std::ptrdiff_t i = -count; i < 0; i++) {
      both += int32_t{end[i]} * end[i - distance];
      newer += int32_t{end[i]} * end[i];
      older += int32_t{end[i - distance]} * end[i - distance];
    }
  }
  double degree() const {
    return static_cast<double>(both) / std::sqrt(static_cast<double>(newer) * static_cast<double>(older));
  }
};

}  // namespace

void Concealment::begin(const int16_t* end, uint32_t rate_hz) {
  *this = Concealment();
  rate_hz_ = rate_hz;
  order_ = rate_hz > 8000 ? 32 : 16;
  window_ = window_ms * rate_hz / 1000;
  find_period(end);
  predict(end);
  excite(end);
}

/** Finds the distance at which the end of the sound is most like what came before it. */
void Concealment::find_period(const int16_t* end) {
  const std::ptrdiff_t scale = rate_hz_ / 8000;
  double best = -2;
  for (std::ptrdiff_t period = period_least * scale; period <= period_most * scale; period++) {
    const double degree = Likeness(end, period, compared * scale).degree();
    if (degree <= best) continue;
    best = degree;
    period_ = static_cast<size_t>(period);
  }
  const Likeness whole(end, static_cast<std::ptrdiff_t>(period_), std::min<std::ptrdiff_t>(period_, 80 * scale));
  const double fall =
      std::clamp(std::sqrt(static_cast<double>(whole.newer) / static_cast<double>(whole.older)), 0.5, 1.0);
  falling_ = static_cast<float>(std::pow(fall, 0.7 / static_cast<double>(period_)));
}

/** Finds the weights that predict a sample from those before it (autocorrelation, Levinson and Durbin). */
void Concealment::predict(const int16_t* end) {
  float windowed[window_max];
  for (size_t i = 0; i < window_; i++) {  // rises slowly and falls fast, because the newest sound counts most
    const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(window_);
    const double rise = place < 0.8 ? std::sin(pi / 2 * place / 0.8) : std::cos(pi / 2 * (place - 0.8) / 0.2);
    windowed[i] = static_cast<float>(end[static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(window_)] * rise);
  }
  double correlation[order_max + 1];
  for (size_t k = 0; k <= order_; k++) {
    double sum = 0;
    for (size_t i = k; i < window_; i++) sum += static_cast<double>(windowed[i]) * windowed[i - k];
    const double spread = 2 * pi * spread_hz * static_cast<double>(k) / rate_hz_;
    correlation[k] = sum * std::exp(-0.5 * spread * spread);
  }
  correlation[0] = correlation[0] * 1.0001 + 1;
  double weights[order_max] = {};
  double error = correlation[0];
  for (size_t i = 0; i < order_; i++) {
    double reflection = correlation[i + 1];
    for (size_t j = 0; j < i; j++) reflection -= weights[j] * correlation[i - j];
    reflection /= error;
    double next[order_max];
    for (size_t j = 0; j < i; j++) next[j] = weights[j] - reflection * weights[i - 1 - j];
    std::copy_n(next, i, weights);
    weights[i] = reflection;
    error *= 1 - reflection * reflection;
  }
  for (size_t i = 0; i < order_; i++) weights_[i] = static_cast<float>(weights[i]);
}

/** Takes the excitation out of the last sound: what the filter did not predict. */
void Concealment::excite(const int16_t* end) {
  for (size_t i = 0; i < window_; i++) {
    const int16_t* sample = end - window_ + i;
    float predicted = 0;
    for (size_t k = 0; k < order_; k++) predicted += weights_[k] * *(sample - 1 - k);
    excitation_[i] = static_cast<float>(*sample) - predicted;
  }
  for (size_t k = 0; k < order_; k++) memory_[k] = *(end - 1 - k);
}

void Concealment::make(int16_t* out, size_t count) {
  const float fade = 1.0f / static_cast<float>(fade_samples());
  for (size_t i = 0; i < count; i++) {
    if (faded()) {
      out[i] = 0;
      continue;
    }
    float sample = excitation_[window_ - period_ + at_];
    at_ = at_ + 1 == period_ ? 0 : at_ + 1;
    for (size_t k = 0; k < order_; k++) sample += weights_[k] * memory_[k];
    for (size_t k = order_ - 1; k > 0; k--) memory_[k] = memory_[k - 1];
    memory_[0] = std::clamp(sample, -32768.0f, 32767.0f);
    out[i] = static_cast<int16_t>(std::lrint(memory_[0] * level_ * (1 - static_cast<float>(made_) * fade)));
    level_ *= falling_;
    made_++;
  }
}

void Concealment::meet(int16_t* pcm, const int16_t* after, size_t count, uint32_t rate_hz) {
  constexpr size_t room = history_ms * 16;
  int16_t reversed[room] = {};  // silence lies where nothing is known
  std::reverse_copy(after, after + count, reversed + room - count);
  Concealment backward;
  backward.begin(reversed + room, rate_hz);
  int16_t made[frame_max];
  backward.make(made, count);
  for (size_t i = 0; i < count; i++) {
    const float place = (static_cast<float>(i) + 0.5f) / static_cast<float>(count);
    const float sum = pcm[i] * std::sqrt(1 - place) + made[count - 1 - i] * std::sqrt(place);
    pcm[i] = static_cast<int16_t>(std::lrint(std::clamp(sum, -32768.0f, 32767.0f)));
  }
}

}  // namespace sidetone
