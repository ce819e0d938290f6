#include "kernel/resampler/resampler.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

#include "design/equiripple.h"
#include "kernel/mix/interleave.h"
#include "kernel/mix/sample_format.h"
#include "kernel/resampler/equiripple.h"
#include "test/check.h"

using namespace sidetone;

namespace {

constexpr double pi = 3.14159265358979323846;
constexpr uint32_t rates_hz[] = {8000, 16000, 24000, 48000};

/** Level in dB of the sine of `hz` within `pcm`. */
double tone_db(const std::vector<float>& pcm, double hz, double rate) {
  double c = 0;
  double s = 0;
  double weight = 0;
  for (size_t i = 0; i < pcm.size(); i++) {
    const double window = 0.5 - 0.5 * std::cos(2 * pi * i / (pcm.size() - 1));
    c += window * pcm[i] * std::cos(2 * pi * hz * i / rate);
    s += window * pcm[i] * std::sin(2 * pi * hz * i / rate);
    weight += window;
  }
  return 20 * std::log10(2 * std::sqrt(c * c + s * s) / weight + 1e-12);
}

std::vector<float> resampled(uint32_t in_hz, uint32_t out_hz, double hz, size_t seconds_ms, size_t block) {
  const ResamplerFilter filter(in_hz, out_hz);
  Resampler resampler(filter);
  std::vector<float> out;
  const size_t total = in_hz * seconds_ms / 1000;
  std::vector<float> in(block);
  for (size_t at = 0; at < total; at += block) {
    const size_t count = total - at < block ? total - at : block;
    for (size_t i = 0; i < count; i++) in[i] = static_cast<float>(std::sin(2 * pi * hz * (at + i) / in_hz));
    const size_t before = out.size();
    out.resize(before + resampler.out_max(count));
    out.resize(before + resampler.process(in.data(), count, out.data() + before));
  }
  return out;
}

/** What comes out of a stream that is given `in` in blocks of these lengths, in turn. */
std::vector<float> in_blocks(const ResamplerFilter& filter, const std::vector<float>& in,
                             const std::vector<size_t>& lengths) {
  Resampler resampler(filter);
  std::vector<float> out;
  for (size_t at = 0, turn = 0; at < in.size(); turn++) {
    const size_t length = lengths[turn % lengths.size()];
    const size_t count = in.size() - at < length ? in.size() - at : length;
    const size_t before = out.size();
    out.resize(before + resampler.out_max(count));
    out.resize(before + resampler.process(&in[at], count, out.data() + before));
    at += count;
  }
  return out;
}

/** The low-pass at the rates' common multiple as a stream applies it, from what `down` impulses, each an input later,
 * make of it. */
std::vector<double> impulse_response(const ResamplerFilter& filter) {
  const size_t up = filter.up();
  const size_t down = filter.down();
  const size_t inputs = filter.taps() + 2 * down;
  std::vector<double> response((inputs + 2) * up, 0.0);
  for (size_t at = 0; at < down; at++) {
    std::vector<float> in(inputs, 0.0f);
    in[at] = 1;
    const std::vector<float> out = in_blocks(filter, in, {inputs});
    for (size_t m = 0; m < out.size(); m++) {
      if (m * down >= at * up) response[m * down - at * up] = out[m] / static_cast<double>(up);
      else if (out[m] != 0) return {};
    }
  }
  return response;
}

double gain_db(const std::vector<double>& response, double cycles_a_sample) {
  std::complex<double> sum = 0;
  for (size_t n = 0; n < response.size(); n++)
    sum += response[n] * std::polar(1.0, -2 * pi * cycles_a_sample * static_cast<double>(n));
  return 20 * std::log10(std::abs(sum) + 1e-12);
}

std::vector<float> noise(size_t count) {
  std::vector<float> samples(count);
  uint32_t seed = 3;
  for (float& sample : samples)
    sample = static_cast<float>(static_cast<int32_t>(seed = seed * 1664525u + 1013904223u)) / 65536.0f;
  return samples;
}

}  // namespace

TEST(
    "between the rates of the plane every frequency to 3.4 kHz (scaled) keeps its level and every one from 4.6 kHz on "
    "is under -100 dB") {
  for (const uint32_t in_hz : rates_hz) {
    for (const uint32_t out_hz : rates_hz) {
      if (in_hz == out_hz) continue;
      const ResamplerFilter filter(in_hz, out_hz);
      CHECK(filter.delay_sec() < 0.003);
      const std::vector<double> response = impulse_response(filter);
      const double low = in_hz < out_hz ? in_hz : out_hz;
      const double whole = static_cast<double>(in_hz) * filter.up();
      constexpr int steps = 1000;
      for (int i = 0; i <= steps; i++) {
        CHECK(std::fabs(gain_db(response, 0.425 * low / whole * i / steps)) < 0.05);
        CHECK(gain_db(response, 0.575 * low / whole + (0.5 - 0.575 * low / whole) * i / steps) < -100);
      }
    }
  }
}

