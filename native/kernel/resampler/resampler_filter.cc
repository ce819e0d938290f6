#include "kernel/resampler/resampler_filter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel/resampler/equiripple.h"

namespace sidetone {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr double kaiser_db = 104;

/** One half of a low-pass that is its own mirror image: its taps from the centre on. */
using LowPass = std::vector<double>;

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

/** A low-pass at a rate that is `ratio` times the lower and `up` times the input's. */
LowPass kaiser(double ratio, uint32_t up) {
  constexpr double transition = 0.15;
  const double span = (kaiser_db - 7.95) / (14.36 * transition) * ratio;
  // The centre lies on an input, so that the zeros of the sinc do too: one phase in `up` is an input as it is, or one
  // tap in `down` falls away.
  const size_t half = static_cast<size_t>(std::ceil(span / 2 / up)) * up;
  const double beta = 0.1102 * (kaiser_db - 8.7);
  LowPass taps(half + 1, 1);
  for (size_t n = 1; n <= half; n++) {
    const double turn = pi * static_cast<double>(n) / ratio;
    const double whole = static_cast<double>(n) / ratio;
    const double place = static_cast<double>(n) / static_cast<double>(half);
    taps[n] = whole == std::floor(whole)
                  ? 0
                  : std::sin(turn) / turn * bessel_i0(beta * std::sqrt(1 - place * place)) / bessel_i0(beta);
  }
  return taps;
}

/** `samples` up to a multiple of 64 bytes. */
size_t whole_lines(size_t samples) { return (samples + 15) / 16 * 16; }

const Equiripple* equiripple_of(uint32_t ratio) {
  for (const Equiripple& each : equiripples) {
    if (each.ratio == ratio) return &each;
  }
  return nullptr;
}

}  // namespace

ResamplerFilter::ResamplerFilter(uint32_t in_hz, uint32_t out_hz) {
  const uint32_t common = std::gcd(in_hz, out_hz);
  up_ = out_hz / common;
  down_ = in_hz / common;
  kept_ = up_;
  const uint32_t ratio = std::max(up_, down_);
  if (up_ > phases_max || ratio > ratio_max) {
    interpolate(in_hz, out_hz);
    return;
  }
  const Equiripple* table = equiripple_of(ratio);
  const LowPass low_pass = ratio == 1         ? LowPass{1}
                           : table != nullptr ? LowPass(table->taps, table->taps + table->half + 1)
                                              : kaiser(ratio, up_);
  const int64_t half = static_cast<int64_t>(low_pass.size()) - 1;
  delay_sec_ = static_cast<double>(half) / up_ / in_hz;
  delay_parts_ = static_cast<uint64_t>(half);
  taps_ = static_cast<uint32_t>(2 * half / up_ + 1);

  std::vector<std::vector<float>> phases(
      up_);  // of each phase/up of an input period after its newest input: weights, the newest input's first
  for (uint32_t phase = 0; phase < up_; phase++) {
    std::vector<double> exact;
    for (int64_t at = phase - half; at <= half; at += up_) exact.push_back(low_pass[static_cast<size_t>(std::abs(at))]);
    const double unit = table != nullptr ? 1.0 / up_ : std::accumulate(exact.begin(), exact.end(), 0.0);
    for (const double weight : exact) phases[phase].push_back(static_cast<float>(weight / unit));
  }
  if (up_ <= cycle_max && down_ <= cycle_max) {
    deal(phases);
  } else {
    lay_out(phases);
  }
}

/** Keeps some phases of a low-pass at a multiple of the input's rate, of which those of the outputs lie in between. */
void ResamplerFilter::interpolate(uint32_t in_hz, uint32_t out_hz) {
  kept_ = interpolated_phases;
  const double higher = in_hz > out_hz ? static_cast<double>(in_hz) / out_hz : 1;
  const LowPass low_pass = kaiser(kept_ * higher, kept_);
  const int64_t half = static_cast<int64_t>(low_pass.size()) - 1;
  delay_sec_ = static_cast<double>(half) / kept_ / in_hz;
  delay_parts_ = static_cast<uint64_t>(half) / kept_ * up_;  // the centre lies on an input
  taps_ = static_cast<uint32_t>(2 * half / kept_ + 1);
  std::vector<std::vector<float>> phases(kept_ + 1);
  for (uint32_t phase = 0; phase <= kept_; phase++) {
    std::vector<double> exact;
    for (int64_t at = phase - half; at <= half; at += kept_)
      exact.push_back(low_pass[static_cast<size_t>(std::abs(at))]);
    const double unit = std::accumulate(exact.begin(), exact.end(), 0.0);
    for (const double weight : exact) phases[phase].push_back(static_cast<float>(weight / unit));
  }
  lay_out(phases);
}

