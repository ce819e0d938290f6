#include "kernel/resampler.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "kernel/dispatch.h"

#if KERNEL_WIDE
#include <immintrin.h>
#define KERNEL_FMA __attribute__((target("avx2,fma")))
#endif

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

/** sin(πx)/(πx) for x = at / period, exactly 0 where that is whole. */
double sinc(int64_t at, uint32_t period) {
  if (at == 0) return 1;
  if (at % period == 0) return 0;
  const double x = static_cast<double>(at) / period;
  return std::sin(pi * x) / (pi * x);
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
// of them side by side. Every output adds in the order of its taps, whatever the width; where there is a fused multiply-add it is used.
constexpr size_t lanes = 80;  // 20 ms at 8 kHz is two such runs
constexpr uint32_t dealt_max = 8;
constexpr size_t spread_max = 2560;
using Tap = ResamplerFilter::Tap;

KERNEL_BODY void run_body(const float* in, const Tap* taps, size_t count, float* out) {
  float sum[lanes] = {};
  for (const Tap* tap = taps; tap != taps + count; tap++) {
    for (size_t i = 0; i < lanes; i++) sum[i] += tap->weight * in[tap->offset + i];
  }
  std::memcpy(out, sum, sizeof sum);
}

void run_portable(const float* in, const Tap* taps, size_t count, float* out) { run_body(in, taps, count, out); }

using Run = void (*)(const float*, const Tap*, size_t, float*);
#if KERNEL_WIDE
/** Half of a register of AVX-512 at a time: half of its loads at any place would lie across two lines of the cache, all of those of a whole one do. */
template <size_t registers>
KERNEL_FMA void run_fma(const float* in, const Tap* taps, size_t count, float* out) {
  static_assert(lanes % (8 * registers) == 0, "");
  for (size_t at = 0; at < lanes; at += 8 * registers) {
    __m256 sum[registers];
    for (__m256& each : sum) each = _mm256_setzero_ps();
    for (const Tap* tap = taps; tap != taps + count; tap++) {
      const __m256 weight = _mm256_broadcast_ss(&tap->weight);
      const float* from = in + tap->offset + at;
      for (size_t i = 0; i < registers; i++) sum[i] = _mm256_fmadd_ps(weight, _mm256_loadu_ps(from + 8 * i), sum[i]);
    }
    for (size_t i = 0; i < registers; i++) _mm256_storeu_ps(out + at + 8 * i, sum[i]);
  }
}
const Run run = kernel_width() >= Width::avx2 ? run_fma<10> : run_portable;

/**
 * Where nothing is dealt, all phases meet the same inputs, and with five of them (six times the rate, but for the one that is an input as it is) it
 * pays to load each once for all. `weights` has one of each phase for every tap.
 */
constexpr size_t together_phases = 5;
KERNEL_FMA void run_together(const float* in, const float* weights, size_t taps, float (*out)[lanes]) {
  constexpr size_t registers = 2;
  static_assert(lanes % (8 * registers) == 0, "");
  for (size_t at = 0; at < lanes; at += 8 * registers) {
    __m256 sum[together_phases][registers];
    for (auto& phase : sum) {
      for (__m256& each : phase) each = _mm256_setzero_ps();
    }
    for (size_t tap = 0; tap < taps; tap++) {
      const float* weight = weights + tap * together_phases;
      for (size_t i = 0; i < registers; i++) {
        const __m256 heard = _mm256_loadu_ps(in + tap + at + 8 * i);
        for (size_t p = 0; p < together_phases; p++) sum[p][i] = _mm256_fmadd_ps(_mm256_broadcast_ss(weight + p), heard, sum[p][i]);
      }
    }
    for (size_t p = 0; p < together_phases; p++) {
      for (size_t i = 0; i < registers; i++) _mm256_storeu_ps(out[p] + at + 8 * i, sum[p][i]);
    }
  }
}
const size_t together_up = kernel_width() >= Width::avx2 ? together_phases + 1 : 0;
#else
const Run run = run_portable;
void run_together(const float*, const float*, size_t, float (*)[lanes]) {}
constexpr size_t together_up = 0;
#endif

/** `lanes` outputs of each of `up` phases to their places. */
template <size_t up>
KERNEL_BODY void weave_body(const float* const* rows, float* out) {
  const float* row[up];
  for (size_t u = 0; u < up; u++) row[u] = rows[u];
  for (size_t i = 0; i < lanes; i++) {
    for (size_t u = 0; u < up; u++) out[i * up + u] = row[u][i];
  }
}

/** Every `down`th input from each of the first ones on, `stride` apart. */
template <size_t down>
KERNEL_BODY void deal_body(const float* in, size_t held, size_t stride, float* out) {
  const size_t whole = held / down;
  for (size_t remainder = 0; remainder < down; remainder++) {
    for (size_t i = 0; i < whole; i++) out[remainder * stride + i] = in[i * down + remainder];
  }
  for (size_t i = whole * down; i < held; i++) out[i % down * stride + whole] = in[i];
}

#if KERNEL_WIDE
#define ROWS_FORM KERNEL_AVX2
#else
#define ROWS_FORM
#endif
ROWS_FORM void weave2(const float* const* rows, float* out) { weave_body<2>(rows, out); }
ROWS_FORM void weave3(const float* const* rows, float* out) { weave_body<3>(rows, out); }
ROWS_FORM void weave6(const float* const* rows, float* out) { weave_body<6>(rows, out); }
ROWS_FORM void deal2(const float* in, size_t held, size_t stride, float* out) { deal_body<2>(in, held, stride, out); }
ROWS_FORM void deal3(const float* in, size_t held, size_t stride, float* out) { deal_body<3>(in, held, stride, out); }
ROWS_FORM void deal6(const float* in, size_t held, size_t stride, float* out) { deal_body<6>(in, held, stride, out); }
const bool rows_wide = kernel_width() >= Width::avx2;

void weave(const float* const* rows, size_t up, float* out) {
  if (rows_wide && up == 2) return weave2(rows, out);
  if (rows_wide && up == 3) return weave3(rows, out);
  if (rows_wide && up == 6) return weave6(rows, out);
  for (size_t u = 0; u < up; u++) {
    for (size_t i = 0; i < lanes; i++) out[i * up + u] = rows[u][i];
  }
}

void deal_inputs(const float* in, size_t held, size_t down, size_t stride, float* out) {
  if (rows_wide && down == 2) return deal2(in, held, stride, out);
  if (rows_wide && down == 3) return deal3(in, held, stride, out);
  if (rows_wide && down == 6) return deal6(in, held, stride, out);
  for (size_t i = 0, row = 0, place = 0; i < held; i++) {
    out[row * stride + place] = in[i];
    if (++row < down) continue;
    row = 0;
    place++;
  }
}

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
  // The centre lies on an input, so that the zeros of the sinc do too: one phase in `up` is an input as it is, or one tap in `down` falls away.
  const uint32_t half = static_cast<uint32_t>(std::ceil(span * in_hz / 2));
  taps_ = (2 * half + 1 + 7) / 8 * 8;
  const double beta = 0.1102 * (attenuation_db - 8.7);
  delay_sec_ = static_cast<double>(half) / in_hz;
  coefficients_.resize(static_cast<size_t>(up_) * taps_);
  std::vector<double> exact(taps_);
  for (uint32_t phase = 0; phase < up_; phase++) {
    float* row = &coefficients_[static_cast<size_t>(phase) * taps_];
    // Output of this phase lies phase/up of an input period after its newest input.
    double sum = 0;
    for (uint32_t tap = 0; tap < taps_; tap++) {
      const int64_t from_center = (static_cast<int64_t>(taps_) - 1 - tap - half) * up_ + phase;  // in 1/up of an input period
      const double place = static_cast<double>(from_center) / up_ / half;
      exact[tap] = place < -1 || place > 1 ? 0 : sinc(from_center, low_hz == in_hz ? up_ : down_) * bessel_i0(beta * std::sqrt(1 - place * place)) / bessel_i0(beta);
      sum += exact[tap];
    }
    for (uint32_t tap = 0; tap < taps_; tap++) row[tap] = static_cast<float>(exact[tap] / sum);  // unity at DC in every phase
  }
  if (down_ <= dealt_max && up_ <= dealt_max) deal();
}