TEST("the tables of the resampler are what their design makes") {
  size_t count = 0;
  for (const auto& [ratio, taps] : design::equiripple_low_passes()) {
    const Equiripple& table = equiripples[count++];
    CHECK(table.ratio == ratio && table.half + 1 == taps.size());
    for (size_t i = 0; i < taps.size(); i++) CHECK(std::fabs(table.taps[i] - taps[i]) < 1e-8);
  }
  CHECK(count == std::size(equiripples));
}

TEST("resampling between every pair of rates keeps the telephone band flat and lets no alias through") {
  const uint32_t rates[] = {8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000};
  for (const uint32_t in_hz : rates) {
    for (const uint32_t out_hz : rates) {
      if (in_hz == out_hz) continue;
      const double low = in_hz < out_hz ? in_hz : out_hz;
      const double edge = 0.425 * low;  // 3.4 kHz of 8 kHz, scaled
      for (const double hz : {0.02 * low, 0.125 * low, edge}) {
        std::vector<float> out = resampled(in_hz, out_hz, hz, 120, 147);
        CHECK(out.size() + 2 >= out_hz * 120 / 1000 && out.size() <= out_hz * 120 / 1000 + 2);
        out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(out_hz / 50));
        CHECK(std::fabs(tone_db(out, hz, out_hz)) < 0.05);
      }
      if (in_hz > out_hz) {  // above the transition band nothing may fold down
        const double hz = 0.6 * out_hz < 0.5 * in_hz ? 0.6 * out_hz : 0.49 * in_hz;
        if (hz < 0.575 * out_hz) continue;
        std::vector<float> out = resampled(in_hz, out_hz, hz, 120, 147);
        out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(out_hz / 50));
        CHECK(tone_db(out, std::fabs(out_hz - hz), out_hz) < -100);
      } else {  // and no image appears
        std::vector<float> out = resampled(in_hz, out_hz, 0.3 * in_hz, 120, 147);
        out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(out_hz / 50));
        const double image = 0.7 * in_hz;
        if (image < 0.5 * out_hz) CHECK(tone_db(out, image, out_hz) < -100);
      }
    }
  }
}