void ResamplerFilter::lay_out(const std::vector<std::vector<float>>& phases) {
  taps_ = (taps_ + 7) / 8 * 8;
  weights_.resize(phases.size() * taps_);
  for (uint32_t phase = 0; phase < phases.size(); phase++) {
    std::copy(phases[phase].rbegin(), phases[phase].rend(),
              weights_.begin() + static_cast<std::ptrdiff_t>((phase + 1) * size_t{taps_} - phases[phase].size()));
  }
}

/** Makes pieces, none much shorter than others, of the last weights, which belong to `offsets`. */
void ResamplerFilter::cut(const std::vector<size_t>& offsets) {
  const size_t parts = (offsets.size() + fir_piece_max - 1) / fir_piece_max;
  const size_t most = parts == 0 ? 0 : (offsets.size() + parts - 1) / parts;
  const size_t first = weights_.size() - offsets.size();
  FirPiece* piece = nullptr;
  for (size_t i = 0; i < offsets.size(); i++) {
    if (piece == nullptr || piece->count == most || offsets[i] != offsets[i - 1] + 1) {
      pieces_.push_back({static_cast<uint32_t>(offsets[i]), static_cast<uint32_t>(first + i), 0});
      piece = &pieces_.back();
    }
    piece->count++;
  }
}

/** Collects the taps that are not zero, for each output and row. */
void ResamplerFilter::deal(const std::vector<std::vector<float>>& phases) {
  history_ = whole_lines((taps_ - 1 + down_ - 1) / down_);  // so that a block begins with a line of the cache
  const size_t cycles = block_max / down_ + 1;
  stride_ = history_ + whole_lines((cycles + fir_outputs - 1) / fir_outputs * fir_outputs);
  const auto unity = [](const std::vector<float>& phase) {
    return std::count(phase.begin(), phase.end(), 0.0f) + 1 == static_cast<std::ptrdiff_t>(phase.size());
  };
  together_ = up_ > 1 && up_ <= fir_phases_max && std::none_of(phases.begin(), phases.end(), unity);
  if (together_) return deal_together(phases);
  for (uint32_t output = 0; output < up_; output++) {
    first_.push_back(static_cast<uint32_t>(pieces_.size()));
    const std::vector<float>& phase = phases[output * down_ % up_];
    const size_t newest = history_ * down_ + output * down_ / up_;  // counted from the first that is held
    for (uint32_t row = 0; row < down_; row++) {
      std::vector<size_t> offsets;  // of the taps that are not zero
      for (size_t in = row; in <= newest; in += down_) {
        const size_t back = newest - in;
        if (back >= phase.size() || phase[back] == 0) continue;
        offsets.push_back(row * stride_ + in / down_);
        weights_.push_back(phase[back]);
      }
      cut(offsets);
    }
  }
  first_.push_back(static_cast<uint32_t>(pieces_.size()));
}

void ResamplerFilter::deal_together(const std::vector<std::vector<float>>& phases) {
  const size_t start = history_ * down_;  // the first input of the cycle, counted from the first that is held
  for (uint32_t row = 0; row < down_; row++) {
    FirPiece piece = {0, static_cast<uint32_t>(weights_.size()), 0};
    for (size_t in = row; in < start + down_; in += down_) {
      std::vector<float> tap(up_, 0.0f);
      bool any = false;
      for (uint32_t output = 0; output < up_; output++) {
        const std::vector<float>& phase = phases[output * down_ % up_];
        const size_t newest = start + output * down_ / up_;
        if (in > newest || newest - in >= phase.size()) continue;
        tap[output] = phase[newest - in];
        any = true;
      }
      if (!any) continue;
      if (piece.count == 0) piece.offset = static_cast<uint32_t>(row * stride_ + in / down_);
      weights_.insert(weights_.end(), tap.begin(), tap.end());
      piece.count++;
    }
    pieces_.push_back(piece);
  }
  first_.assign(up_ + 1, 0);
  first_.back() = static_cast<uint32_t>(pieces_.size());
}

}  // namespace sidetone
