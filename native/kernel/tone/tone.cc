#include "kernel/tone/tone.h"

#include <algorithm>
#include <cmath>

namespace sidetone {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr char keys[4][5] = {"123A", "456B", "789C", "*0#D"};

constexpr float share_least = 0.88f;           // of the two tones in all the sound
constexpr float nominal_share_least = 0.1f;    // of the nominal frequencies: tones that are 2 % off keep 0.2
constexpr float whole_window = 80.0f * 80.0f;  // what a sine of amplitude 1 has in a window: half its samples, squared
constexpr float power_least = 58.0f * 58.0f;   // amplitude of one tone: -52 dB of full scale, some -49 dBm0
constexpr float twist_most = 8.0f;             // of one group over the other: 9 dB, where Q.24 asks for 4 and 8
constexpr float harmonic_most = 0.05f;         // -13 dB
constexpr float deviation_most = 0.02f;
constexpr uint32_t hits_least = 4;
constexpr uint32_t misses_most = 8;
constexpr float dial_tone_share_least = 0.05f;      // of all the sound: less spoils no key either
constexpr float dial_tone_least = 100.0f * 100.0f;  // -47 dB of full scale: softer ones spoil no key

}  // namespace

ToneDetector::ToneDetector(uint32_t rate_hz) : wide_(rate_hz >= 16000) {}

bool ToneDetector::process(const int16_t* pcm, size_t count, Key& key) {
  bool ended = false;
  const size_t taken = wide_ ? 2 * tone_step : tone_step;
  for (size_t at = 0; at + taken <= count; at += taken) {
    float samples[tone_step];
    if (wide_) half_band_.halve(pcm + at, tone_step, samples);
    else std::copy_n(pcm + at, tone_step, samples);
    ended = step(samples, key) || ended;
  }
  return ended;
}

bool ToneDetector::step(const float* pcm, Key& key) {
  ToneStep held;
  tone_bank().correlate(pcm, held);
  plain_.take(pcm, held);
  const char heard = plain_.judge();
  if (plain_.newest_power() < dial_tone_least) {
    dial_tone_.reset();
    return follow(heard, key);
  }
  const ToneBins expected = dial_tone_.follow(held.dial);
  if (dial_tone_.power() < std::max(dial_tone_least, dial_tone_share_least * plain_.power())) {
    without_dial_tone_.reset();
    return follow(heard, key);
  }
  float rest[tone_step];
  DialTone::remove(expected, pcm, rest);
  tone_bank().correlate(rest, held);
  without_dial_tone_.take(rest, held);
  return follow(heard != 0 ? heard : without_dial_tone_.judge(), key);
}

/** Makes keys of the judgements of the windows. True, with `key`, when one has ended. */
bool ToneDetector::follow(char heard, Key& key) {
  length_++;
  if (down_) {
    if (heard == candidate_) {
      misses_ = 0;
      return false;
    }
    if (++misses_ < misses_most && heard == 0) return false;
    end(key);
    candidate_ = heard;
    hits_ = heard != 0 ? 1 : 0;
    length_ = 1;
    return true;
  }
  if (heard == 0 || heard != candidate_) {
    candidate_ = heard;
    hits_ = heard != 0 ? 1 : 0;
    length_ = 1;
    return false;
  }
  down_ = ++hits_ >= hits_least;
  misses_ = 0;
  return false;
}

void ToneDetector::end(Key& key) {
  key.key = candidate_;
  const uint32_t seen = length_ - misses_ - 1;  // from the first window that held the key to the last
  key.duration_ms = seen * 5 + 20;
  down_ = false;
  misses_ = 0;
}

bool ToneDetector::finish(Key& key) {
  if (!down_) return false;
  misses_++;
  end(key);
  candidate_ = 0;
  hits_ = 0;
  return true;
}

float ToneWindow::power() const {
  float energy = 0;
  for (const float part : energy_) energy += part;
  return 2 * energy / static_cast<float>(steps * tone_step);
}

float ToneWindow::newest_power() const { return 2 * energy_[newest_] / static_cast<float>(tone_step); }

void ToneWindow::reset() {
  for (float& energy : energy_) energy = 0;  // of which nothing is judged
}

void ToneWindow::take(const float* pcm, const ToneStep& step) {
  newest_ = (newest_ + 1) % steps;
  bins_[newest_] = step.keys;
  energy_[newest_] = step.energy;
  int16_t* kept = pcm_ + newest_ * tone_step;
  // What is left without its dial tone may be louder than 16 bits tell.
  for (size_t i = 0; i < tone_step; i++) kept[i] = static_cast<int16_t>(std::clamp(pcm[i], -32768.0f, 32767.0f));
}

/** The complex amplitudes of a pair of sines in one half of the window, at the half's own beginning. */
void ToneWindow::fit(size_t low, size_t high, size_t half, Bin& low_sine, Bin& high_sine) const {
  float products[4];
  const size_t index[2] = {low, 4 + high};
  for (size_t k = 0; k < 2; k++) {
    const Bin first = at(index[k], 2 * half);
    const Bin second = at(index[k], 2 * half + 1);
    const Bin turn = tone_bank().turned[1].of(index[k]);
    products[2 * k] = first.re + second.re * turn.re - second.im * turn.im;
    products[2 * k + 1] = first.im + second.re * turn.im + second.im * turn.re;
  }
  float fitted[4];
  for (size_t r = 0; r < 4; r++) {
    fitted[r] = 0;
    for (size_t c = 0; c < 4; c++) fitted[r] += tone_bank().apart[low][high][r][c] * products[c];
  }
  low_sine = {fitted[0], fitted[1]};
  high_sine = {fitted[2], fitted[3]};
}

