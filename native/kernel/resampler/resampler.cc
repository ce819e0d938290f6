#include "kernel/resampler/resampler.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "kernel/mix/interleave.h"

namespace sidetone {
namespace {

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

/** Floats that are moved at once: rows have room for as many more. */
constexpr size_t moved = 8;

}  // namespace

Resampler::Resampler(const ResamplerFilter& filter) : filter_(&filter) {
  const size_t samples = filter.cyclic() ? filter.down() * filter.stride() + moved : filter.taps() - 1 + block_max;
  lines_.resize(samples / std::size(Line().samples) + 1);
  reset();
}

void Resampler::reset() {
  begun_ = 0;
  phase_ = 0;
  skip_ = 0;
  std::fill(lines_.begin(), lines_.end(), Line{});
}

size_t Resampler::out_max(size_t count) const { return count * filter_->up() / filter_->down() + 2; }

size_t Resampler::process(const float* in, size_t count, float* out) {
  if (count > block_max) count = block_max;
  return filter_->cyclic() ? side_by_side(in, static_cast<uint32_t>(count), out) : one_by_one(in, count, out);
}

/** An output whose phase lies between two that are kept. */
float Resampler::between(const float* in) const {
  const uint64_t place = uint64_t{phase_} * filter_->kept();
  const uint32_t before = static_cast<uint32_t>(place / filter_->up());
  const float part = static_cast<float>(place % filter_->up()) / static_cast<float>(filter_->up());
  const float low = dot(in, filter_->phase(before), filter_->taps());
  const float high = dot(in, filter_->phase(before + 1), filter_->taps());
  return low + (high - low) * part;
}

size_t Resampler::one_by_one(const float* in, size_t count, float* out) {
  const uint32_t taps = filter_->taps();
  const size_t past = taps - 1;
  std::memcpy(held() + past, in, count * sizeof(float));
  size_t newest = skip_;
  size_t made = 0;
  while (newest < count) {
    out[made++] =
        filter_->interpolated() ? between(held() + newest) : dot(held() + newest, filter_->phase(phase_), taps);
    phase_ += filter_->down();
    newest += phase_ / filter_->up();
    phase_ %= filter_->up();
  }
  skip_ = newest - count;
  std::memmove(held(), held() + count, past * sizeof(float));
  return made;
}

size_t Resampler::side_by_side(const float* in, uint32_t count, float* out) {
  const uint32_t up = filter_->up();
  const uint32_t down = filter_->down();
  deal(in, count);
  const uint32_t there = begun_ + count;
  const uint32_t from = (begun_ * up + down - 1) / down;  // outputs of the begun cycle that have been made
  const uint32_t to = (there * up + down - 1) / down;
  for (size_t cycle = from / up; cycle * up < to; cycle += fir_outputs) convert(cycle, from, to, out);
  forget(there / down);
  begun_ = there % down;
  return to - from;
}

/** Appends inputs to the rows. */
void Resampler::deal(const float* in, uint32_t count) {
  const uint32_t down = filter_->down();
  const size_t stride = filter_->stride();
  float* rows = held() + filter_->history();
  if (down == 1) {
    std::memcpy(rows, in, count * sizeof(float));
    return;
  }
  uint32_t i = 0;
  const auto one = [&] {
    rows[(begun_ + i) % down * stride + (begun_ + i) / down] = in[i];
    i++;
  };
  while (i < count && (begun_ + i) % down != 0) one();
  const uint32_t cycles = (count - i) / down;
  deinterleave(in + i, down, cycles, stride, rows + (begun_ + i) / down);
  i += cycles * down;
  while (i < count) one();
}

/** Makes the outputs of `fir_outputs` cycles, as far as they are among those from `from` up to `to`; `out` is where
 * that of `from` belongs. */
void Resampler::convert(size_t cycle, size_t from, size_t to, float* out) const {
  const size_t up = filter_->up();
  const size_t first = std::max(from, cycle * up);
  const size_t wanted = std::min(to, (cycle + fir_outputs) * up) - first;
  if (wanted == fir_outputs * up) return convert(cycle, out + (first - from));
  float whole[ResamplerFilter::cycle_max * fir_outputs];
  convert(cycle, whole);
  std::memcpy(out + (first - from), whole + (first - cycle * up), wanted * sizeof(float));
}

/** Makes the outputs of `fir_outputs` cycles. */
void Resampler::convert(size_t cycle, float* out) const {
  const uint32_t up = filter_->up();
  const float* in = held() + cycle;
  const float* weights = filter_->weights();
  if (filter_->together()) {
    const ResamplerFilter::Pieces pieces = filter_->pieces();
    return fir_run_together(in, weights, pieces.first, pieces.count, up, out);
  }
  alignas(64) float made[ResamplerFilter::cycle_max][fir_outputs];
  const float* rows[ResamplerFilter::cycle_max];
  for (uint32_t output = 0; output < up; output++) {
    const ResamplerFilter::Pieces pieces = filter_->pieces_of(output);
    const bool unity = filter_->unity(pieces);
    rows[output] = unity ? in + pieces.first->offset : made[output];
    if (!unity) fir_run(in, weights, pieces.first, pieces.count, up == 1 ? out : made[output]);
    else if (up == 1) std::memcpy(out, rows[0], sizeof made[0]);
  }
  if (up > 1) interleave(rows, up, fir_outputs, out);
}

/** Moves what later outputs depend on to the front of every row. */
void Resampler::forget(size_t cycles) {
  if (cycles == 0) return;
  for (size_t row = 0; row < filter_->down(); row++) {
    float* to = held() + row * filter_->stride();
    for (size_t i = 0; i <= filter_->history();
         i += moved) {  // forwards, each read before it is written over; one more than the history for a cycle begun
      float part[moved];
      std::memcpy(part, to + cycles + i, sizeof part);
      std::memcpy(to + i, part, sizeof part);
    }
  }
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