TEST("every rate from 4 to 384 kHz is exact: after 80,000 samples a tone is where it belongs, within -80 dB") {
  constexpr uint32_t odd_hz[] = {4000, 4001, 7999, 11'024, 22'255, 47'999, 192'013, 383'999};
  for (const uint32_t in_hz : odd_hz) {
    for (const uint32_t out_hz : {8000u, 48000u}) {
      const ResamplerFilter filter(in_hz, out_hz);
      CHECK(filter.bytes() < 8 << 20);
      Resampler resampler(filter);
      const double hz = 997;  // no divisor of any rate
      const double turn = 2 * pi * hz / in_hz;
      std::vector<float> in(1000);
      std::vector<float> out(resampler.out_max(in.size()));
      uint64_t made = 0;
      double worst = 0;
      const uint64_t blocks = 80;
      for (uint64_t block = 0; block < blocks; block++) {
        for (size_t i = 0; i < in.size(); i++)
          in[i] = static_cast<float>(std::sin(turn * static_cast<double>(block * in.size() + i)));
        const size_t count = resampler.process(in.data(), in.size(), out.data());
        for (size_t i = 0; i < count && block + 10 > blocks; i++) {
          const double sec = static_cast<double>(made + i) / out_hz - filter.delay_sec();
          worst = std::max(worst, std::fabs(out[i] - std::sin(2 * pi * hz * sec)));
        }
        made += count;
      }
      const double exact = static_cast<double>(blocks * in.size()) * out_hz / in_hz;
      CHECK(std::fabs(static_cast<double>(made) - exact) <= 1);
      CHECK(20 * std::log10(worst) < (hz < 0.425 * in_hz ? -80 : -40));
    }
  }
}

TEST("a rate whose phases are interpolated keeps the telephone band and lets no alias or image through") {
  const uint32_t pairs[][2] = {{22'257, 8000},  {44'099, 8000}, {47'999, 8000},
                               {383'999, 8000}, {7999, 48'000}, {11'023, 16'000}};
  for (const auto& [in_hz, out_hz] : pairs) {
    CHECK(ResamplerFilter(in_hz, out_hz).interpolated());
    const double low = std::min(in_hz, out_hz);
    const auto settled = [&, in = in_hz, out = out_hz](double hz) {
      std::vector<float> pcm = resampled(in, out, hz, 200, 147);
      pcm.erase(pcm.begin(), pcm.begin() + static_cast<std::ptrdiff_t>(out / 50));
      return pcm;
    };
    for (const double hz : {0.02 * low, 0.125 * low, 0.425 * low})
      CHECK(std::fabs(tone_db(settled(hz), hz, out_hz)) < 0.05);
    if (in_hz > out_hz) {
      for (const double hz : {0.575 * low, 0.7 * low, 0.9 * low})
        CHECK(tone_db(settled(hz), out_hz - hz, out_hz) < -100);
    } else {
      CHECK(tone_db(settled(0.3 * in_hz), 0.7 * in_hz, out_hz) < -100);
    }
  }
}

TEST("in the transition band what folds is 18 dB down at 4.1 kHz, 34 dB at 4.3 kHz and 100 dB at 4.6 kHz") {
  // What is stated in resampler_filter.h, measured from 48 kHz down to 8: the frequency that folds, and where it ends
  // up.
  const struct {
    double hz;
    double least_db;
    double most_db;
  } measured[] = {{3400, -0.05, 0.05}, {4100, -20, -17}, {4200, -27, -24},  {4300, -37, -32},
                  {4400, -49, -44},    {4500, -66, -60}, {4600, -200, -100}};
  for (const auto& point : measured) {
    std::vector<float> out = resampled(48'000, 8000, point.hz, 400, 480);
    out.erase(out.begin(), out.begin() + 160);
    const double db = tone_db(out, point.hz > 4000 ? 8000 - point.hz : point.hz, 8000);
    CHECK(db >= point.least_db && db <= point.most_db);
  }
}

TEST("how a stream is cut into blocks changes no bit of it and withholds no sample") {
  const std::vector<float> in = noise(5000);
  const uint32_t all_hz[] = {8000, 16000, 24000, 48000, 32000, 44100, 40000, 22'255, 7999};
  for (const uint32_t in_hz : all_hz) {
    for (const uint32_t out_hz : all_hz) {
      const ResamplerFilter filter(in_hz, out_hz);
      const std::vector<float> whole = in_blocks(filter, in, {in_hz / 50});
      CHECK(whole.size() == (in.size() * filter.up() + filter.down() - 1) / filter.down());
      for (const std::vector<size_t>& lengths :
           {std::vector<size_t>{1}, {7}, {160, 1, 0, 83}, {441}, {1024}, {2, 3, 5, 641}}) {
        const std::vector<float> parts = in_blocks(filter, in, lengths);
        CHECK(parts.size() == whole.size());
        CHECK(std::memcmp(parts.data(), whole.data(), parts.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST("a stream that was reset begins as a new one") {
  const std::vector<float> in = noise(1000);
  const ResamplerFilter filter(48000, 8000);
  Resampler used(filter);
  std::vector<float> out(200);
  (void)used.process(in.data(), 997, out.data());
  used.reset();
  out.resize(used.process(in.data(), 1000, out.data()));
  CHECK(out == in_blocks(filter, in, {1000}));
}

TEST("an equal rate passes every sample unchanged") {
  const ResamplerFilter filter(8000, 8000);
  Resampler resampler(filter);
  float in[5] = {0.25f, -1.0f, 0.999f, 0.0f, 1e-6f};
  float out[8];
  CHECK(resampler.process(in, 5, out) == 5);
  CHECK(std::memcmp(in, out, sizeof in) == 0);
  CHECK(resampler.flush(out) == 0);
}

TEST("a filter gives the same on every instruction set but for the rounding of its sums, wherever its pieces lie") {
  const std::vector<float> in = noise(400);
  const std::vector<float> taps = noise(200);
  std::vector<FirPiece> pieces;
  for (uint32_t count = 1; count <= fir_piece_max; count++) pieces.push_back({count * 3, 160 - count * 2, count});
  const FirForms portable = fir_forms(Width::portable);
  const FirForms widest = fir_forms(kernel_width());
  const double exact_to = 32768.0 * 32768 * 1e-6;  // a part of the largest product, times the taps there are
  for (const FirPiece& piece : pieces) {
    float one[fir_outputs];
    float other[fir_outputs];
    const FirPiece two[] = {piece, pieces[piece.count / 2]};
    portable.run(in.data(), taps.data(), two, 2, one);
    widest.run(in.data(), taps.data(), two, 2, other);
    for (size_t i = 0; i < fir_outputs; i++) {
      double exact = 0;
      for (const FirPiece& each : two) {
        for (size_t k = 0; k < each.count; k++)
          exact += static_cast<double>(taps[each.first + k]) * in[each.offset + k + i];
      }
      CHECK(std::fabs(one[i] - exact) < exact_to * 64 && std::fabs(other[i] - exact) < exact_to * 64);
    }
    for (size_t phases = 1; phases <= fir_phases_max; phases++) {
      float outputs[2][fir_phases_max * fir_outputs];
      const FirPiece joint = {piece.offset, 0, piece.count};
      portable.run_together(in.data(), taps.data(), &joint, 1, phases, outputs[0]);
      widest.run_together(in.data(), taps.data(), &joint, 1, phases, outputs[1]);
      for (size_t p = 0; p < phases; p++) {
        for (size_t i = 0; i < fir_outputs; i++) {
          double exact = 0;
          for (size_t k = 0; k < piece.count; k++)
            exact += static_cast<double>(taps[k * phases + p]) * in[piece.offset + k + i];
          CHECK(std::fabs(outputs[0][i * phases + p] - exact) < exact_to * 64 &&
                std::fabs(outputs[1][i * phases + p] - exact) < exact_to * 64);
        }
      }
    }
  }
}

TEST("rows are interleaved and dealt out again in any number and of any length, on every instruction set") {
  const std::vector<float> in = noise(8 * 40);
  for (const Width width : {Width::portable, Width::avx2}) {
    if (width > kernel_width()) continue;
    const InterleaveForms forms = interleave_forms(width);
    for (size_t count = 1; count <= 8; count++) {
      for (size_t frames = 0; frames <= 40; frames++) {
        std::vector<float> rows(count * 41, 4242.0f);
        forms.deinterleave(in.data(), count, frames, 41, rows.data());
        std::vector<const float*> firsts;
        bool dealt = true;
        for (size_t row = 0; row < count; row++) {
          firsts.push_back(&rows[row * 41]);
          for (size_t i = 0; i < frames; i++) dealt = dealt && rows[row * 41 + i] == in[i * count + row];
          dealt = dealt && rows[row * 41 + frames] == 4242.0f;
        }
        CHECK(dealt);
        std::vector<float> out(count * frames + 1, 4242.0f);
        forms.interleave(firsts.data(), count, frames, out.data());
        CHECK(std::memcmp(out.data(), in.data(), count * frames * sizeof(float)) == 0);
        CHECK(out.back() == 4242.0f);
      }
    }
  }
}

TEST(
    "floats become whole samples as rounding and saturation of each say, and back, on every instruction set and at any "
    "length") {
  const float special[] = {0.5f, 1.5f,      -0.5f,     -2.5f, 32767.4f,    32767.5f,  40000.0f,
                           3e9f, -32768.5f, -32769.0f, -3e9f, 0.49999997f, -32767.5f, 12345.5f};
  std::vector<float> in = noise(70);
  in.insert(in.begin() + 20, std::begin(special), std::end(special));
  for (const Width width : {Width::portable, Width::avx2}) {
    if (width > kernel_width()) continue;
    const SampleFormatForms forms = sample_format_forms(width);
    for (size_t length = 0; length <= in.size(); length++) {
      std::vector<int16_t> pcm(length + 1, 4242);
      forms.pcm_of(in.data(), 0.5f, length, pcm.data());
      std::vector<int32_t> sum(length + 1, 4242);
      std::vector<int32_t> whole(length + 1, 70000);
      const std::vector<float> small = noise(length + 1);
      forms.add_rounded(small.data(), length, sum.data());
      std::vector<float> back(2 * length + 1, 0.25f);
      forms.pcm_float(pcm.data(), length, back.data());
      forms.sum_float(whole.data(), length, back.data() + length);
      bool exact = pcm[length] == 4242 && sum[length] == 4242 && back.back() == 0.25f;
      for (size_t i = 0; i < length; i++) {
        const double half = 0.5 * static_cast<double>(in[i]);
        exact = exact && pcm[i] == (half > 32767 ? 32767 : half < -32768 ? -32768 : std::lrint(half));
        exact = exact && sum[i] == 4242 + std::lrintf(small[i]);
        exact = exact && back[i] == static_cast<float>(pcm[i]) && back[length + i] == 70000.0f;
      }
      CHECK(exact);
    }
  }
}