/** Power (amplitude squared) of a sine seen in both halves, or a negative number where it is out of tolerance or of
 * unequal halves. */
float ToneWindow::steady(size_t index, Bin early, Bin late) const {
  const float first = early.re * early.re + early.im * early.im;
  const float second = late.re * late.re + late.im * late.im;
  if (first > 3 * second || second > 3 * first) return -1;  // a window that is half empty
  // The nominal sine turns by two steps between the halves; what it turned more or less is its deviation.
  const Bin two = tone_bank().turned[2].of(index);
  const Bin back{late.re * two.re - late.im * two.im, late.re * two.im + late.im * two.re};
  const float hz = std::atan2(back.im * early.re - back.re * early.im, back.re * early.re + back.im * early.im) /
                   static_cast<float>(2 * pi * 0.010);
  if (std::fabs(hz) > deviation_most * tone_hz[index]) return -1;
  const float x = static_cast<float>(pi * 0.010) * hz;
  const float loss = std::fabs(x) < 1e-3f ? 1.0f : std::sin(x) / x;
  return (first + second) * 0.5f / (loss * loss);
}

float ToneWindow::harmonic(float hz) const {
  float re = 0;
  float im = 0;
  const double angle = 2 * pi * hz / tone_rate_hz;
  const float turn_re = static_cast<float>(std::cos(angle));
  const float turn_im = static_cast<float>(std::sin(angle));
  const double slow =
      2 * pi /
      static_cast<double>(steps * tone_step);  // of the Hann window, so that the tones themselves do not leak in
  const float slow_re = static_cast<float>(std::cos(slow));
  const float slow_im = static_cast<float>(std::sin(slow));
  float c = 1;
  float s = 0;
  float wc = 1;
  float ws = 0;
  for (size_t i = 0; i < steps * tone_step; i++) {
    const float sample = (1.0f - wc) * pcm_[((newest_ + 1) % steps * tone_step + i) % (steps * tone_step)];
    re += sample * c;
    im += sample * s;
    const float next = c * turn_re - s * turn_im;
    s = c * turn_im + s * turn_re;
    c = next;
    const float window = wc * slow_re - ws * slow_im;
    ws = wc * slow_im + ws * slow_re;
    wc = window;
  }
  const float scale = 2.0f / static_cast<float>(steps * tone_step);
  return (re * re + im * im) * scale * scale;
}

char ToneWindow::judge() const {
  float energy = 0;
  for (const float part : energy_) energy += part;
  const float mean =
      energy / static_cast<float>(steps * tone_step);  // two sines of amplitude a have a mean square of a squared
  if (mean < power_least) return 0;
  // A step alone hardly tells neighbours apart: the whole window does.
  const ToneBins* window[steps];
  for (size_t j = 0; j < steps; j++) window[j] = &bins_[(newest_ + 1 + j) % steps];
  float power[tones];
  tone_bank().powers(window, power);
  size_t best[2] = {0, tones / 2};
  for (size_t k = 1; k < tones / 2; k++) {
    best[0] = power[k] > power[best[0]] ? k : best[0];
    best[1] = power[tones / 2 + k] > power[best[1]] ? tones / 2 + k : best[1];
  }
  if ((power[best[0]] + power[best[1]]) * 0.5f < nominal_share_least * whole_window * mean) return 0;
  Bin early[2];
  Bin late[2];
  fit(best[0], best[1] - 4, 0, early[0], early[1]);
  fit(best[0], best[1] - 4, 1, late[0], late[1]);
  const float low = steady(best[0], early[0], late[0]);
  if (low < power_least) return 0;
  const float high = steady(best[1], early[1], late[1]);
  if (high < power_least) return 0;
  if (high > low * twist_most || low > high * twist_most) return 0;
  if ((low + high) * 0.5f < share_least * mean) return 0;
  const float octave = 2 * tone_hz[best[0]];
  // An octave of the lower tone that lies beside the upper tone cannot be told from that.
  if (std::fabs(octave - tone_hz[best[1]]) > 150 && harmonic(octave) > harmonic_most * low) return 0;
  if (harmonic(2 * tone_hz[best[1]]) > harmonic_most * high) return 0;
  return keys[best[0]][best[1] - 4];
}

ToneGenerator::ToneGenerator(char key, uint32_t rate_hz, float amplitude, float offset) : amplitude_(amplitude) {
  for (size_t row = 0; row < 4; row++) {
    for (size_t column = 0; column < 4; column++) {
      if (keys[row][column] != key) continue;
      step_[0] = 2 * pi * tone_hz[row] * (1.0 + offset) / rate_hz;
      step_[1] = 2 * pi * tone_hz[4 + column] * (1.0 + offset) / rate_hz;
      return;
    }
  }
  amplitude_ = 0;
}

void ToneGenerator::generate(int16_t* out, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const double value = amplitude_ * (std::sin(phase_[0]) + std::sin(phase_[1]));
    out[i] = static_cast<int16_t>(std::lrint(value > 32767 ? 32767 : value < -32768 ? -32768 : value));
    phase_[0] += step_[0];
    phase_[1] += step_[1];
  }
}

}  // namespace sidetone
