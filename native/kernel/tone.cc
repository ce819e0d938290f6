#include "kernel/tone.h"

#include <cmath>
#include <cstring>

#include "kernel/dispatch.h"

namespace sidetone {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr float nominal_hz[8] = {697, 770, 852, 941, 1209, 1336, 1477, 1633};
constexpr char keys[4][5] = {"123A", "456B", "789C", "*0#D"};

constexpr float share_least = 0.89f;       // of the two tones in all the sound
constexpr float power_least = 58.0f * 58.0f;  // amplitude of one tone: -52 dB of full scale, some -49 dBm0
constexpr float twist_forward = 3.6f;      // higher group over lower: 5.6 dB, where 4 must be taken
constexpr float twist_reverse = 8.0f;      // lower over higher: 9 dB, where 8 must be
constexpr float harmonic_most = 0.05f;     // -13 dB
constexpr float deviation_most = 0.02f;
constexpr uint32_t hits_least = 4;
constexpr uint32_t misses_most = 8;

using Four = double[4];

/** Inverts a well-conditioned symmetric matrix in place (Gauss and Jordan). */
void invert(Four (&m)[4]) {
  for (size_t p = 0; p < 4; p++) {
    const double pivot = 1 / m[p][p];
    m[p][p] = 1;
    for (size_t c = 0; c < 4; c++) m[p][c] *= pivot;
    for (size_t r = 0; r < 4; r++) {
      if (r == p) continue;
      const double factor = m[r][p];
      m[r][p] = 0;
      for (size_t c = 0; c < 4; c++) m[r][c] -= factor * m[p][c];
    }
  }
}

/** Cosine and sine of the eight frequencies over one step, so that one sample meets them all side by side. */
struct Waves {
  float row[ToneDetector::step_max][16];
  float turn[8][2];            // of the nominal frequency over one step
  float apart[4][4][4][4];     // for each pair: what takes its two sines, over half a window, apart from each other
  explicit Waves(uint32_t rate_hz) {
    const size_t step = rate_hz / 200;
    for (size_t k = 0; k < 8; k++) {
      for (size_t i = 0; i < step; i++) {
        const double angle = 2 * pi * nominal_hz[k] * static_cast<double>(i) / rate_hz;
        row[i][k] = static_cast<float>(std::cos(angle));
        row[i][8 + k] = static_cast<float>(-std::sin(angle));
      }
      const double angle = 2 * pi * nominal_hz[k] * 0.005;
      turn[k][0] = static_cast<float>(std::cos(angle));
      turn[k][1] = static_cast<float>(-std::sin(angle));
    }
    for (size_t low = 0; low < 4; low++) {
      for (size_t high = 0; high < 4; high++) {
        Four gram[4] = {};
        for (size_t i = 0; i < 2 * step; i++) {
          const double a = 2 * pi * nominal_hz[low] * static_cast<double>(i) / rate_hz;
          const double b = 2 * pi * nominal_hz[4 + high] * static_cast<double>(i) / rate_hz;
          const Four basis = {std::cos(a), -std::sin(a), std::cos(b), -std::sin(b)};
          for (size_t r = 0; r < 4; r++) {
            for (size_t c = 0; c < 4; c++) gram[r][c] += basis[r] * basis[c];
          }
        }
        invert(gram);
        for (size_t r = 0; r < 4; r++) {
          for (size_t c = 0; c < 4; c++) apart[low][high][r][c] = static_cast<float>(gram[r][c]);
        }
      }
    }
  }
};

const Waves narrow(8000);
const Waves wide(16000);

KERNEL_BODY void correlate_body(const float (*row)[16], const int16_t* pcm, size_t count, float* sums) {
  float acc[16] = {};
  for (size_t i = 0; i < count; i++) {
    const float sample = pcm[i];
    for (size_t k = 0; k < 16; k++) acc[k] += sample * row[i][k];
  }
  std::memcpy(sums, acc, sizeof acc);
}

using Correlate = void (*)(const float (*)[16], const int16_t*, size_t, float*);
void correlate_portable(const float (*row)[16], const int16_t* pcm, size_t count, float* sums) { correlate_body(row, pcm, count, sums); }
#if KERNEL_WIDE
KERNEL_AVX2 void correlate_avx2(const float (*row)[16], const int16_t* pcm, size_t count, float* sums) { correlate_body(row, pcm, count, sums); }
const Correlate correlate = kernel_width() == Width::portable ? correlate_portable : correlate_avx2;
#else
const Correlate correlate = correlate_portable;
#endif

}  // namespace

