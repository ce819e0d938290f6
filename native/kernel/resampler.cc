#include "kernel/resampler.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "kernel/dispatch.h"

namespace sidetone {
namespace {

constexpr double attenuation_db = 104;
constexpr double pi = 3.14159265358979323846;

double bessel_i0(double x) {
  double sum = 1;
  double term = 1;
  for (int k = 1; k < 64; k++) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
    if (term < sum * 1e-18) break;
  }
  return sum;
}

// Eight partial sums, so that every width adds in the same order and gives the same result.
KERNEL_BODY float dot_body(const float* a, const float* b, size_t count) {
  float lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (size_t i = 0; i < count; i += 8) {
    for (size_t j = 0; j < 8; j++) lane[j] += a[i + j] * b[i + j];
  }
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

using Dot = float (*)(const float*, const float*, size_t);
float dot_portable(const float* a, const float* b, size_t count) { return dot_body(a, b, count); }
#if KERNEL_WIDE
KERNEL_AVX2 float dot_avx2(const float* a, const float* b, size_t count) { return dot_body(a, b, count); }
const Dot dot = kernel_width() == Width::portable ? dot_portable : dot_avx2;
#else
const Dot dot = dot_portable;
#endif

// Many outputs at once: those of one phase are `down` inputs apart, so with the inputs dealt out by their remainder each coefficient meets a run
// of them side by side. Every output adds in the order of its taps, whatever the width.
constexpr size_t lanes = 80;  // five registers of the widest kind; 20 ms at 8 kHz is two such runs
/** As a register of AVX-512; narrower sets take it in parts. */
typedef float Wide __attribute__((vector_size(64), aligned(4), may_alias));
constexpr uint32_t dealt_max = 8;
constexpr size_t spread_max = 2048;

KERNEL_BODY void run_body(const float* const* dealt, uint32_t down, uint32_t first, const float* row, uint32_t taps, size_t at, float* out) {
  Wide sum[5] = {};
  uint32_t remainder = first % down;
  size_t place = at + first / down;
  for (uint32_t tap = 0; tap < taps; tap++) {
    const float* in = dealt[remainder] + place;
    const float weight = row[tap];
    sum[0] += weight * *reinterpret_cast<const Wide*>(in);
    sum[1] += weight * *reinterpret_cast<const Wide*>(in + 16);
    sum[2] += weight * *reinterpret_cast<const Wide*>(in + 32);
    sum[3] += weight * *reinterpret_cast<const Wide*>(in + 48);
    sum[4] += weight * *reinterpret_cast<const Wide*>(in + 64);
    if (++remainder == down) {
      remainder = 0;
      place++;
    }
  }
  std::memcpy(out, sum, sizeof sum);
}

using Run = void (*)(const float* const*, uint32_t, uint32_t, const float*, uint32_t, size_t, float*);
void run_portable(const float* const* dealt, uint32_t down, uint32_t first, const float* row, uint32_t taps, size_t at, float* out) {
  run_body(dealt, down, first, row, taps, at, out);
}
#if KERNEL_WIDE
KERNEL_AVX2 void run_avx2(const float* const* dealt, uint32_t down, uint32_t first, const float* row, uint32_t taps, size_t at, float* out) {
  run_body(dealt, down, first, row, taps, at, out);
}
KERNEL_AVX512 void run_avx512(const float* const* dealt, uint32_t down, uint32_t first, const float* row, uint32_t taps, size_t at, float* out) {
  run_body(dealt, down, first, row, taps, at, out);
}
const Run run = kernel_width() >= Width::avx512 ? run_avx512 : kernel_width() == Width::avx2 ? run_avx2 : run_portable;
#else
const Run run = run_portable;
#endif

}  // namespace

ResamplerFilter::ResamplerFilter(uint32_t in_hz, uint32_t out_hz) {
  const uint32_t common = std::gcd(in_hz, out_hz);
  up_ = out_hz / common;
  down_ = in_hz / common;
  if (up_ == 1 && down_ == 1) {
    taps_ = 8;
    coefficients_.assign(8, 0.0f);
    coefficients_[7] = 1.0f;  // the newest input, unchanged
    return;
  }
  const double low_hz = in_hz < out_hz ? in_hz : out_hz;
  const double transition_hz = 0.15 * low_hz;
  const double span = (attenuation_db - 7.95) / (14.36 * transition_hz);  // Kaiser's length, in seconds
  taps_ = static_cast<uint32_t>(std::ceil(span * in_hz));
  taps_ = (taps_ + 7) / 8 * 8;
  const double beta = 0.1102 * (attenuation_db - 8.7);
  const double center = span / 2;
  delay_sec_ = center;
  coefficients_.resize(static_cast<size_t>(up_) * taps_);
  for (uint32_t phase = 0; phase < up_; phase++) {
    float* row = &coefficients_[static_cast<size_t>(phase) * taps_];
    // Output of this phase lies phase/up of an input period after its newest input.
    double sum = 0;
    std::vector<double> exact(taps_);
    for (uint32_t tap = 0; tap < taps_; tap++) {
      const double age = (taps_ - 1 - tap + static_cast<double>(phase) / up_) / in_hz;
      const double t = age - center;
      const double place = t / center;
      if (place < -1 || place > 1) continue;
      const double x = t * low_hz;
      const double sinc = std::fabs(x) < 1e-12 ? 1.0 : std::sin(pi * x) / (pi * x);
      exact[tap] = sinc * bessel_i0(beta * std::sqrt(1 - place * place)) / bessel_i0(beta);
      sum += exact[tap];
    }
    for (uint32_t tap = 0; tap < taps_; tap++) row[tap] = static_cast<float>(exact[tap] / sum);  // unity at DC in every phase
  }
}

Resampler::Resampler(const ResamplerFilter& filter) : filter_(&filter), window_(filter.taps() - 1 + block_max, 0.0f) {
  reset();
}

void Resampler::reset() {
  past_ = filter_->taps() - 1;
  phase_ = 0;
  skip_ = 0;
  std::memset(window_.data(), 0, past_ * sizeof(float));
}

size_t Resampler::out_max(size_t count) const { return count * filter_->up() / filter_->down() + 2; }

size_t Resampler::process(const float* in, size_t count, float* out) {
  if (count > block_max) count = block_max;
  std::memcpy(&window_[past_], in, count * sizeof(float));
  const uint32_t up = filter_->up();
  const uint32_t down = filter_->down();
  const uint32_t taps = filter_->taps();
  size_t newest = skip_;
  size_t made = 0;
  const size_t cycles = count / down / lanes * lanes;  // of `down` inputs and `up` outputs each
  if (cycles > 0 && phase_ == 0 && skip_ == 0 && down <= dealt_max && past_ + count <= spread_max) {
    made = whole_cycles(cycles, past_ + count, out);
    newest = cycles * down;
  }
  while (newest < count) {
    out[made++] = dot(&window_[newest], filter_->phase(phase_), taps);
    phase_ += down;
    newest += phase_ / up;
    phase_ %= up;
  }
  skip_ = newest - count;
  std::memmove(window_.data(), &window_[count], past_ * sizeof(float));
  return made;
}

/** Converts `cycles` (a multiple of `lanes`) whole cycles of the ratio from the first input on. */
size_t Resampler::whole_cycles(size_t cycles, size_t held, float* out) const {
  const uint32_t up = filter_->up();
  const uint32_t down = filter_->down();
  float spread[spread_max + dealt_max * (lanes + 1)];
  const float* dealt[dealt_max];
  if (down == 1) {
    dealt[0] = window_.data();
  } else {
    const size_t each = (held + down - 1) / down;
    for (uint32_t remainder = 0; remainder < down; remainder++) {
      float* to = spread + remainder * each;
      dealt[remainder] = to;
      const float* from = window_.data() + remainder;
      const size_t count = (held - remainder + down - 1) / down;
      for (size_t i = 0; i < count; i++) to[i] = from[i * down];
    }
  }
  for (size_t at = 0; at < cycles; at += lanes) {
    for (uint32_t output = 0; output < up; output++) {
      const uint32_t step = output * down;
      float made[lanes];
      run(dealt, down, step / up, filter_->phase(step % up), filter_->taps(), at, up == 1 ? out + at : made);
      if (up == 1) continue;
      for (size_t j = 0; j < lanes; j++) out[(at + j) * up + output] = made[j];
    }
  }
  return cycles * up;
}

size_t Resampler::flush(float* out) {
  if (filter_->up() == filter_->down()) return 0;
  static constexpr float zeros[block_max] = {};
  size_t made = 0;
  size_t left = filter_->taps() / 2;
  while (left > 0) {
    const size_t take = left < block_max ? left : block_max;
    made += process(zeros, take, out + made);
    left -= take;
  }
  return made;
}

}  // namespace sidetone