/** The taps that are not zero, as `whole_cycles` meets them. */
void ResamplerFilter::deal() {
  stride_ = down_ == 1 ? 0 : ((taps_ - 1 + Resampler::block_max) / down_ + 16) / 16 * 16;
  if (stride_ * down_ > spread_max) return;
  for (uint32_t output = 0; output < up_; output++) {
    const uint32_t newest = output * down_ / up_;
    const float* row = phase(output * down_ % up_);
    first_.push_back(static_cast<uint32_t>(dealt_.size()));
    for (uint32_t tap = 0; tap < taps_; tap++) {
      const uint32_t in = newest + tap;
      if (row[tap] != 0) dealt_.push_back({in % down_ * stride_ + in / down_, row[tap]});
    }
  }
  first_.push_back(static_cast<uint32_t>(dealt_.size()));
  if (down_ > 1) return;
  for (uint32_t tap = 0; tap < taps_; tap++) {
    for (uint32_t output = 1; output < up_; output++) together_.push_back(phase(output)[tap]);
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
  if (cycles > 0 && phase_ == 0 && skip_ == 0 && filter_->dealt()) {
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
  float spread[spread_max];
  const float* dealt = window_.data();
  if (down > 1) {
    dealt = spread;
    deal_inputs(window_.data(), held, down, filter_->stride(), spread);
  }
  float made[dealt_max][lanes];
  for (size_t at = 0; at < cycles; at += lanes) {
    const float* rows[dealt_max];
    const bool together = down == 1 && up == together_up;
    if (together) run_together(dealt + at, filter_->together(), filter_->taps(), made + 1);
    for (uint32_t output = 0; output < up; output++) {
      const ResamplerFilter::Taps taps = filter_->taps_of(output);
      rows[output] = taps.count == 1 ? dealt + at + taps.first->offset : made[output];  // unity: its weights sum to 1
      if (taps.count > 1 && !together) run(dealt + at, taps.first, taps.count, up == 1 ? out + at : made[output]);
    }
    if (up > 1) weave(rows, up, out + at * up);
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