ToneDetector::ToneDetector(uint32_t rate_hz) : rate_hz_(rate_hz >= 16000 ? 16000 : 8000), step_(rate_hz_ / 200) {}

bool ToneDetector::process(const int16_t* pcm, size_t count, Key& key) {
  bool ended = false;
  for (size_t at = 0; at + step_ <= count; at += step_) ended = step(pcm + at, key) || ended;
  return ended;
}

bool ToneDetector::step(const int16_t* pcm, Key& key) {
  newest_ = (newest_ + 1) % steps;
  float sums[16];
  const Waves& waves = rate_hz_ == 16000 ? wide : narrow;
  correlate(waves.row, pcm, step_, sums);
  for (size_t k = 0; k < 8; k++) bins_[newest_][k] = {sums[k], sums[8 + k]};
  float energy = 0;
  for (size_t i = 0; i < step_; i++) energy += static_cast<float>(pcm[i]) * static_cast<float>(pcm[i]);
  energy_[newest_] = energy;
  std::memcpy(window_ + newest_ * step_, pcm, step_ * sizeof(int16_t));

  const char heard = judge();
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

/** The complex amplitudes of a pair of sines in one half of the window, at the half's own beginning. */
void ToneDetector::fit(size_t low, size_t high, size_t half, Bin& low_sine, Bin& high_sine) const {
  const Waves& waves = rate_hz_ == 16000 ? wide : narrow;
  float products[4];
  const size_t index[2] = {low, 4 + high};
  for (size_t k = 0; k < 2; k++) {
    const Bin first = at(index[k], 2 * half);
    const Bin second = at(index[k], 2 * half + 1);
    const float* turn = waves.turn[index[k]];
    products[2 * k] = first.re + second.re * turn[0] - second.im * turn[1];
    products[2 * k + 1] = first.im + second.re * turn[1] + second.im * turn[0];
  }
  float fitted[4];
  for (size_t r = 0; r < 4; r++) {
    fitted[r] = 0;
    for (size_t c = 0; c < 4; c++) fitted[r] += waves.apart[low][high][r][c] * products[c];
  }
  low_sine = {fitted[0], fitted[1]};
  high_sine = {fitted[2], fitted[3]};
}

/** Power (amplitude squared) of a sine seen in both halves, or a negative number where it is out of tolerance or of unequal halves. */
float ToneDetector::steady(size_t index, Bin early, Bin late) const {
  const float* turn = (rate_hz_ == 16000 ? wide : narrow).turn[index];
  const float first = early.re * early.re + early.im * early.im;
  const float second = late.re * late.re + late.im * late.im;
  if (first > 3 * second || second > 3 * first) return -1;  // a window that is half empty
  // The nominal sine turns by two steps between the halves; what it turned more or less is its deviation.
  const float two_re = turn[0] * turn[0] - turn[1] * turn[1];
  const float two_im = 2 * turn[0] * turn[1];
  const Bin back{late.re * two_re - late.im * two_im, late.re * two_im + late.im * two_re};
  const float hz = std::atan2(back.im * early.re - back.re * early.im, back.re * early.re + back.im * early.im) / static_cast<float>(2 * pi * 0.010);
  if (std::fabs(hz) > deviation_most * nominal_hz[index]) return -1;
  const float x = static_cast<float>(pi * 0.010) * hz;
  const float loss = std::fabs(x) < 1e-3f ? 1.0f : std::sin(x) / x;
  return (first + second) * 0.5f / (loss * loss);
}

float ToneDetector::harmonic(float hz) const {
  float re = 0;
  float im = 0;
  const double angle = 2 * pi * hz / rate_hz_;
  const float turn_re = static_cast<float>(std::cos(angle));
  const float turn_im = static_cast<float>(std::sin(angle));
  const double slow = 2 * pi / static_cast<double>(steps * step_);  // of the Hann window, so that the tones themselves do not leak in
  const float slow_re = static_cast<float>(std::cos(slow));
  const float slow_im = static_cast<float>(std::sin(slow));
  float c = 1;
  float s = 0;
  float wc = 1;
  float ws = 0;
  for (size_t i = 0; i < steps * step_; i++) {
    const float sample = (1.0f - wc) * window_[((newest_ + 1) % steps * step_ + i) % (steps * step_)];
    re += sample * c;
    im += sample * s;
    const float next = c * turn_re - s * turn_im;
    s = c * turn_im + s * turn_re;
    c = next;
    const float window = wc * slow_re - ws * slow_im;
    ws = wc * slow_im + ws * slow_re;
    wc = window;
  }
  const float scale = 2.0f / static_cast<float>(steps * step_);
  return (re * re + im * im) * scale * scale;
}

char ToneDetector::judge() const {
  float energy = 0;
  for (const float part : energy_) energy += part;
  const float mean = energy / static_cast<float>(steps * step_);  // two sines of amplitude a have a mean square of a squared
  if (mean < power_least) return 0;
  size_t best[2] = {0, 4};
  float most[2] = {0, 0};
  for (size_t k = 0; k < 8; k++) {
    // A step alone hardly tells neighbours apart: the whole window does.
    const Waves& waves = rate_hz_ == 16000 ? wide : narrow;
    float re = 1, im = 0, sum_re = 0, sum_im = 0;
    for (size_t j = 0; j < steps; j++) {
      const Bin bin = at(k, j);
      sum_re += bin.re * re - bin.im * im;
      sum_im += bin.re * im + bin.im * re;
      const float next = re * waves.turn[k][0] - im * waves.turn[k][1];
      im = re * waves.turn[k][1] + im * waves.turn[k][0];
      re = next;
    }
    const float power = sum_re * sum_re + sum_im * sum_im;
    const size_t group = k / 4;
    if (power > most[group]) {
      most[group] = power;
      best[group] = k;
    }
  }
  Bin early[2];
  Bin late[2];
  fit(best[0], best[1] - 4, 0, early[0], early[1]);
  fit(best[0], best[1] - 4, 1, late[0], late[1]);
  const float low = steady(best[0], early[0], late[0]);
  const float high = steady(best[1], early[1], late[1]);
  if (low < power_least || high < power_least) return 0;
  if (high > low * twist_forward || low > high * twist_reverse) return 0;
  if ((low + high) * 0.5f < share_least * mean) return 0;
  const float octave = 2 * nominal_hz[best[0]];
  // Where the octave of the lower tone lies beside the upper tone itself, it cannot be told from it.
  if (std::fabs(octave - nominal_hz[best[1]]) > 150 && harmonic(octave) > harmonic_most * low) return 0;
  if (harmonic(2 * nominal_hz[best[1]]) > harmonic_most * high) return 0;
  return keys[best[0]][best[1] - 4];
}

ToneGenerator::ToneGenerator(char key, uint32_t rate_hz, float amplitude, float offset) : amplitude_(amplitude) {
  for (size_t row = 0; row < 4; row++) {
    for (size_t column = 0; column < 4; column++) {
      if (keys[row][column] != key) continue;
      step_[0] = 2 * pi * nominal_hz[row] * (1.0 + offset) / rate_hz;
      step_[1] = 2 * pi * nominal_hz[4 + column] * (1.0 + offset) / rate_hz;
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
